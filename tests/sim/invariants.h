// What must be true of every check, whatever went wrong in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "scenario.h"
#include "world.h"

namespace netcheck::sim {

/// Violations in words; empty: all held.
[[nodiscard]] std::vector<std::string> violations(const Scenario& scenario, const Outcome& outcome);

/// The leader's verdict; nullopt when it gave none (dead, stopped, never there).
[[nodiscard]] std::optional<judge::Verdict> verdict_of(const Outcome& outcome);

/// The same of its samples alone, whatever is said of hardware.
[[nodiscard]] std::optional<judge::Verdict> network_verdict_of(const Outcome& outcome);

/// The fault's node (or link) is what the verdict names.
[[nodiscard]] bool names_fault(const Scenario& scenario, const judge::Verdict& verdict);

}  // namespace netcheck::sim
