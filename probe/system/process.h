// Starting programs and getting rid of them: own process group, clean environment, only the descriptors
// named, signals and OOM score reset; killed with the whole group and all descendants, reaped, every wait
// bounded. Used by the supervisor (root), the probe and the fabric's parent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "system/descriptor.h"

namespace netcheck::system {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};
/// From the account database, asked in a child of its own: a directory service that does not answer hangs its
/// caller for good. Error: no such account, or no answer by `deadline`.
[[nodiscard]] Result<Account> find_account(const std::string& name, Time deadline);

/// The names of a user's groups, `gid` among them, asked likewise. Empty where there is no answer by
/// `deadline`.
[[nodiscard]] std::vector<std::string> find_groups(const std::string& user, gid_t gid, Time deadline);

struct Launch {
  std::string program;                           ///< absolute
  std::vector<std::string> arguments;            ///< without argv[0]
  std::vector<std::string> environment;          ///< "K=V"; nothing is inherited
  std::vector<std::pair<int, int>> descriptors;  ///< (ours, number in the child). 0, 1, 2 become /dev/null
                                                 ///< unless named; all others are closed
  std::optional<Account>
      account;  ///< drop to it: setgroups to its group only, setresgid, setresuid, no_new_privs
  std::optional<std::uint64_t> max_tasks;  ///< processes and threads that `account` may have on this host, in
                                           ///< all; ignored without one: root is exempt
  bool die_with_parent = true;       ///< PR_SET_PDEATHSIG, SIGKILL, set after the privileges are dropped
  std::optional<int> oom_score_adj;  ///< 0 for children of slurmd, whose −1000 is inherited
  Ns start_patience = std::chrono::seconds(5);  ///< until it runs: a network filesystem may not answer
};

/// A running child: leader of its own session and process group.
class Process {
 public:
  Process() = default;
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();  ///< kill_group() and a bounded wait

  [[nodiscard]] static Result<Process> start(const Launch& launch);
  /// A copy of this process that ends with what `body` returns, or when this process does: for a call that
  /// may hang. It holds every descriptor that is open here. Only for a process of one thread.
  [[nodiscard]] static Result<Process> fork(const std::function<int()>& body);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }  ///< readable when it has ended; for Loop::watch
  /// Exit status as waitpid gives it, when it has ended; does not block.
  [[nodiscard]] std::optional<int> poll();
  /// SIGKILL to the whole group. Does not wait.
  void kill_group() noexcept;
  /// Waits until `deadline`; nullopt when it has not ended by then.
  [[nodiscard]] std::optional<int> wait(Time deadline);
  /// Time of start in clock ticks since boot (/proc/PID/stat field 22): with the pid, names one process for
  /// ever.
  [[nodiscard]] std::uint64_t start_time() const { return start_time_; }

 private:
  pid_t pid_ = -1;
  Descriptor pidfd_;
  std::uint64_t start_time_ = 0;
  std::optional<int> status_;
};

/// "exit 3", "signal 9 (Killed)".
[[nodiscard]] std::string describe_status(int wait_status);

/// Runs to its end and collects at most `max_output` bytes of stdout and of stderr; killed at `deadline`.
struct Finished {
  int status = 0;
  std::string output, errors;
};
[[nodiscard]] Result<Finished> run_to_end(Launch launch, Time deadline, std::size_t max_output = 1 << 20);

/// This process becomes the one to which orphans below it are given.
void become_subreaper();
/// SIGKILL to every descendant (found through /proc, repeatedly, since they may fork) and reaps them until
/// none is left or `deadline` comes. Returns those that would not end: (pid, start_time).
/// With `account`, every process of that account goes too, in one step, which those that fork faster than
/// /proc is read do not escape: only for an account that runs nothing else here.
[[nodiscard]] std::vector<std::pair<pid_t, std::uint64_t>> end_descendants(
    Time deadline, const std::optional<Account>& account = std::nullopt);
/// Start time of a living process; nullopt when there is none. A zombie counts as ended.
[[nodiscard]] std::optional<std::uint64_t> start_time_of(pid_t pid);

/// Undumpable: no core, no ptrace by the same user. First thing a process does that holds secrets.
void become_undumpable();

}  // namespace netcheck::system
