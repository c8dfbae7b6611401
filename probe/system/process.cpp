// Starting a program: everything the child does between fork and exec is async-signal-safe.
#include "system/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "system/proc.h"

namespace netcheck::system {

namespace {

constexpr int kAboveTargets =
    64;  // where descriptors wait while the wanted numbers are filled; far above any target
constexpr int kExecFailed = 127;  // as a shell reports it
constexpr auto kReapPatience =
    std::chrono::seconds(1);  // after SIGKILL; beyond it the process is in the kernel's hands
constexpr auto kPollInterval = std::chrono::milliseconds(5);  // kernels before 5.3 have no pidfd

// By number: older C libraries, which the plugin must run on too, have no wrappers. The same on every
// architecture.
constexpr long kPidfdOpenCall = 434, kCloseRangeCall = 436;
constexpr rlim_t kMostDescriptors =
    65'536;  // looked through where the kernel (before 5.11) cannot do it in one call

int pidfd_of(pid_t pid) {
  return static_cast<int>(::syscall(kPidfdOpenCall, pid, 0));
}

Time monotonic_now() {
  timespec ts{};
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return Time(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

int milliseconds_until(Time deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - monotonic_now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

/// What the child needs, allocated before the fork.
struct Prepared {
  std::vector<char*> argv, envp;
  std::vector<std::pair<int, int>> descriptors;
  int null_fd = -1;
  int report_fd = -1;
  pid_t parent = -1;
};

struct ChildFailure {
  std::array<char, 32> step{};
  int error = 0;
};

[[noreturn]] void give_up(int report_fd, const char* step) {
  ChildFailure failure;
  failure.error = errno;
  std::strncpy(failure.step.data(), step, failure.step.size() - 1);
  static_cast<void>(!::write(report_fd, &failure, sizeof failure));
  ::_exit(kExecFailed);
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal)
    ::signal(signal, SIG_DFL);  // KILL and STOP refuse; no matter
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void set_oom_score(int score) {
  std::array<char, 16> text{};
  std::size_t length = 0;
  if (score < 0) text.at(length++) = '-';
  const int magnitude = std::abs(score);
  for (int unit = 1000; unit > 0; unit /= 10)
    if (magnitude >= unit || unit == 1) text.at(length++) = static_cast<char>('0' + magnitude / unit % 10);
  const int fd =
      ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);  // best effort: only lowering needs privilege
  if (fd < 0) return;
  static_cast<void>(!::write(fd, text.data(), length));
  ::close(fd);
}

void arrange_descriptors(Prepared& prepared) {
  for (auto& [ours, target] : prepared.descriptors) {
    ours = ::fcntl(ours, F_DUPFD_CLOEXEC, kAboveTargets);
    if (ours < 0) give_up(prepared.report_fd, "duplicate a descriptor");
  }
  const int report = ::fcntl(prepared.report_fd, F_DUPFD_CLOEXEC, kAboveTargets);
  if (report >= 0) prepared.report_fd = report;
  for (int target = 0; target <= 2; ++target)
    ::dup2(prepared.null_fd, target);
  for (const auto& [ours, target] : prepared.descriptors)
    if (::dup2(ours, target) < 0) give_up(prepared.report_fd, "place a descriptor");
}

/// Everything above the wanted numbers is closed at exec.
void close_the_rest(const Prepared& prepared) {
  constexpr unsigned kCloseOnExec = 1U << 2U;  // CLOSE_RANGE_CLOEXEC of <linux/close_range.h>
  if (::syscall(kCloseRangeCall, 3U, ~0U, kCloseOnExec) != 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const auto end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMostDescriptors));
    for (int fd = 3; fd < end; ++fd)
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  for (const auto& [ours, target] : prepared.descriptors)
    if (target > 2) ::fcntl(target, F_SETFD, 0);
}

/// Never more than it was. Set while still root: what counts from the drop on is the account's own.
void limit_tasks(std::uint64_t most, int report_fd) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0) give_up(report_fd, "read the limit of processes");
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) give_up(report_fd, "limit the processes");
}

void drop_to(const Account& account, int report_fd) {
  if (::setgroups(1, &account.gid) != 0) give_up(report_fd, "set the groups");
  if (::setresgid(account.gid, account.gid, account.gid) != 0) give_up(report_fd, "set the group");
  if (::setresuid(account.uid, account.uid, account.uid) != 0) give_up(report_fd, "set the user");
  if (::setuid(0) == 0 && account.uid != 0) give_up(report_fd, "lose root for good");
}

