// Which nodes are measured against which, round by round. Pure. Used by rounds.cpp.
#pragma once

#include <optional>
#include <vector>

#include "judge/blame.h"
#include "judge/evidence.h"
#include "judge/standing.h"

namespace netcheck::judge {

/// No node in two pairs.
using Matching = std::vector<Pair>;

/// (0→1)(2→3)… inside each group; with an odd number the last is idle.
[[nodiscard]] Matching neighbours(const Plan& plan, int which);
/// i → i + half inside each group; with an odd number the middle one is idle. None for a group of two: it has
/// no second pair.
[[nodiscard]] Matching across(const Plan& plan, int which);
/// In each odd group of three and more the two that were idle, one in `neighbours` and one in `across`: they
/// have met one partner each, and not each other. None for even groups.
[[nodiscard]] Matching left_over(const Plan& plan, int which);
/// `fixed`, and of the nodes not in it every suspect with a node proven good in what the suspect is doubted
/// for, that it has not met; where there is none, with another suspect. Inside the groups of `which`.
[[nodiscard]] Matching suspects_with_good(const Plan& plan, const Standings& standings, int which,
                                          Matching fixed = {});
/// Ways of the ring inside each group that nobody has gone alone yet: the gate took each of them, and rounds
/// 0 and 1 only half. The last of a group goes to its first.
[[nodiscard]] Matching untried_ring(const Plan& plan, const Standings& standings, int which);
/// The pair to be measured with nothing else running: one that carried nothing, once; or one slow with
/// others, its nodes proven good elsewhere (or everything slow), and not measured alone yet.
[[nodiscard]] std::optional<Pair> worth_alone(const Plan& plan, const Standings& standings,
                                              const Blame& blame);
/// Each pair is inside one group of `which`: its teams can measure it.
[[nodiscard]] bool inside_groups(const Plan& plan, int which, const Matching& pairs);

}  // namespace netcheck::judge
