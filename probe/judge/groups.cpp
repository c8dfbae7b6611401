// See groups.h.
#include "judge/groups.h"

#include <algorithm>

namespace netcheck::judge {

std::uint32_t rails(const Plan& plan) {
  std::size_t least = plan.nodes.empty() ? 0 : plan.nodes.front().lanes.size();
  for (const NodePlan& node : plan.nodes)
    least = std::min(least, node.lanes.size());
  return static_cast<std::uint32_t>(std::min<std::size_t>(least, UINT16_MAX));
}

std::uint32_t group_count(const Plan& plan) {
  const auto nodes = static_cast<std::uint32_t>(plan.nodes.size());
  const std::uint32_t size = std::max(plan.group_size, 2u);
  const std::uint32_t wanted = (nodes + size - 1) / size;
  // No group of one: nothing would cross a network. Three nodes in groups of two stay one group.
  return std::max(1u, std::min(wanted, nodes / 2));
}

std::vector<Team> partition(const Plan& plan, int which, std::uint32_t first_id) {
  const auto nodes = static_cast<std::uint32_t>(plan.nodes.size());
  if (nodes < 2) return {};
  const std::uint32_t groups = group_count(plan);
  const std::uint32_t lanes = rails(plan);
  std::vector<std::vector<std::uint32_t>> members(groups);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    // Consecutive: the first nodes % groups groups take one more.
    const auto spread = static_cast<std::uint64_t>(node) * groups / nodes;
    members[which == 0 ? spread : node % groups].push_back(node);
  }
  std::vector<Team> teams;
  teams.reserve(static_cast<std::size_t>(groups) * lanes);
  for (const auto& group : members)
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      Team team{.id = first_id++, .ranks = {}};
      team.ranks.reserve(group.size());
      for (const std::uint32_t node : group)
        team.ranks.push_back({.node = node, .lane = static_cast<std::uint16_t>(lane)});
      teams.push_back(std::move(team));
    }
  return teams;
}

}  // namespace netcheck::judge
