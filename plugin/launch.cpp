#include "launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "system/proc.h"
#include "system/process.h"

namespace netcheck::plugin {

namespace {

/// Set by slurmd for its prologs in every version from 20.11 on; a user cannot override them. Everything
/// else, SPANK_* above all, stays behind.
constexpr std::array<const char*, 21> kPassedOn{
    "SLURMD_NODENAME", "SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GID",
    "SLURM_JOB_USER", "SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION",
    "SLURM_JOB_ACCOUNT", "SLURM_JOB_GPUS", "SLURM_JOB_RESTART_COUNT", "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_HET_JOB_ID", "SLURM_HET_JOB_OFFSET", "SLURM_SCRIPT_CONTEXT",
    // from 23.02 or 23.11 on
    "SLURM_JOB_OVERSUBSCRIBE", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"};

/// After the program has ended its last words are in the pipe already: nothing more is waited for.
constexpr auto kReapPatience = std::chrono::seconds(1);
constexpr int kPauseMs = 5;  ///< a killed process needs some scheduling to end
constexpr auto kLookInterval = std::chrono::milliseconds(20);  ///< where the kernel (before 5.3) has no pidfd

Time monotonic_now() {
  timespec ts{};
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return Time(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

/// Reads what is there, at most a pipe's worth (64 KiB), so that a flood cannot hold us. False at its end.
bool drain(int fd, LineRelay& lines) {
  constexpr int kChunks = 16;
  std::array<char, 4'096> chunk{};
  for (int i = 0; i < kChunks; ++i) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    lines.take({chunk.data(), static_cast<std::size_t>(got)});
  }
  return true;
}

/// How long the program is waited for: briefly until it announces its deadline, then a little beyond that;
/// never longer than the site allows.
struct Patience {
  Time most, until;

  explicit Patience(Time at_most)
      : most(at_most), until(std::min(most, monotonic_now() + kAnnouncePatience)) {}
  void hear(std::chrono::milliseconds announced) {
    until = std::min(most, monotonic_now() + announced + kOverrun);
  }
};

/// Until the program has ended or patience is at its end. Its stderr is relayed as it comes.
void attend(system::Process& process, system::Descriptor& errors, LineRelay& lines, Patience& patience) {
  bool heard = false;
  while (!process.poll()) {
    if (!heard && lines.announced()) {
      heard = true;
      patience.hear(*lines.announced());
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience.until - monotonic_now());
    if (left.count() <= 0) break;
    const auto wait_for =
        process.pidfd() >= 0 ? left : std::min(left, std::chrono::milliseconds(kLookInterval));
    std::array<pollfd, 2> wait{{{errors.get(), POLLIN, 0}, {process.pidfd(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), static_cast<int>(wait_for.count()));
    if (wait[0].revents != 0 && !drain(errors.get(), lines)) errors.reset();  // poll skips a negative one
  }
  if (errors) static_cast<void>(drain(errors.get(), lines));
}

bool still_there(const system::ProcessStat& process) {
  return system::start_time_of(process.pid) == process.start_time;
}

/// The program's group, and whatever left the group but is still below it. True when all of it has ended.
bool end_tree(system::Process& process) {
  const Time deadline = monotonic_now() + kReapPatience;
  const std::vector<system::ProcessStat> below = system::descendants_of(process.pid());
  process.kill_group();
  for (const system::ProcessStat& child : below)
    if (still_there(child)) ::kill(child.pid, SIGKILL);
  bool ended = process.wait(deadline).has_value();
  for (const system::ProcessStat& child : below) {
    while (still_there(child) && monotonic_now() < deadline)
      ::poll(nullptr, 0, kPauseMs);
    ended = ended && !still_there(child);
  }
  return ended;
}

}  // namespace

std::vector<std::string> child_environment(const std::function<const char*(const char*)>& get,
                                           const Settings& settings) {
  std::vector<std::string> environment;
  for (const char* name : kPassedOn)
    if (const char* value = get(name)) environment.push_back(fmt::format("{}={}", name, value));
  environment.emplace_back("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
  if (!settings.slurm_bin.empty()) environment.back() += ":" + settings.slurm_bin;
  return environment;
}

void LineRelay::take(std::string_view bytes) {
  for (const char c : bytes) {
    if (lines_ > kMaxLines) return;
    if (c == '\n')
      end_line();
    else if (line_.size() < kMaxLineBytes)
      line_ += c;
  }
}

void LineRelay::finish() {
  emit();
}

void LineRelay::end_line() {
  if (std::exchange(first_, false)) {
    announced_ = read_announced(line_);
    if (announced_) return line_.clear();  // ours, not the log's
  }
  emit();
}

void LineRelay::emit() {
  constexpr std::string_view kError = "error:",
                             kName = "netcheck: ";  // Slurm's own log lines begin with the plugin's name
  if (line_.empty() || lines_ > kMaxLines) return;
  if (++lines_ > kMaxLines) {
    relay_(true, fmt::format("more than {} lines: the rest is left out", kMaxLines));
    return;
  }
  std::string_view text = line_;
  const bool is_error = text.starts_with(kError);
  if (is_error) text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ', kError.size())));
  if (text.starts_with(kName)) text.remove_prefix(kName.size());
  relay_(is_error, printable(text, kMaxLineBytes));
  line_.clear();
}

void run_check(const Settings& settings, const std::optional<std::string>& request,
               std::vector<std::string> environment, const Relay& relay) {
  const Time begun = monotonic_now();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return relay(true, fmt::format("no pipe: {}", std::strerror(errno)));
  system::Descriptor errors(ends[0]), child_errors(ends[1]);
  ::fcntl(errors.get(), F_SETFL, O_NONBLOCK);

  system::Launch launch;
  launch.program = settings.program;
  launch.arguments = {"prolog",   "--announce-deadline", "--notice-directory", settings.run_directory,
                      "--config", settings.config};
  if (request) launch.arguments.push_back("--request=" + *request);
  launch.environment = std::move(environment);
  launch.descriptors = {{child_errors.get(), STDERR_FILENO}};
  launch.oom_score_adj = 0;
  auto process = system::Process::start(launch);
  child_errors.reset();
  if (!process) return relay(true, describe(process.error()) + "; the job runs unchecked");

  LineRelay lines(relay);
  Patience patience(begun + settings.timeout);
  attend(*process, errors, lines, patience);
  lines.finish();
  if (const auto status = process->poll()) {
    if (*status != 0)
      relay(true, fmt::format("{} prolog: {}", settings.program, system::describe_status(*status)));
    return;
  }
  const bool ended = end_tree(*process);
  const bool mute = !lines.announced() && patience.until < patience.most;
  relay(true, fmt::format("the check did not {} and was killed{}",
                          mute ? "say within 3s how long it takes"
                               : "end within " + format_duration(patience.until - begun),
                          ended ? "" : ", but is still there"));
}

}  // namespace netcheck::plugin
