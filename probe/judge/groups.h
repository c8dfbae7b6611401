// How the nodes of a check are divided into teams: one per rail or one over all of them (Plan::teaming), and
// beyond group_size nodes one per group. Pure. Used by the whole room.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// Nodes by index, in order.
using Group = std::vector<std::uint32_t>;
/// Groups of a partition.
[[nodiscard]] std::vector<Group> groups_of(const Plan& plan, int which);

/// Teams of a partition: 0 = consecutive groups, 1 = node i in group i mod G; in each group one team per rail
/// that all nodes have, or one of all lanes of its nodes, node by node. Groups differ in size by at most one
/// and none is smaller than 2 (n ≥ 2). Ids start at first_id.
[[nodiscard]] std::vector<Team> partition(const Plan& plan, int which, std::uint32_t first_id);

/// Groups of a partition: 1 up to group_size nodes, or up to max_world ranks.
[[nodiscard]] std::uint32_t group_count(const Plan& plan);

/// Ranks of the teams of the first partition, each number once.
[[nodiscard]] std::vector<std::uint32_t> team_sizes(const Plan& plan);

/// Rails that every node has: the smallest number of lanes.
[[nodiscard]] std::uint32_t rails(const Plan& plan);

}  // namespace netcheck::judge
