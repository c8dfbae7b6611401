// What in the site's file does nothing because what it names is not there: users, groups, accounts,
// partitions, a job that Slurm does not requeue; and which fabric modules it asks for. Pure: facts in,
// findings out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/json.h"
#include "doctor/finding.h"
#include "doctor/slurm.h"
#include "policy/policy.h"

namespace netcheck::doctor {

/// All names in allow_users and its like, of the sections and of each rule, each once.
struct AllowedNames {
  std::vector<std::string> users, groups, accounts;
};
[[nodiscard]] AllowedNames allowed_names(const Site& site);

struct SiteFacts {
  std::vector<std::string> unknown_users, unknown_groups;  ///< to this node
  std::optional<std::vector<std::string>> accounts;        ///< Slurm's; nullopt: not asked, or no answer
  std::optional<std::vector<std::string>> partitions;      ///< the same
};
/// The lines of what a program wrote, without empty ones.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);

[[nodiscard]] Findings check_site(const Site& site, const SiteFacts& facts);

/// The module that measures over GPUs.
inline constexpr const char* kNccl = "nccl";
/// The fabric modules that jobs without GPUs are measured with, the sections' first, each once. A rule that
/// says "nccl" is for nodes with GPUs.
[[nodiscard]] std::vector<std::string> plain_modules(const Site& site);
/// Whether the sections or any rule have jobs measured over their GPUs.
[[nodiscard]] bool measures_gpus(const Site& site);
/// Of what rules alone ask for, and they may be for other nodes: a failure is a warning that says so.
[[nodiscard]] Findings for_rules_alone(Findings findings);

/// Whether Slurm lets jobs be requeued or held, where the site wants that.
[[nodiscard]] Findings check_requeue(const SlurmConfig& config, const Site& site);

}  // namespace netcheck::doctor
