// What decides whether a job is checked at all: its time limit, whether it owns its nodes, its user's groups,
// how long the node has been up. As root. Parsing is pure.
//
// The prolog's environment says most of it from Slurm 23.11 on; before, `squeue -O` is asked once, by the
// job's first node alone, for fields that are numbers or enumerations.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "policy/when.h"
#include "prolog/controller.h"
#include "prolog/job.h"

namespace netcheck::prolog {

/// nullopt: not said.
struct SlurmFacts {
  std::optional<Ns> walltime;        ///< kUnlimited where there is none
  std::optional<std::string> share;  ///< OverSubscribe as squeue prints it: "NO", "OK", "YES", "USER", "MCS"
};

/// From SLURM_JOB_START_TIME, SLURM_JOB_END_TIME, SLURM_JOB_OVERSUBSCRIBE, as far as they are there. Pure.
[[nodiscard]] SlurmFacts facts_from_environment(const std::function<const char*(const char*)>& get);

/// The fields that read_facts expects, as squeue's --Format.
[[nodiscard]] std::string facts_format();
/// The row whose JobID is `job` in squeue's answer; nothing where there is none, or several. Pure.
[[nodiscard]] SlurmFacts read_facts(std::string_view text, std::uint32_t job);

/// "30", "30:00", "1:30:00", "2-00:00:00", "UNLIMITED"; nullopt for anything else. Pure.
[[nodiscard]] std::optional<Ns> parse_time_limit(std::string_view text);

/// Whether nobody else's job can be on the job's nodes: by `share`, or because it has as many CPUs on each of
/// them as this one has. `cpus_per_node`: SLURM_JOB_CPUS_PER_NODE, "4(x3),2"; "" where it is not set. That
/// the other nodes are no larger than this one is taken for granted: to ask would be one more call for each
/// job, and a site where that happens has --exclusive. Pure.
[[nodiscard]] std::optional<bool> owns_nodes(const std::optional<std::string>& share,
                                             std::string_view cpus_per_node, std::uint32_t cpus_here);

/// What the site's rules look at.
[[nodiscard]] JobKind kind_of(const Job& job);

/// What every node of the job knows: who asked for what, and whether the site's own switch is off. Groups are
/// looked up only where `policy` names some.
[[nodiscard]] Circumstances known_to_all(const Job& job, bool asked, const Policy& policy, Time deadline);

/// What the job's first node makes of it, asking Slurm only for what the policy needs, in one call at most.
/// `remarks`: what could not be found out.
[[nodiscard]] Conduct conduct_of_first(Circumstances known, const Job& job, const Policy& policy,
                                       Controller& controller, Time deadline,
                                       std::vector<std::string>& remarks);

/// Whether there is a file of this name, of whatever kind.
[[nodiscard]] bool exists(const std::string& path);

}  // namespace netcheck::prolog
