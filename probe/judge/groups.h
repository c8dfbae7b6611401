// How the nodes of a check are divided into teams: one per rail, and beyond group_size nodes one per group.
// Pure. Used by the whole room.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// Teams of a partition: 0 = consecutive groups, 1 = node i in group i mod G; one team per rail and group.
/// Groups differ in size by at most one and none is smaller than 2 (n ≥ 2). Ids start at first_id.
[[nodiscard]] std::vector<Team> partition(const Plan& plan, int which, std::uint32_t first_id);

/// Groups of a partition: 1 up to group_size nodes.
[[nodiscard]] std::uint32_t group_count(const Plan& plan);

/// Rails that every node has: the smallest number of lanes.
[[nodiscard]] std::uint32_t rails(const Plan& plan);

}  // namespace netcheck::judge
