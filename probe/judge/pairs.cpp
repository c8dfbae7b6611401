// See pairs.h.
#include "judge/pairs.h"

#include <algorithm>
#include <map>

#include "judge/groups.h"
#include "judge/standing.h"

namespace netcheck::judge {

std::optional<ShortWay> short_way(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  const auto& least = plan.thresholds.min_per_pair;
  if (!least || plan.nodes.empty() || rails(plan) == 0) return std::nullopt;
  const Standings standings(plan, edges, kWholeMedian);
  struct Sum {
    double rate = 0, unhindered = 0;
    std::uint32_t rails = 0, times = UINT32_MAX;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sum> ways;
  for (const Path& path : standings.paths()) {
    if (!path.lasting) continue;
    Sum& way = ways[{path.from, path.to}];
    way.rate += path.best;
    way.unhindered += path.best_unhindered;
    way.times = std::min(way.times, path.times);
    ++way.rails;
  }
  std::erase_if(ways, [&](const auto& way) {
    return way.second.rails < standings.lanes() || way.second.unhindered >= least->bits_per_second;
  });
  const auto worst = std::ranges::min_element(ways, {}, [](const auto& way) { return way.second.rate; });
  if (worst == ways.end()) return std::nullopt;
  return ShortWay{worst->first.first, worst->first.second, Rate{worst->second.rate}, worst->second.times};
}

}  // namespace netcheck::judge
