// See groups.h.
#include "judge/groups.h"

#include <algorithm>
#include <set>

namespace netcheck::judge {
namespace {

/// Most nodes of a group.
std::uint32_t group_limit(const Plan& plan) {
  std::uint32_t size = plan.group_size;
  if (plan.teaming == Teaming::over_lanes && plan.max_world > 0) {
    std::size_t most = 1;
    for (const NodePlan& node : plan.nodes)
      most = std::max(most, node.lanes.size());
    size = std::min(size, plan.max_world / static_cast<std::uint32_t>(most));
  }
  return std::max(size, 2u);
}

std::uint32_t lanes_of(const Plan& plan, const Group& group) {
  std::size_t lanes = 0;
  for (const std::uint32_t node : group)
    lanes += plan.nodes[node].lanes.size();
  return static_cast<std::uint32_t>(lanes);
}

Team team_over_lanes(const Plan& plan, const Group& group, std::uint32_t id) {
  Team team{.id = id, .ranks = {}};
  team.ranks.reserve(lanes_of(plan, group));
  for (const std::uint32_t node : group)
    for (std::size_t lane = 0; lane < plan.nodes[node].lanes.size(); ++lane)
      team.ranks.push_back({.node = node, .lane = static_cast<std::uint16_t>(lane)});
  return team;
}

Team team_of_lane(const Group& group, std::uint32_t lane, std::uint32_t id) {
  Team team{.id = id, .ranks = {}};
  team.ranks.reserve(group.size());
  for (const std::uint32_t node : group)
    team.ranks.push_back({.node = node, .lane = static_cast<std::uint16_t>(lane)});
  return team;
}

}  // namespace

std::uint32_t rails(const Plan& plan) {
  std::size_t least = plan.nodes.empty() ? 0 : plan.nodes.front().lanes.size();
  for (const NodePlan& node : plan.nodes)
    least = std::min(least, node.lanes.size());
  return static_cast<std::uint32_t>(std::min<std::size_t>(least, UINT16_MAX));
}

std::uint32_t group_count(const Plan& plan) {
  const auto nodes = static_cast<std::uint32_t>(plan.nodes.size());
  const std::uint32_t size = group_limit(plan);
  const std::uint32_t wanted = (nodes + size - 1) / size;
  // No group of one: nothing would cross a network. Three nodes in groups of two stay one group.
  return std::max(1u, std::min(wanted, nodes / 2));
}

std::vector<Group> groups_of(const Plan& plan, int which) {
  const auto nodes = static_cast<std::uint32_t>(plan.nodes.size());
  const std::uint32_t groups = group_count(plan);
  std::vector<Group> members(groups);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    // Consecutive: the first nodes % groups groups take one more.
    const auto spread = static_cast<std::uint64_t>(node) * groups / nodes;
    members[which == 0 ? spread : node % groups].push_back(node);
  }
  return members;
}

std::vector<std::uint32_t> team_sizes(const Plan& plan) {
  std::set<std::uint32_t> sizes;
  for (const Group& group : groups_of(plan, 0)) {
    if (plan.teaming == Teaming::over_lanes)
      sizes.insert(lanes_of(plan, group));
    else
      sizes.insert(static_cast<std::uint32_t>(group.size()));
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<Team> partition(const Plan& plan, int which, std::uint32_t first_id) {
  const std::uint32_t lanes = rails(plan);
  if (plan.nodes.size() < 2 || lanes == 0) return {};
  const auto groups = groups_of(plan, which);
  std::vector<Team> teams;
  if (plan.teaming == Teaming::over_lanes) {
    teams.reserve(groups.size());
    for (const Group& group : groups)
      teams.push_back(team_over_lanes(plan, group, first_id++));
    return teams;
  }
  teams.reserve(groups.size() * lanes);
  for (const Group& group : groups)
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
      teams.push_back(team_of_lane(group, lane, first_id++));
  return teams;
}

}  // namespace netcheck::judge
