// Whether this job's network is checked at all, and whether anything may follow. Pure: facts in, decision
// out.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policy/policy.h"

namespace netcheck {

/// What is known of a job and its first node when the prolog begins. nullopt: not known, and then no reason
/// against a check.
struct Circumstances {
  bool asked = false;         ///< --netcheck, or a word in its comment
  bool switched_off = false;  ///< a kill switch is there
  std::uint32_t nodes = 0;    ///< 0: not known
  std::string user, account;
  std::vector<std::string> groups;  ///< of the user; looked up only where allow_groups is set
  std::optional<bool> owns_nodes;
  std::optional<Ns> walltime;  ///< its time limit; kUnlimited where there is none
  std::optional<Ns> up;        ///< the node, since it booted
};
inline constexpr Ns kUnlimited = Ns::max();

/// The latest pass of the very same nodes together.
struct PastPass {
  Ns ago{};
  Rate busbw;
  std::string op;
  std::optional<Rate> min_per_rail, min_per_pair;  ///< what it was held against
  std::string with;                                ///< the settings it was measured with: measured_with()
};

struct CheckIt {};
/// Measured and told; nothing is done about it.
struct WarnOnly {
  std::string reason;
};
struct Skip {
  std::string reason;
  bool said = true;  ///< in the job's line; false: nobody asked, or everything is switched off
};
using Conduct = std::variant<CheckIt, WarnOnly, Skip>;

/// Of several reasons, the one named is the first in this order: kill switch, mode, allow, shared,
/// min_walltime, min_interval, settle.
[[nodiscard]] Conduct when(const Policy& policy, const Circumstances& job,
                           const std::optional<PastPass>& history);

/// The policy under which nothing is done: annotated, no drain. The sources say why.
[[nodiscard]] Policy only_warning(Policy policy, const std::string& reason);

}  // namespace netcheck
