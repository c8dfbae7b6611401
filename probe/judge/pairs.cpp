// See pairs.h.
#include "judge/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "judge/names.h"
#include "judge/rails.h"
#include "judge/standing.h"

namespace netcheck::judge {
namespace {

struct Sum {
  double rate = 0, unhindered = 0;
  std::uint32_t lanes = 0, times = UINT32_MAX;
};
using Ways = std::map<std::pair<std::uint32_t, std::uint32_t>, Sum>;

/// What the ways carry on these lanes together; without those of which some lane is not known.
Ways sums(const Standings& standings, const std::vector<std::uint16_t>& lanes) {
  Ways ways;
  for (const Path& path : standings.paths()) {
    if (!path.lasting || std::ranges::find(lanes, path.lane) == lanes.end()) continue;
    Sum& way = ways[{path.from, path.to}];
    way.rate += path.best;
    way.unhindered += path.best_unhindered;
    way.times = std::min(way.times, path.times);
    ++way.lanes;
  }
  std::erase_if(ways, [&](const auto& way) { return way.second.lanes < lanes.size(); });
  return ways;
}

/// Those that carry less than is asked.
void find_short(const Ways& ways, double ports, Rate asked, std::optional<std::uint16_t> lane,
                std::vector<ShortWay>& found) {
  for (const auto& [ends, sum] : ways)
    if (sum.unhindered / ports < asked.bits_per_second)
      found.push_back({ends.first, ends.second, lane, Rate{sum.rate / ports}, asked, sum.times});
}

std::vector<ShortWay> short_ways(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  if (!asks_of_ways(plan) || plan.nodes.empty()) return {};
  const Standings standings(plan, edges, kWholeMedian);
  if (standings.lanes() == 0) return {};
  std::vector<ShortWay> found;
  const auto rails = rails_of(plan);
  if (const auto& least = plan.thresholds.min_per_pair) {
    std::vector<std::uint16_t> all;
    for (const Rail& rail : rails)
      all.insert(all.end(), rail.lanes.begin(), rail.lanes.end());
    find_short(sums(standings, all), 1, *least, std::nullopt, found);
  }
  if (plan.thresholds.min_per_rail && plan.teaming == Teaming::over_lanes)
    for (const Rail& rail : rails)
      find_short(sums(standings, rail.lanes), rail.ports, *plan.thresholds.min_per_rail, rail.lanes.front(),
                 found);
  return found;
}

}  // namespace

bool asks_of_ways(const Plan& plan) {
  return plan.thresholds.min_per_pair ||
         (plan.thresholds.min_per_rail && plan.teaming == Teaming::over_lanes);
}

std::optional<ShortWay> short_way(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  const auto ways = short_ways(plan, edges);
  const auto worst = std::ranges::min_element(
      ways, {}, [](const ShortWay& way) { return way.rate.bits_per_second / way.asked.bits_per_second; });
  if (worst == ways.end()) return std::nullopt;
  return *worst;
}

std::vector<Pair> slow_ways(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  if (plan.nodes.empty()) return {};
  std::set<Pair> found;
  const Standings standings(plan, edges, kBlameFraction);
  const auto floors = floors_of(plan);
  for (const Path& path : standings.paths())
    if (standings.slow(path) || (path.lasting && path.best_unhindered < floors.at(path.lane)))
      found.insert({path.from, path.to});
  for (const ShortWay& way : short_ways(plan, edges))
    found.insert({way.from, way.to});
  return {found.begin(), found.end()};
}

std::string describe(const ShortWay& way, const Plan& plan) {
  std::string rail;
  if (way.lane) rail = "/" + lane_name(plan, way.from, *way.lane);
  return fmt::format("{}>{}{}: {} of {}={}", node_name(plan, way.from), node_name(plan, way.to), rail,
                     format_rate(way.rate), way.lane ? "min_per_rail" : "min_per_pair",
                     format_rate(way.asked, true));
}

}  // namespace netcheck::judge
