// Ways between two nodes against what the site asks of them: min_per_pair, and, where the gate does not tell
// rails apart (Teaming::over_lanes), min_per_rail. Pure. The script asks what to measure again, the verdict
// what is proven, the supervisor where slow ways go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/edges.h"
#include "judge/evidence.h"

namespace netcheck::judge {

/// One way that is too slow: over all its rails, or on one.
struct ShortWay {
  std::uint32_t from = 0, to = 0;
  std::optional<std::uint16_t> lane;  ///< the first of the rail's lanes; nullopt: all rails together
  Rate rate;                          ///< of all rails together, or of the one
  Rate asked;                         ///< of it
  std::uint32_t times = 0;            ///< how often it was measured: one slow moment is no slow way
};

/// Something is asked of ways, and so they have to be measured.
[[nodiscard]] bool asks_of_ways(const Plan& plan);

/// The one that has least of what is asked; nullopt: there is none, or nothing is asked. Brief figures accuse
/// nobody, and a way of which not all lanes were measured is not known.
[[nodiscard]] std::optional<ShortWay> short_way(const Plan& plan, const std::vector<EdgeFigure>& edges);

/// "n1>n3: 61.2Gbps of min_per_pair=150Gbps"
[[nodiscard]] std::string describe(const ShortWay& way, const Plan& plan);

/// Every way that a fail may rest on besides the gate: slower than the others by the rules of blame, below
/// the site's floor of a lane, or short. Each two nodes and direction once.
[[nodiscard]] std::vector<Pair> slow_ways(const Plan& plan, const std::vector<EdgeFigure>& edges);

}  // namespace netcheck::judge
