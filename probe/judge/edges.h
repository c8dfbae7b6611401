// One-way transfers as figures: what the blame rounds' samples say of each way between two nodes on one rail.
// Pure. Used by the script, the blame and the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// A transfer says something of two things: its sender's transmit and its receiver's receive.
/// Or it went on within a node.
enum class Direction : std::uint8_t { transmit, receive, both, inside };

/// One one-way transfer as measured at its receiver.
struct EdgeFigure {
  Rank from, to;
  std::uint32_t round = 0;  ///< 0-based blame round
  /// 0: no byte came, though some came over some way at some time of this check, so that bytes can come.
  /// nullopt: no evidence.
  std::optional<Rate> rate;
  std::optional<Rate> average;  ///< all bytes over all the time: beside a name. nullopt: as `rate`
  bool alone = false;           ///< measured with nothing else running
  bool partial = false;         ///< it did not end in time: bytes received until then over that time
  Ns timed{};  ///< what the figure rests on; 0: not said. A brief one exonerates but accuses nobody
  /// Of both ends together, over the time of the figure: measure/statistics.h. 0: the way may have any rate.
  double part_running = 1;
  /// What it might have had besides, had nobody else used the devices at its ends: measure/statistics.h.
  Rate room_of_others;
};

/// All edges between nodes of a history's blame steps, decided: zero or no evidence.
[[nodiscard]] std::vector<EdgeFigure> edges_of(const Plan& plan, const History& history);
/// Those within nodes, step by step: EdgeFigure::round counts the steps.
[[nodiscard]] std::vector<EdgeFigure> inside_edges_of(const History& history);

}  // namespace netcheck::judge
