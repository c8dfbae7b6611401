// Which nodes have passed together, and when: for min_interval. As root, in RUN_DIR/passes, on the first node
// of each job; written only where a min_interval is set.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "judge/verdict.h"
#include "policy/when.h"

namespace netcheck::prolog {

/// One pass as a line, and back; `now`: seconds since boot, so that a node that restarts forgets. nullopt:
/// not one, or of the future. Pure.
[[nodiscard]] std::string write_pass(const PastPass& pass, std::int64_t now);
[[nodiscard]] std::optional<PastPass> read_pass(std::string_view line, std::int64_t now);

/// The latest pass of these nodes, in whatever order; nullopt: none is known.
[[nodiscard]] std::optional<PastPass> last_pass(const std::string& run_directory,
                                                const std::vector<std::string>& nodes);
[[nodiscard]] Result<void> remember_pass(const std::string& run_directory,
                                         const std::vector<std::string>& nodes, const PastPass& pass);

/// Where the policy has a min_interval, remembers a pass and, after a fail on the same nodes, by whosever
/// threshold, forgets it.
[[nodiscard]] Result<void> remember_pass(const std::optional<judge::Verdict>& verdict, const Policy& policy,
                                         const std::vector<std::string>& nodes);

}  // namespace netcheck::prolog
