// The parent's side of the clerk: a queue of requests, some children, a patience for each. See clerk.h.
#include "peers/clerk.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>

#include "peers/clerk_worker.h"
#include "system/frames.h"

namespace netcheck::peers {
namespace {

using system::Descriptor;
using system::Loop;

/// Children that may be replaced per minute and worker: one per second of a default check, which a munged
/// that is stopped costs. After that requests fail at once: something is wrong that more children do not
/// cure.
constexpr std::size_t kReplacements = 8;
constexpr Ns kReplacementWindow = std::chrono::minutes(1);
/// How long the destructor waits for killed children: SIGKILL takes microseconds unless the kernel is stuck.
constexpr Ns kReaping = std::chrono::milliseconds(200);

/// Leaves room for what surrounds a body in its frame.
constexpr std::size_t kMaxClerkBody = kMaxClerkFrame / 2;

using Answer = std::function<void(Result<ClerkAnswer>)>;

struct Request {
  ClerkRequest content;
  Answer answer;
};

const char* blocker_of(ClerkRequest::Kind kind) {
  return kind == ClerkRequest::Kind::look_up ? "the resolver" : "munged (or the key file)";
}

const char* deed_of(ClerkRequest::Kind kind) {
  switch (kind) {
    case ClerkRequest::Kind::look_up:
      return "look up";
    case ClerkRequest::Kind::seal:
      return "seal";
    default:
      return "open";
  }
}

std::string subject_of(const ClerkRequest& request) {
  if (request.kind != ClerkRequest::Kind::look_up) return "a credential";
  std::string name;
  for (const std::byte letter : request.body)
    name.push_back(static_cast<char>(letter));
  return printable(name);
}

class Forked final : public Clerk {
 public:
  Forked(Loop& loop, MakeCredential make_credential, Ns patience, unsigned workers)
      : loop_(loop),
        make_credential_(std::move(make_credential)),
        patience_(patience),
        wanted_(std::max(workers, 1U)) {
    for (unsigned i = 0; i < wanted_; ++i)
      hire();
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked() override;

  void look_up(std::string name, std::function<void(Result<std::vector<std::string>>)> answer) override;
  void seal(Bytes payload, std::function<void(Result<std::string>)> answer) override;
  void open(std::string token, std::function<void(Result<Opened>)> answer) override;

 private:
  struct Worker {
    pid_t pid = -1;
    Descriptor pidfd;
    std::unique_ptr<system::FrameSocket> socket;
    std::optional<Request> request;
    Loop::Timer timer = 0;
  };
  struct Ending {
    pid_t pid = -1;
    Descriptor pidfd;
  };

  void hire();
  void take(ClerkRequest::Kind kind, Bytes body, Answer answer);
  void dispatch();
  void give(Worker& worker, Request request);
  void answered(pid_t pid, const Bytes& frame);
  void lost(pid_t pid, const std::string& why);
  void refuse_waiting();
  [[nodiscard]] bool may_replace();
  Worker* find(pid_t pid);
  void end(Worker& worker);

  Loop& loop_;
  MakeCredential make_credential_;
  Ns patience_;
  unsigned wanted_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Ending> ending_;
  std::deque<Request> waiting_;
  std::deque<Time> replaced_;
  std::string no_worker_why_ = "no child could be started";
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

void Forked::hire() {
  auto ends = system::socket_pair();
  if (!ends) {
    no_worker_why_ = ends.error().reason;
    return;
  }
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    no_worker_why_ = fmt::format("fork: {}", std::strerror(errno));
    return;
  }
  if (pid == 0) serve_clerk(ends->second.get(), self, make_credential_);
  ends->second.reset();
  auto worker = std::make_unique<Worker>();
  worker->pid = pid;
  worker->pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  worker->socket = std::make_unique<system::FrameSocket>(
      loop_, std::move(ends->first), kMaxClerkFrame,
      [this, pid](const Bytes& frame) { answered(pid, frame); },
      [this, pid](const std::string&) { lost(pid, "its process ended"); });
  workers_.push_back(std::move(worker));
}

Forked::Worker* Forked::find(pid_t pid) {
  const auto found = std::ranges::find(workers_, pid, [](const auto& worker) { return worker->pid; });
  return found == workers_.end() ? nullptr : found->get();
}

void Forked::take(ClerkRequest::Kind kind, Bytes body, Answer answer) {
  if (body.size() > kMaxClerkBody) {
    loop_.post([kind, answer = std::move(answer)] {
      answer(fail(deed_of(kind), "a request to the clerk", "it is too large"));
    });
    return;
  }
  waiting_.push_back({{kind, std::move(body)}, std::move(answer)});
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) dispatch();
  });
}

void Forked::dispatch() {
  for (auto& worker : workers_) {
    if (waiting_.empty()) return;
    if (worker->request) continue;
    Request request = std::move(waiting_.front());
    waiting_.pop_front();
    give(*worker, std::move(request));
  }
  if (workers_.empty()) refuse_waiting();
}

void Forked::give(Worker& worker, Request request) {
  const Bytes frame = encode(request.content);
  worker.timer = loop_.at(system::now() + patience_, [this, pid = worker.pid] {
    lost(pid, "");  // which also kills it
  });
  worker.request = std::move(request);
  worker.socket->send(frame);
}

