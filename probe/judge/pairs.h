// Ways between two nodes against what the site asks. Pure. The script asks what to measure again, the verdict
// what is proven, the supervisor where the slow ways go.
#pragma once

#include <optional>
#include <vector>

#include "judge/edges.h"
#include "judge/evidence.h"

namespace netcheck::judge {

/// One way under min_per_pair, over all its rails.
struct ShortWay {
  std::uint32_t from = 0, to = 0;
  Rate rate;
  std::uint32_t times = 0;  ///< how often it was measured: one slow moment is no slow way
};

/// The slowest of them; nullopt: there is none, or nothing is asked of pairs. Brief figures accuse nobody,
/// and a way of which not all rails were measured is not known.
[[nodiscard]] std::optional<ShortWay> short_way(const Plan& plan, const std::vector<EdgeFigure>& edges);

/// Every way that a fail may rest on besides the gate: slower than the others by the rules of blame, below
/// the site's floor of a rail, or under min_per_pair. Each two nodes and direction once.
[[nodiscard]] std::vector<Pair> slow_ways(const Plan& plan, const std::vector<EdgeFigure>& edges);

}  // namespace netcheck::judge
