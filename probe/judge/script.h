// The check's script: what to measure next. Pure: the same history gives the same step, so a run can be read,
// replayed and simulated. The leader alone asks.
//
//   form the gate's teams (one per rail and group) → connect → grow the size until bus bandwidth gains < 3 %,
//   memory or the slice ends → (beyond group_size: the same for the second partition at the size found) →
//   passes, a threshold was set, none for pairs, and rails are alike: stop → else rounds of one-way
//   matchings: neighbours, i with i + n/2, whoever was idle in an odd group; and where somebody is looked
//   for, suspects × good, the ring's untried ways, one slow pair alone → failed, and nobody isolated: the
//   gate once more → stop
#pragma once

#include "judge/history.h"

namespace netcheck::judge {

/// `elapsed`: since the script began. A step is never proposed that could not end within plan.budget.
[[nodiscard]] Step next(const Plan& plan, const History& history, Ns elapsed);

/// What next() counts for the answers of a step beyond its allowance: some RTTs over the measured links. The
/// leader keeps its own grace for lost answers out of plan.budget.
inline constexpr Ns kAnswering = std::chrono::milliseconds(200);
/// next() says Stop after so many steps whatever the history: a check takes about 25 at most.
inline constexpr std::size_t kMaxSteps = 64;

}  // namespace netcheck::judge