[[noreturn]] void become(const Launch& launch, Prepared& prepared) {
  ::setsid();
  reset_signals();
  if (launch.oom_score_adj) set_oom_score(*launch.oom_score_adj);
  arrange_descriptors(prepared);
  if (launch.account) {
    if (launch.max_tasks) limit_tasks(*launch.max_tasks, prepared.report_fd);
    drop_to(*launch.account, prepared.report_fd);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  }
  if (launch.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != prepared.parent) ::_exit(kExecFailed);  // the parent died before the line above
  }
  ::umask(077);
  if (::chdir("/") != 0) give_up(prepared.report_fd, "change to /");
  close_the_rest(prepared);
  ::execve(launch.program.c_str(), prepared.argv.data(), prepared.envp.data());
  give_up(prepared.report_fd, "execute");
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (auto& text : strings)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Waits until the child has executed or said why not.
Result<void> confirm(int report_fd, const std::string& program, Ns patience) {
  pollfd poller{report_fd, POLLIN, 0};
  const Time deadline = monotonic_now() + patience;
  int ready = 0;
  do {
    ready = ::poll(&poller, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR && monotonic_now() < deadline);
  if (ready == 0)
    return fail("start", program, "it did not start within " + format_duration(patience),
                "is its filesystem answering?");
  ChildFailure failure;
  const ssize_t got = ::read(report_fd, &failure, sizeof failure);
  if (got != static_cast<ssize_t>(sizeof failure)) return {};
  return fail("start", program,
              std::string("could not ") + failure.step.data() + ": " + std::strerror(failure.error));
}

}  // namespace

Result<Process> Process::start(const Launch& launch) {
  std::vector<std::string> arguments = launch.arguments;
  arguments.insert(arguments.begin(), launch.program);
  std::vector<std::string> environment = launch.environment;
  const Descriptor null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> pipe_ends{};
  if (!null_device || ::pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    return fail("start", launch.program, std::strerror(errno));
  const Descriptor report(pipe_ends[0]);
  Descriptor child_report(pipe_ends[1]);
  Prepared prepared{pointers(arguments), pointers(environment), launch.descriptors,
                    null_device.get(),   child_report.get(),    ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return fail("start", launch.program, std::strerror(errno));
  if (pid == 0) become(launch, prepared);
  child_report.reset();
  Process process;
  process.pid_ = pid;
  process.pidfd_.reset(pidfd_of(pid));
  process.start_time_ = start_time_of(pid).value_or(0);
  if (auto started = confirm(report.get(), launch.program, launch.start_patience); !started)
    return tl::unexpected(started.error());
  return process;
}

Result<Process> Process::fork(const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail("start", "a child", std::strerror(errno));
  if (pid == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    ::_exit(::getppid() == parent ? body() : kExecFailed);
  }
  Process process;
  process.pid_ = pid;
  process.pidfd_.reset(pidfd_of(pid));
  process.start_time_ = start_time_of(pid).value_or(0);
  return process;
}

Process::Process(Process&& other) noexcept {
  *this = std::move(other);
}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(start_time_, other.start_time_);
  std::swap(status_, other.status_);
  return *this;
}

Process::~Process() {
  if (pid_ <= 0 || status_) return;
  kill_group();
  static_cast<void>(wait(monotonic_now() + kReapPatience));
}

std::optional<int> Process::poll() {
  if (status_ || pid_ <= 0) return status_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == pid_) status_ = status;
  // Somebody else reaped it: only end_descendants does, after SIGKILL.
  if (ended < 0 && errno == ECHILD) status_ = SIGKILL;
  return status_;
}

void Process::kill_group() noexcept {
  if (pid_ <= 0 || status_) return;  // after the reaping the number may be another's
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // before its setsid the group does not exist
}

std::optional<int> Process::wait(Time deadline) {
  while (!poll() && pid_ > 0) {
    const int left = milliseconds_until(deadline);
    if (left == 0) return std::nullopt;
    pollfd poller{pidfd_.get(), POLLIN, 0};
    if (pidfd_)
      ::poll(&poller, 1, left);
    else
      ::poll(nullptr, 0, std::min(left, static_cast<int>(kPollInterval.count())));
  }
  return status_;
}

std::string describe_status(int wait_status) {
  if (WIFEXITED(wait_status)) return "exit " + std::to_string(WEXITSTATUS(wait_status));
  if (!WIFSIGNALED(wait_status)) return "status " + std::to_string(wait_status);
  const int signal = WTERMSIG(wait_status);
  const char* description = ::strsignal(signal);
  return "signal " + std::to_string(signal) + " (" + (description != nullptr ? description : "unknown") + ")";
}

void become_subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void become_undumpable() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

}  // namespace netcheck::system
