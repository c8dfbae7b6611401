// What goes on within a node, from lane to lane (NVLink, PCIe): measured after the rounds where teams are
// over all lanes, and compared between nodes. Pure.
//
// A node is slow inside when its slowest way falls short of the other nodes' median, by the rule that
// standing.h has for ways between nodes (0.8 of the median, less where the others differ), whenever it was
// measured and at least twice. No partner has a part in it, so none needs to be exonerated. It is said only
// where at least three nodes of one class of hardware were measured: of two that differ nobody knows which is
// the odd one.
#pragma once

#include <vector>

#include "judge/blame.h"
#include "judge/history.h"

namespace netcheck::judge {

/// How often each node's inside is measured.
inline constexpr std::uint32_t kInsideTimes = 2;

/// Nodes enough to compare have lanes that could reach each other, in a team over all of them.
[[nodiscard]] bool has_inside(const Plan& plan);

struct InsideSoFar {
  std::uint32_t steps = 0;
  std::uint32_t telling = 0;       ///< of them, those in which some way took long enough to be told as slow
  double median = 0, slowest = 0;  ///< bits/s of the ways in the last one; 0: none
};
[[nodiscard]] InsideSoFar inside_so_far(const History& history);

/// The nodes that are slow inside; Culprit::direction says so.
[[nodiscard]] std::vector<Culprit> slow_inside(const Plan& plan, const History& history);

/// Of ways between nodes and within them: all that a check found.
[[nodiscard]] Blame blame_of(const Plan& plan, const History& history);

}  // namespace netcheck::judge
