// After the first requeue of a job: Slurm lets it wait two minutes before it may start again. A helper that
// outlives the prolog takes the wait away where that is safe, and where the new exclusions leave the job
// nowhere to run it gives it the user's own back. As root, at most a minute and kMaxCalls calls. Whatever
// anybody else does to the job meanwhile ends the helper.
//
// What the two minutes are for: a node remembers for that long that a job of this id has been ended there.
// slurmd of 22.05 forgets it for a new run only if it has handled no job at all in the two seconds before;
// else it waits in vain for the prolog, and the node is drained. So the job may start early only while the
// nodes that it has been on have been idle for some seconds, and if it does not start at once the wait is put
// back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "contract/job.h"
#include "prolog/controller.h"
#include "prolog/facts.h"

namespace netcheck::prolog {

struct EarlyStart {
  JobRun run;                              ///< the refused one
  std::string target;                      ///< as scontrol takes it
  std::string user_list;                   ///< the user's own exclusions, to be restored; may be empty
  std::vector<std::string> may_return;     ///< nodes of the refused run that are not excluded
  std::vector<std::string> kill_switches;  ///< paths: once one is there, nothing is begun
};

/// Whether one of these paths is there.
[[nodiscard]] bool any_exists(const std::vector<std::string>& paths);

enum class Progress : std::uint8_t {
  waiting,    ///< for the job to be pending, and its nodes idle
  idle_once,  ///< its nodes were idle when last looked at
  let_go,     ///< it may start
};
enum class NextCall : std::uint8_t {
  wait,
  look_at_nodes,
  put_back,  ///< it did not start at once: the wait again
  restore,   ///< the user's exclusions, and the wait
  stop,
};
/// `standing`: nullopt = no longer listed. Pure.
[[nodiscard]] NextCall next_call(const EarlyStart& early, const std::optional<Standing>& standing,
                                 Progress progress);

enum class Nodes : std::uint8_t { idle, completing, taken };
/// Of sinfo's answer in nodes_state_format(); a node that is missing there is taken. Pure.
[[nodiscard]] Nodes nodes_state(std::string_view text, const std::vector<std::string>& names);
[[nodiscard]] std::string nodes_state_format();

/// The helper itself, in this process, until it is done or `deadline`; says in one clause what came of it.
[[nodiscard]] std::string start_early(const EarlyStart& early, Controller controller, Time deadline);

/// Runs `body` in a process that outlives this one: a session of its own, no descriptor of ours, SIGALRM
/// after `limit` at the latest. Only for a process of one thread. False: no process could be started.
[[nodiscard]] bool detach(const std::function<void()>& body, std::chrono::seconds limit);

/// Both of the above. False: no helper could be started, and the job waits Slurm's two minutes.
[[nodiscard]] bool help_to_start(const EarlyStart& early, const Controller& controller);

}  // namespace netcheck::prolog
