// Ending a whole tree of processes: groups, sessions and double forks included, since this process is their
// subreaper.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "system/loop.h"
#include "system/proc.h"
#include "system/process.h"

namespace netcheck::system {

namespace {

constexpr int kPauseMs = 5;  // between passes: a killed process needs some scheduling to end

void reap_all() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

std::vector<ProcessStat> living_descendants() {
  std::vector<ProcessStat> found = descendants_of(::getpid());
  std::erase_if(found,
                [](const ProcessStat& process) { return process.state == 'Z' || process.state == 'X'; });
  return found;
}

}  // namespace

std::optional<std::uint64_t> start_time_of(pid_t pid) {
  const auto stat = stat_of(pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  return stat->start_time;
}

std::vector<std::pair<pid_t, std::uint64_t>> end_descendants(Time deadline) {
  for (;;) {
    const std::vector<ProcessStat> living = living_descendants();
    for (const ProcessStat& process : living)
      ::kill(process.pid, SIGKILL);
    reap_all();
    if (living.empty()) return {};
    if (now() >= deadline) break;
    ::poll(nullptr, 0, kPauseMs);
  }
  std::vector<std::pair<pid_t, std::uint64_t>> stuck;
  for (const ProcessStat& process : living_descendants())
    stuck.emplace_back(process.pid, process.start_time);
  return stuck;
}

}  // namespace netcheck::system
