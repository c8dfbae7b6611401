// The transfers of a round: between which ranks, of how many bytes, by what is known of the rates so far.
// Pure. Used by rounds.cpp, which says what is to be measured and how long it may take.
#pragma once

#include <optional>
#include <vector>

#include "judge/inside.h"
#include "judge/matching.h"
#include "judge/rounds.h"
#include "judge/standing.h"

namespace netcheck::judge {

/// What a half-round shall take at the median rate of the edges so far: long against bursts, and a node at a
/// tenth still ends within the allowance.
inline constexpr Ns kAtMedian = std::chrono::milliseconds(80);
/// When rounds only compare, or bytes do not arrive, they are short; shorter still, and what a shaper or a
/// switch lets through at first reads as 2 % of the rate.
inline constexpr Ns kBrief = std::chrono::milliseconds(100);

struct Rates {
  std::vector<double> median;  ///< by rail, of the edges that count so far, or keep_pace; 0: none
  bool dead = false;           ///< some edge is known to carry nothing
};

/// Everything that the next step of the rounds is made from.
struct Situation {
  const Plan& plan;
  const History& history;
  const Gate& gate;
  Need need;
  Ns left;
  std::vector<EdgeFigure> edges;
  Standings standings;
  Rates rates;
  TeamIndex teams;
};

/// The rates so far, as sizes go by them.
[[nodiscard]] Rates rates_of(const Standings& standings);
/// When all ways of the last half-round are faster than most until then, their rate is what sizes go by. Of
/// three nodes with the first at a hundredth, the one way that it is not on is else measured with so few
/// bytes that its figure, over too short a time, counts for nothing.
void keep_pace(Situation& now);

/// Bytes did not arrive.
[[nodiscard]] bool in_vain(const Situation& now);
/// Nobody is looked for.
[[nodiscard]] bool only_compares(const Situation& now);

/// The last Measure of pairs and what came of it; nullptr before the first.
[[nodiscard]] const Done* last_round(const History& history);

/// bits/s of one way on a lane of this team, of the fastest, so that none is brief; 0: not known.
[[nodiscard]] double median_on(const Situation& now, const Team& team);
/// Bytes of a transfer in this team.
[[nodiscard]] std::uint64_t bytes_on(const Situation& now, const Team& team);

/// The pairs as batches on the joined teams, one per team that has a pair.
[[nodiscard]] std::vector<Batch> batches_for(const Situation& now, const Form& form, const Matching& pairs);
/// Each node's lanes in a ring among themselves, one way or the other. The first time of a size that the
/// network would take; then never so much that the slowest would not end.
[[nodiscard]] std::vector<Batch> batches_inside(const Situation& now, const Form& form,
                                                const InsideSoFar& so_far, bool back);

}  // namespace netcheck::judge
