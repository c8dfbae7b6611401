// The helper after a first requeue. As root. See early_start.h.
#include "prolog/early_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <set>
#include <thread>

#include "prolog/columns.h"
#include "prolog/syslog.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

using std::chrono::milliseconds;

// The other nodes' prologs end within a second of the leader's on a quiet cluster.
constexpr auto kPause = milliseconds(700);
// slurmd's clock for this has whole seconds: two of them, and the difference of two clocks.
constexpr auto kQuiet = milliseconds(3'000);
// An idle cluster starts the job at once; what is not running by then waits for other jobs.
constexpr auto kPatienceToStart = milliseconds(1'500);
constexpr auto kCallPatience = std::chrono::seconds(5);
constexpr unsigned kKeptBack = 2;  // calls: to look again and to put back what was changed
constexpr const char* kSlurmsWait = "StartTime=now+120";  // seconds: what is left of it, and what has passed
constexpr std::size_t kStateColumn = 128;
constexpr const char* kSwitchedOff = "switched off";

// Slurm's own wait is two minutes; a job that is not pending by half of that is left to it.
constexpr std::chrono::seconds kHelperPatience{60}, kHelperOverrun{10};
constexpr unsigned kMostDescriptors = 65'536;
constexpr long kCloseRangeCall = 436;  // by number: older C libraries have no wrapper

[[noreturn]] void be_alone(const std::function<void()>& body, std::chrono::seconds limit) {
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; ++fd)
    ::dup2(null, fd);
  if (::syscall(kCloseRangeCall, STDERR_FILENO + 1, ~0U, 0) != 0)
    for (unsigned fd = STDERR_FILENO + 1; fd < kMostDescriptors; ++fd)
      ::close(static_cast<int>(fd));
  if (::chdir("/") != 0) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGALRM, SIGTERM, SIGINT, SIGHUP})
    ::signal(signal, SIG_DFL);  // NOLINT: a standard macro
  ::alarm(static_cast<unsigned>(limit.count()));
  try {
    body();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

bool any_exists(const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    struct stat status {};
    return !path.empty() && ::lstat(path.c_str(), &status) == 0;
  });
}

NextCall next_call(const EarlyStart& early, const std::optional<Standing>& standing, Progress progress) {
  if (!standing) return NextCall::stop;
  // Somebody else has requeued it, or it has run in between: it is theirs now.
  if (standing->restarts != early.run.restart + 1) return NextCall::stop;
  const bool let_go = progress == Progress::let_go;
  if (standing->state == "CG") return NextCall::wait;  // a node's prolog or epilog goes on
  if (standing->state != "PD") return NextCall::stop;
  if (standing->reason.starts_with("BadConstraints")) return NextCall::restore;
  if (standing->priority == 0) return NextCall::stop;  // held: by an administrator, or its user
  if (let_go) return NextCall::put_back;
  if (standing->reason == "None") return NextCall::wait;
  return standing->reason == "BeginTime" ? NextCall::look_at_nodes : NextCall::stop;
}

std::string nodes_state_format() {
  return fmt::format("NodeList:{},StateLong:{}", kStateColumn, kColumn);
}

Nodes nodes_state(std::string_view text, const std::vector<std::string>& names) {
  std::set<std::string_view> idle, completing;
  for (const std::string_view line : split(text, "\n")) {
    if (line.size() <= kStateColumn) continue;
    const std::string_view name = trimmed(line.substr(0, kStateColumn)),
                           state = trimmed(line.substr(kStateColumn));
    if (state == "idle") idle.insert(name);
    if (state == "completing") completing.insert(name);
  }
  Nodes all = Nodes::idle;
  for (const std::string& name : names) {
    if (idle.contains(name)) continue;
    if (!completing.contains(name)) return Nodes::taken;
    all = Nodes::completing;
  }
  return all;
}

namespace {

std::string eligible_format() {
  return fmt::format(",EligibleTime:{}", kColumn);
}

class Helper {
 public:
  Helper(const EarlyStart& early, Controller controller, Time deadline)
      : early_(early), controller_(std::move(controller)), deadline_(deadline) {}

  std::string run() {
    while (system::now() + pause_ < deadline_ && controller_.left() > kKeptBack) {
      std::this_thread::sleep_for(pause_);
      pause_ = kPause;
      if (!look()) continue;  // a busy controller
      if (auto over = next()) return *over;
    }
    return put_back_at_end();
  }