void Forked::answered(pid_t pid, const Bytes& frame) {
  Worker* worker = find(pid);
  if (worker == nullptr || !worker->request) return;
  loop_.cancel(worker->timer);
  const Answer answer = std::move(worker->request->answer);
  worker->request.reset();
  if (!waiting_.empty()) dispatch();  // before the answer's own work: munged need not wait for it
  answer(decode_answer(frame));
}

void Forked::lost(pid_t pid, const std::string& why) {
  const auto found = std::ranges::find(workers_, pid, [](const auto& worker) { return worker->pid; });
  if (found == workers_.end()) return;
  const std::unique_ptr<Worker> worker = std::move(*found);
  workers_.erase(found);
  end(*worker);
  if (may_replace()) {
    hire();
  } else {
    no_worker_why_ = "its processes kept ending";
  }
  const std::weak_ptr<bool> alive = alive_;
  if (worker->request) {
    const ClerkRequest& asked = worker->request->content;
    const std::string reason = why.empty() ? fmt::format("{} did not answer within {}",
                                                         blocker_of(asked.kind), format_duration(patience_))
                                           : why;
    worker->request->answer(fail(deed_of(asked.kind), subject_of(asked), reason));
  }
  if (!alive.expired()) dispatch();
}

void Forked::refuse_waiting() {
  auto refused = std::move(waiting_);
  waiting_.clear();
  const std::weak_ptr<bool> alive = alive_;
  for (auto& request : refused) {
    if (alive.expired()) return;
    request.answer(fail(deed_of(request.content.kind), subject_of(request.content),
                        "the clerk is gone: " + no_worker_why_));
  }
}

bool Forked::may_replace() {
  const Time now = system::now();
  while (!replaced_.empty() && replaced_.front() + kReplacementWindow < now)
    replaced_.pop_front();
  if (replaced_.size() >= kReplacements * wanted_) return false;
  replaced_.push_back(now);
  return true;
}

void Forked::end(Worker& worker) {
  loop_.cancel(worker.timer);
  worker.socket.reset();
  ::kill(worker.pid, SIGKILL);  // not reaped yet: the pid is still this child's
  const int fd = worker.pidfd.get();
  if (fd < 0) {  // no pidfd to wait on: the destructor tries
    ending_.push_back({worker.pid, {}});
    return;
  }
  ending_.push_back({worker.pid, std::move(worker.pidfd)});
  loop_.watch(fd, Loop::kRead, [this, fd](std::uint8_t) {
    loop_.forget(fd);
    const auto found =
        std::ranges::find(ending_, fd, [](const Ending& ending) { return ending.pidfd.get(); });
    if (found == ending_.end()) return;
    ::waitpid(found->pid, nullptr, WNOHANG);
    ending_.erase(found);
  });
}

Forked::~Forked() {
  *alive_ = false;
  alive_.reset();
  for (auto& worker : workers_)
    end(*worker);
  const Time until = system::now() + kReaping;
  for (Ending& ending : ending_) {
    if (ending.pidfd) {
      loop_.forget(ending.pidfd.get());
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - system::now()).count();
      pollfd ended{ending.pidfd.get(), POLLIN, 0};
      (void)::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    }
    ::waitpid(ending.pid, nullptr, WNOHANG);
  }
}

void Forked::look_up(std::string name, std::function<void(Result<std::vector<std::string>>)> answer) {
  Bytes body(name.size());
  std::transform(name.begin(), name.end(), body.begin(), [](char c) { return static_cast<std::byte>(c); });
  take(ClerkRequest::Kind::look_up, std::move(body), [answer = std::move(answer)](Result<ClerkAnswer> got) {
    answer(got.map([](ClerkAnswer& found) { return std::move(found.addresses); }));
  });
}

void Forked::seal(Bytes payload, std::function<void(Result<std::string>)> answer) {
  take(ClerkRequest::Kind::seal, std::move(payload), [answer = std::move(answer)](Result<ClerkAnswer> got) {
    answer(got.map([](const ClerkAnswer& found) {
      std::string token(found.body.size(), '\0');
      std::ranges::transform(found.body, token.begin(), [](std::byte b) { return static_cast<char>(b); });
      return token;
    }));
  });
}

void Forked::open(std::string token, std::function<void(Result<Opened>)> answer) {
  Bytes body(token.size());
  std::transform(token.begin(), token.end(), body.begin(), [](char c) { return static_cast<std::byte>(c); });
  take(ClerkRequest::Kind::open, std::move(body), [answer = std::move(answer)](Result<ClerkAnswer> got) {
    answer(got.map([](ClerkAnswer& found) { return Opened{found.uid, std::move(found.body)}; }));
  });
}

}  // namespace

std::unique_ptr<Clerk> forked_clerk(Loop& loop,
                                    std::function<Result<std::unique_ptr<Credential>>()> credential,
                                    Ns patience, unsigned workers) {
  return std::make_unique<Forked>(loop, std::move(credential), patience, workers);
}

}  // namespace netcheck::peers
