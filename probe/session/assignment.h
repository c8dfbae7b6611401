// What the supervisor hands the probe: which run, which nodes, what is to be measured against what, and how
// long it may take. Written by the supervisor (root), read by the probe (JSON on a pipe). No secrets in it.
#pragma once

#include <string>
#include <vector>

#include "contract/job.h"
#include "contract/json.h"
#include "policy/policy.h"

namespace netcheck::session {

struct Assignment {
  Roster roster;
  Policy policy;    ///< effective; its fabric is a module's name, never "auto"
  Time deadline{};  ///< the probe has reported by then; CLOCK_MONOTONIC of this node
  Time rendezvous_deadline{};
  /// Of the leader: why this job is not to be measured; "" when it is. The others learn it from the leader.
  std::string not_measured;
  std::string agreement;  ///< policy hash: must be equal on all nodes
  /// Why this node can take no part, for the leader to say; nothing is measured then. Empty: it takes part.
  std::string declined;
  /// The job's GPUs on this node, as Slurm numbers them: "gpu:0". Empty where it has none.
  std::vector<std::string> gpus;
};

[[nodiscard]] Json to_json(const Assignment& assignment);
/// Throws Malformed.
[[nodiscard]] Assignment assignment_from_json(const Json& value);

}  // namespace netcheck::session
