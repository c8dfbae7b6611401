// A loop over the probe's end, its report, its stderr and our own SIGTERM. As root.
#include "prolog/probe_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "contract/wire.h"
#include "judge/names.h"
#include "session/report.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

constexpr std::size_t kMaxLine = 400;                    // of the probe's stderr; a log line
constexpr std::size_t kChunk = 64 << 10;                 // a pipe's buffer
constexpr Ns kLook = std::chrono::milliseconds(20);      // where the kernel (before 5.3) has no pidfd
constexpr Ns kGoodbye = std::chrono::milliseconds(300);  // after SIGTERM, for the probe to tell its peers

constexpr int kAssignmentFd = 3, kReportFd = 4, kListenerFd = 5;  // session/probe.h

// One end of a pipe that is read into something bounded as the loop goes.
class Reader {
 public:
  using Take = std::function<void(std::string_view)>;
  Reader(system::Loop& loop, Take take) : loop_(loop), take_(std::move(take)) {}
  ~Reader() { close(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The end that the child writes to.
  Result<system::Descriptor> open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail("make", "a pipe", std::strerror(errno));
    read_.reset(ends[0]);
    ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
    loop_.watch(read_.get(), system::Loop::kRead, [this](std::uint8_t) { step(); });
    return system::Descriptor(ends[1]);
  }
  // One buffer's worth, so that a flood cannot keep the loop from its deadline. False: nothing more there.
  bool step() {
    if (!read_) return false;
    std::array<char, kChunk> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
    const ssize_t got = ::read(read_.get(), chunk.data(), chunk.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      close();
      return false;
    }
    take_({chunk.data(), static_cast<std::size_t>(got)});
    return true;
  }

 private:
  void close() {
    if (read_) loop_.forget(read_.get());
    read_.reset();
  }
  system::Loop& loop_;
  Take take_;
  system::Descriptor read_;
};

judge::Phase phase_in(std::string_view line, judge::Phase before) {
  constexpr std::string_view kWord = "phase ";
  if (line.substr(0, kWord.size()) != kWord) return before;
  using judge::Phase;
  for (const Phase phase : {Phase::start, Phase::rendezvous, Phase::open, Phase::connect, Phase::gate,
                            Phase::blame, Phase::finish})
    if (line.substr(kWord.size()) == judge::name(phase)) return phase;
  return before;
}

class ProbeRun {
 public:
  explicit ProbeRun(ProbeOrder order)
      : order_(std::move(order)),
        report_(loop_, [this](std::string_view bytes) { take_report(bytes); }),
        errors_(loop_, [this](std::string_view bytes) { take_errors(bytes); }) {}

  Result<ProbeEnd> run() {
    if (auto started = start(); !started) return tl::unexpected(started.error());
    watch_signals();
    wait(order_.assignment.deadline + kLastWords);
    if (signals_) loop_.forget(signals_.get());
    if (process_.pidfd() >= 0) loop_.forget(process_.pidfd());
    // What it wrote before its end is in the pipes: at most a buffer each, and what an orphan adds meanwhile.
    constexpr int kRest = 4;
    for (int i = 0; i < kRest && report_.step(); ++i) {
    }
    for (int i = 0; i < kRest && errors_.step(); ++i) {
    }
    end_line();
    end_.in_time = process_.poll().has_value();
    if (end_.in_time) end_.how = system::describe_status(*process_.poll());
    end_.remains = system::end_descendants(system::now() + kKillPatience,
                                           order_.alone ? std::optional(order_.account) : std::nullopt);
    return std::move(end_);
  }

 private:
  Result<void> start() {
    auto assignment = assignment_file();
    if (!assignment) return tl::unexpected(assignment.error());
    auto report = report_.open();
    if (!report) return tl::unexpected(report.error());
    auto errors = errors_.open();
    if (!errors) return tl::unexpected(errors.error());
    system::Launch launch;
    launch.program = order_.program;
    launch.arguments = {"probe"};
    launch.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "HOME=/nonexistent"};
    launch.descriptors = {
        {assignment->get(), kAssignmentFd}, {report->get(), kReportFd}, {errors->get(), STDERR_FILENO}};
    if (order_.listener) launch.descriptors.emplace_back(order_.listener.get(), kListenerFd);
    launch.account = order_.account;
    launch.max_tasks = kMaxTasks;
    launch.oom_score_adj = 0;
    auto process = system::Process::start(launch);
    if (!process) return tl::unexpected(process.error());
    process_ = std::move(*process);
    order_.listener.reset();  // the probe's now: the port is closed when it ends
    return {};
  }

  // In memory and whole before the probe begins: nothing to wait for, on either side.
  [[nodiscard]] Result<system::Descriptor> assignment_file() const {
    const std::string text =
        session::to_json(order_.assignment).dump(-1, ' ', true, Json::error_handler_t::replace);
    system::Descriptor file(::memfd_create("assignment", MFD_CLOEXEC));
    if (!file) return fail("write", "the assignment", std::strerror(errno));
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t wrote = ::write(file.get(), rest.data(), rest.size());
      if (wrote <= 0) return fail("write", "the assignment", std::strerror(errno));
      rest.remove_prefix(static_cast<std::size_t>(wrote));
    }
    ::lseek(file.get(), 0, SEEK_SET);
    return file;
  }

  void watch_signals() {
    if (process_.pidfd() >= 0)
      loop_.watch(process_.pidfd(), system::Loop::kRead, [this](std::uint8_t) { loop_.stop(); });
    sigset_t terminate;
    ::sigemptyset(&terminate);
    ::sigaddset(&terminate, SIGTERM);
    signals_.reset(::signalfd(-1, &terminate, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return;
    loop_.watch(signals_.get(), system::Loop::kRead, [this](std::uint8_t) {
      loop_.forget(signals_.get());
      end_.interrupted = true;
      ::kill(process_.pid(), SIGTERM);
      until_ = std::min(until_, system::now() + kGoodbye);
    });
  }

  void wait(Time deadline) {
    until_ = deadline;
    while (!process_.poll() && !end_.too_large && system::now() < until_)
      loop_.turn(std::min(until_, system::now() + kLook));
  }

  void take_report(std::string_view bytes) {
    const std::size_t room = session::kReportMaxBytes - end_.report.size();
    end_.too_large = end_.too_large || bytes.size() > room;
    end_.report.append(bytes.substr(0, room));
  }

  void take_errors(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n')
        end_line();
      else if (line_.size() < kMaxLine)
        line_ += c;
    }
  }

  void end_line() {
    constexpr std::string_view kPrefix = "netcheck: ";
    std::string line = printable(line_, kMaxLine);
    line_.clear();
    if (line.rfind(kPrefix, 0) == 0) line.erase(0, kPrefix.size());
    if (line.empty()) return;
    const judge::Phase before = std::exchange(end_.reached, phase_in(line, end_.reached));
    if (before != end_.reached || end_.said.size() >= kMaxSaid) return;
    end_.said.push_back(line);
    order_.say(line);
  }

  ProbeOrder order_;
  ProbeEnd end_;
  system::Loop loop_;
  Reader report_, errors_;
  system::Process process_;
  system::Descriptor signals_;
  Time until_{};
  std::string line_;
};

}  // namespace

Result<ProbeEnd> run_probe(ProbeOrder order) {
  return ProbeRun(std::move(order)).run();
}

}  // namespace netcheck::prolog