 private:
  // nullopt: it goes on. The kill switch ends it before it begins anything, and keeps it from nothing that
  // ends what has begun.
  std::optional<std::string> next() {
    const NextCall call = next_call(early_, standing_, progress_);
    if (call == NextCall::put_back)
      return update({kSlurmsWait}, "no room to start at once: Slurm's wait is put back");
    if (call == NextCall::restore)
      return update({"ExcNodeList=" + early_.user_list, kSlurmsWait}, "exclusions restored");
    if (call == NextCall::stop || others_time())
      return progress_ == Progress::let_go ? "started early" : "left alone";
    if (progress_ == Progress::let_go) return std::nullopt;
    if (any_exists(early_.kill_switches)) return kSwitchedOff;
    return call == NextCall::wait ? std::nullopt : go_on();
  }

  std::optional<std::string> go_on() {
    const Nodes nodes = look_at_nodes();
    if (nodes == Nodes::taken) return "its nodes are taken: Slurm's wait stays";
    if (nodes == Nodes::completing) {
      progress_ = Progress::waiting;
    } else if (progress_ == Progress::waiting) {
      progress_ = Progress::idle_once;
      pause_ = kQuiet;
    } else {
      if (any_exists(early_.kill_switches)) return kSwitchedOff;
      if (std::string wrong = update({"StartTime=now"}, ""); !wrong.empty()) return wrong;
      progress_ = Progress::let_go;
      pause_ = kPatienceToStart;
    }
    return std::nullopt;
  }

  // Somebody has said since when it is to start.
  bool others_time() {
    if (standing_->reason != "BeginTime" || progress_ == Progress::let_go) return false;
    if (eligible_.empty()) eligible_ = eligible_now_;
    return eligible_ != eligible_now_;
  }
  std::string put_back_at_end() {
    if (progress_ != Progress::let_go) return "not pending in time: Slurm's wait stays";
    return update({kSlurmsWait}, "not seen to start: Slurm's wait is put back");
  }
  Result<std::string> call(const char* program, std::vector<std::string> arguments) {
    return controller_.call(program, std::move(arguments),
                            std::min(deadline_, system::now() + kCallPatience));
  }
  bool look() {
    const auto answer = call("squeue", {"--noheader", "--jobs=" + std::to_string(early_.run.job),
                                        "--Format=" + standing_format() + eligible_format()});
    if (!answer && !has_ended(answer.error())) return false;
    standing_.reset();
    if (!answer) return true;
    if (auto read = read_standing(*answer, early_.run.job)) standing_ = std::move(*read);
    for (const std::string_view line : split(*answer, "\n"))
      if (number(trimmed(line.substr(0, kColumn))) == early_.run.job)
        eligible_now_ = trimmed(line.substr(std::min(kStandingBytes, line.size())));
    return true;
  }
  Nodes look_at_nodes() {
    const auto answer =
        call("sinfo", {"--noheader", "--Node", "--nodes=" + fold_node_list(early_.may_return, kNodeListBytes),
                       "--Format=" + nodes_state_format()});
    return answer ? nodes_state(*answer, early_.may_return) : Nodes::taken;
  }
  std::string update(std::vector<std::string> changes, std::string done) {
    changes.insert(changes.begin(), {"update", "JobId=" + early_.target});
    const auto answer = call("scontrol", std::move(changes));
    return answer ? std::move(done) : describe(answer.error());
  }

  const EarlyStart& early_;
  Controller controller_;
  Time deadline_;
  std::optional<Standing> standing_;
  Progress progress_ = Progress::waiting;
  Ns pause_ = kPause;
  std::string eligible_, eligible_now_;  // from when on it may start, as first seen pending, and now
};

}  // namespace

std::string start_early(const EarlyStart& early, Controller controller, Time deadline) {
  return Helper(early, std::move(controller), deadline).run();
}

bool detach(const std::function<void()>& body, std::chrono::seconds limit) {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    ::setsid();
    const pid_t helper = ::fork();  // whose parent ends at once: nobody waits for the helper
    if (helper == 0) be_alone(body, limit);
    ::_exit(helper < 0 ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

bool help_to_start(const EarlyStart& early, const Controller& controller) {
  const auto body = [&] {
    const std::string came = start_early(early, controller.fresh(), system::now() + kHelperPatience);
    write_syslog(fmt::format("helper of job {}: {}", early.target, came));
  };
  return detach(body, kHelperPatience + kHelperOverrun);
}

}  // namespace netcheck::prolog
