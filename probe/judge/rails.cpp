// See rails.h.
#include "judge/rails.h"

#include <algorithm>
#include <optional>

#include "judge/groups.h"

namespace netcheck::judge {
namespace {

std::vector<Rail> one_each(std::uint32_t lanes) {
  std::vector<Rail> rails;
  for (std::uint32_t lane = 0; lane < lanes; ++lane)
    rails.push_back({.lanes = {static_cast<std::uint16_t>(lane)}});
  return rails;
}

/// One port more, over which `lanes` go: what they were in becomes one rail.
void join(std::vector<Rail>& rails, const std::vector<std::uint16_t>& lanes) {
  Rail joined{.lanes = {}, .ports = 1};
  const auto is_in = [&](const Rail& rail) {
    return std::ranges::any_of(
        rail.lanes, [&](std::uint16_t lane) { return std::ranges::find(lanes, lane) != lanes.end(); });
  };
  for (const Rail& rail : rails)
    if (is_in(rail)) {
      joined.lanes.insert(joined.lanes.end(), rail.lanes.begin(), rail.lanes.end());
      joined.ports += rail.ports;
    }
  std::ranges::sort(joined.lanes);
  std::erase_if(rails, is_in);
  rails.push_back(std::move(joined));
}

/// As a node says; nullopt: it does not, or not of every lane.
std::optional<std::vector<Rail>> told_by(const NodePlan& node, std::uint32_t lanes) {
  if (!node.hardware) return std::nullopt;
  std::vector<Rail> rails = one_each(lanes);
  for (Rail& rail : rails)
    rail.ports = 0;
  for (const RailSpeed& port : node.hardware->rails) {
    std::vector<std::uint16_t> served;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
      if (std::ranges::find(port.gpus, node.lanes[lane]) != port.gpus.end())
        served.push_back(static_cast<std::uint16_t>(lane));
    if (!served.empty()) join(rails, served);
  }
  if (std::ranges::any_of(rails, [](const Rail& rail) { return rail.ports < 1; })) return std::nullopt;
  std::ranges::sort(rails, {}, [](const Rail& rail) { return rail.lanes.front(); });
  return rails;
}

}  // namespace

std::vector<Rail> rails_of(const Plan& plan) {
  const std::uint32_t lanes = rails(plan);
  if (plan.teaming == Teaming::per_lane) return one_each(lanes);
  std::vector<std::pair<std::vector<Rail>, std::size_t>> told;
  for (const NodePlan& node : plan.nodes) {
    const auto rails = told_by(node, lanes);
    if (!rails) continue;
    const auto same = std::ranges::find(told, *rails, &std::pair<std::vector<Rail>, std::size_t>::first);
    if (same == told.end())
      told.emplace_back(*rails, 1);
    else
      ++same->second;
  }
  for (const auto& [rails, times] : told)
    if (times * 2 > plan.nodes.size()) return rails;
  return one_each(lanes);
}

}  // namespace netcheck::judge
