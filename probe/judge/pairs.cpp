// See pairs.h.
#include "judge/pairs.h"

#include <algorithm>
#include <map>
#include <set>

#include "judge/groups.h"
#include "judge/standing.h"

namespace netcheck::judge {

namespace {

/// All ways under min_per_pair.
std::vector<ShortWay> short_ways(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  const auto& least = plan.thresholds.min_per_pair;
  if (!least || plan.nodes.empty() || rails(plan) == 0) return {};
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
  std::vector<ShortWay> all;
  for (const auto& [nodes, way] : ways)
    all.push_back({nodes.first, nodes.second, Rate{way.rate}, way.times});
  return all;
}

/// Of one rail, what the site asks; bits/s, 0: nothing.
double floor_of_rail(const Plan& plan) {
  double floor = 0;
  if (plan.thresholds.site_floor) floor = plan.thresholds.site_floor->bits_per_second / rails(plan);
  if (plan.thresholds.min_per_rail) floor = std::max(floor, plan.thresholds.min_per_rail->bits_per_second);
  return floor;
}

}  // namespace

std::optional<ShortWay> short_way(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  const auto ways = short_ways(plan, edges);
  const auto worst = std::ranges::min_element(ways, {}, &ShortWay::rate);
  if (worst == ways.end()) return std::nullopt;
  return *worst;
}

std::vector<Pair> slow_ways(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  if (plan.nodes.empty() || rails(plan) == 0) return {};
  std::set<Pair> found;
  const double floor = floor_of_rail(plan);
  const Standings standings(plan, edges, kBlameFraction);
  for (const Path& path : standings.paths())
    if (standings.slow(path) || (path.lasting && path.best_unhindered < floor))
      found.insert({path.from, path.to});
  for (const ShortWay& way : short_ways(plan, edges))
    found.insert({way.from, way.to});
  return {found.begin(), found.end()};
}

}  // namespace netcheck::judge
