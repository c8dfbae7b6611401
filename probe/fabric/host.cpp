// The fabric child: hosts one module, which may hang or crash, and speaks for it over one socket. As the
// probe user. Nothing here waits without the socket being watched: when the probe goes, so does this process.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <exception>

#include "fabric/backlog.h"
#include "fabric/child.h"
#include "fabric/codec.h"
#include "fabric/door.h"
#include "fabric/greeting.h"
#include "fabric/loading.h"
#include "fabric/pulse.h"
#include "fabric/shortage.h"
#include "system/frames.h"
#include "system/process.h"

namespace netcheck::fabric {

namespace {

/// How long a busy module is served before socket and timers get their turn: far below kSignOfLife, far above
/// the microsecond that looking costs.
constexpr Ns kSlice = std::chrono::milliseconds(1);
constexpr Ns kIdle = std::chrono::seconds(60);  // nothing to wait for but descriptors
/// While a batch waits for bytes: short against what a busy or stopped process loses, so that the loss is
/// seen although most of the time is slept through.
constexpr Ns kRest = std::chrono::milliseconds(3);
constexpr int kBadRequest = 2, kBroken = 1;  // exit codes; the reason is on stderr

/// What libraries read before any call of ours could tell them: no words, no crash handlers (the signal
/// itself is the news), no watching threads. Nothing else is in the environment.
void set_environment() {
  ::clearenv();
  ::setenv("LC_ALL", "C", 1);
  ::setenv("UCX_LOG_LEVEL", "fatal", 1);
  ::setenv("UCX_HANDLE_ERRORS", "none", 1);
  ::setenv("UCX_VFS_ENABLE", "n", 1);
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
}

/// The last words of this process: the probe repeats them in its failure.
void say(const std::string& words) {
  static_cast<void>(!::write(STDERR_FILENO, words.data(), words.size()));
}

class Host {
 public:
  Host(std::string name, std::string directory, system::Descriptor socket)
      : name_(std::move(name)),
        directory_(std::move(directory)),
        sink_([this](Event event) { answer(std::move(event)); }),
        socket_(
            loop_, std::move(socket), kMaxFrame, [this](const Bytes& frame) { take(frame); },
            // Without destructors: those of a stuck library may never return.
            [](const std::string&) { ::_exit(0); }) {}

  [[noreturn]] void serve() {
    while (true) {
      const bool idle = !module_ || settle();
      watch_module();
      wait(idle && requests_.empty());
      perform_next();
    }
  }

 private:
  void wait(bool idle) {
    Time until = system::now();
    if (idle) until += pending_ > 0 ? kRest : kIdle;
    pulse_.rest_until(until);
    loop_.turn(until);
    pulse_.beat();
  }

  /// Serves the module for one slice. True: it has nothing to do and will wake us.
  bool settle() {
    const Time end = system::now() + kSlice;
    do {
      if (!module_->progress() && module_->arm()) return true;
    } while (system::now() < end);
    return false;
  }

  void watch_module() {
    const int descriptor = module_ ? module_->event_descriptor() : -1;
    if (descriptor == watched_) return;
    if (watched_ >= 0) loop_.forget(watched_);
    if (descriptor >= 0) loop_.watch(descriptor, system::Loop::kRead, [](std::uint8_t) {});
    watched_ = descriptor;
  }

  void take(const Bytes& frame) {
    auto decoded = decode_request(frame);
    if (!decoded) {
      say(describe(decoded.error()));
      ::_exit(kBadRequest);
    }
    if (!std::holds_alternative<Leave>(*decoded)) ++pending_;
    requests_.push_back(std::move(*decoded));
    live();
  }

  /// One at a time, with a turn of the loop between: the library may block in the next for ever, and then the
  /// answer to the one before shall be out.
  void perform_next() {
    if (requests_.empty()) return;
    Request request = std::move(requests_.front());
    requests_.pop_front();
    std::visit([this](auto& one) { perform(one); }, request);
  }

