// Ending a whole tree of processes: groups, sessions and double forks included, since this process is their
// subreaper.
#include <grp.h>
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

constexpr int kKillerPasses = 20;  // milliseconds for a child that makes three system calls
constexpr int kPauseMs = 5;        // between passes: a killed process needs some scheduling to end

void reap_all() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

/// kill(-1) reaches what the caller may signal, itself excepted; so a child becomes the account first.
void kill_all_of(const Account& account) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool become = ::setgroups(0, nullptr) == 0 &&
                        ::setresgid(account.gid, account.gid, account.gid) == 0 &&
                        ::setresuid(account.uid, account.uid, account.uid) == 0;
    if (become && account.uid != 0) ::kill(-1, SIGKILL);
    ::_exit(0);
  }
  // It makes three calls; but once it is the account, the account's processes may stop it, so the wait is
  // bounded. What is left of it is a descendant like others: the pass that follows kills and reaps it.
  for (int i = 0; pid > 0 && i < kKillerPasses && ::waitpid(pid, nullptr, WNOHANG) == 0; ++i)
    ::poll(nullptr, 0, 1);
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

std::vector<std::pair<pid_t, std::uint64_t>> end_descendants(Time deadline,
                                                             const std::optional<Account>& account) {
  for (;;) {
    if (account) kill_all_of(*account);
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