  void perform(Open& open) {
    if (!module_) {
      const Hosting hosting{&sink_,
                            &pulse_,
                            [](const std::vector<Address>& from) { Door::of_process().admit(from); },
                            [](Ns patience) { Door::of_process().be_patient(patience); },
                            [] {
                              const Key own = fresh_key();
                              Greeting::of_process().begin(own);
                              return own;
                            },
                            [](const std::vector<Key>& keys) { Greeting::of_process().admit(keys); }};
      auto loaded = load_module(name_, directory_, hosting);
      if (!loaded) return refuse(0, describe(loaded.error()));
      module_ = std::move(*loaded);
    }
    module_->open(std::move(open.options));
  }
  void perform(Invite& invite) {
    if (!module_) return refuse(invite.team.id, "the fabric is not open");
    module_->invite(std::move(invite.team), invite.self);
  }
  void perform(Join& join) {
    if (!module_) return refuse(join.team.id, "the fabric is not open");
    module_->join(std::move(join));
  }
  void perform(Run& run) {
    if (!module_) return refuse(run.batch.id, "the fabric is not open");
    module_->run(std::move(run.batch));
  }
  void perform(Leave& leaving) {
    if (module_) module_->leave(leaving.team);
  }

  void refuse(std::uint32_t id, std::string why) {
    answer(Failed{id, judge::Trouble::refused, std::move(why), {}});
  }

  /// Who has turned somebody away, or whose kernel has, cannot say that nobody sent, and who could not
  /// connect for want of a port not that nobody took: without samples of what did not end, missing bytes are
  /// no evidence.
  [[nodiscard]] bool may_testify() const {
    return !Door::of_process().has_turned_away() && !Greeting::of_process().hindered() &&
           !backlog_.overflowed();
  }

  void answer(Event event) {
    shortage_.look();
    if (auto* joined = std::get_if<Joined>(&event)) over_tcp_ = may_need_tcp(joined->transport);
    if (auto* measured = std::get_if<Measured>(&event)) note_lack(measured->local);
    if (auto* failed = std::get_if<Failed>(&event)) {
      if (!may_testify()) failed->partial.clear();
      note_lack(failed->partial);
    }
    if (pending_ > 0) --pending_;
    socket_.send(encode(Reply(std::move(event))));
  }

  [[nodiscard]] Lack lack() const { return over_tcp_ ? shortage_.seen() : Lack::nothing; }
  void note_lack(std::vector<Sample>& samples) const {
    for (Sample& sample : samples)
      sample.lack = lack();
  }

  [[nodiscard]] Alive alive() {
    shortage_.look();
    Alive alive;
    if (module_ && may_testify()) alive.partial = module_->partial();
    for (auto& [batch, sample] : alive.partial)
      sample.lack = lack();
    return alive;
  }

  /// Signs of life, while anything is pending.
  void live() {
    if (sign_due_) return;
    sign_due_ = true;
    loop_.at(system::now() + kSignOfLife, [this] {
      sign_due_ = false;
      if (pending_ == 0) return;
      socket_.send(encode(Reply(alive())));
      live();
    });
  }

  system::Loop loop_;
  std::string name_, directory_;
  Sink sink_;
  Pulse pulse_;
  Backlog backlog_;
  Shortage shortage_;
  bool over_tcp_ = true;  ///< the last team that was formed, as far as its transport tells
  std::unique_ptr<Module> module_;
  system::FrameSocket socket_;
  std::deque<Request> requests_;
  std::size_t pending_ = 0;
  bool sign_due_ = false;
  int watched_ = -1;
};

}  // namespace

int host(const std::string& name, const std::string& module_directory, int socket) {
  system::become_undumpable();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  static_cast<void>(::signal(SIGPIPE, SIG_IGN));
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  if (::chdir("/") != 0) return kBroken;  // UCX would read a ucx.conf from the working directory
  set_environment();
  try {
    Door::of_process().shut();
    Host(name, module_directory, system::Descriptor(socket)).serve();
  } catch (const std::exception& error) {
    say("fabric " + name + ": " + error.what());
  } catch (...) {
    say("fabric " + name + ": an exception of an unknown kind");
  }
  ::_exit(kBroken);
}

}  // namespace netcheck::fabric
