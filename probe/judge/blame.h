// From one-way edges to culprits: which node, which rail, which direction, or which link. Pure. The method
// and its limits: docs/measurement.md, "Blame".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// One one-way transfer as measured at its receiver.
struct EdgeFigure {
  Rank from, to;
  std::uint32_t round = 0;  ///< 0-based blame round
  std::optional<Rate>
      rate;  ///< 0 when no byte came over a path known to work otherwise; nullopt: no evidence
  std::optional<Rate> average;  ///< all bytes over all the time: beside a name. nullopt: as `rate`
  bool alone = false;           ///< measured with nothing else running
  bool partial = false;         ///< it did not end in time: bytes received until then over that time
  Ns timed{};  ///< what the figure rests on; 0: not said. A brief one exonerates but accuses nobody
  /// Part of that in which both ends' processes ran: the way may be faster than `rate` by as much. 0: it may
  /// be any rate.
  double running = 1;
};

/// All edges of a history's blame steps, decided: zero or no evidence.
[[nodiscard]] std::vector<EdgeFigure> edges_of(const Plan& plan, const History& history);

enum class Direction : std::uint8_t { transmit, receive, both };
[[nodiscard]] std::string_view name(Direction direction);  ///< "tx", "rx", "tx+rx"

struct Culprit {
  std::uint32_t node = 0;
  std::optional<std::uint32_t> peer;  ///< a bad link node→peer; the nodes themselves are exonerated
  std::optional<std::uint16_t> lane;  ///< one rail of several; nullopt: all rails
  Direction direction = Direction::both;
  Rate measured;          ///< its best edge in that direction (a link: that edge)
  bool isolated = false;  ///< seen slow with two different partners, who are fine: may be drained
  friend bool operator==(const Culprit&, const Culprit&) = default;
};

struct Blame {
  std::vector<Culprit> culprits;  ///< nodes first, by index; empty when nothing can be named
  bool fabric_wide = false;       ///< most edges are slow: the fabric or its configuration, not nodes
  bool oversubscribed = false;    ///< slow pairs are fine alone: uplinks or path collisions
  /// Some way was below the bar, whether or not anybody could be named: a slow gate is no single moment.
  bool found = false;
  bool dead = false;           ///< a way carried nothing whenever it was tried, and others did
  bool dead_for_sure = false;  ///< seen twice: on one way, or on two of one node
  bool silent = false;         ///< of several ways none carried anything: nothing to compare with
  std::string explanation;     ///< one clause for the line: "n1→n2 slow: n1's transmit or n2's receive"
  Rate median;                 ///< of all edges, concurrent
  Rate threshold;              ///< τ that was applied to an edge
  /// Slow for good, by measurements of its own: a node with two partners, or most of the fabric.
  [[nodiscard]] bool proves() const;
};

/// τ = max(site floor per rail, 0.8 × median of the same class, less a spread term).
[[nodiscard]] Blame decode(const Plan& plan, const std::vector<EdgeFigure>& edges);

/// The same with another fraction of the median than 0.8: the site's warn_fraction, for warnings.
[[nodiscard]] Blame decode(const Plan& plan, const std::vector<EdgeFigure>& edges, double fraction);

/// Nodes not exonerated by the edges so far, for the script's third round.
[[nodiscard]] std::vector<std::uint32_t> suspects(const Plan& plan, const std::vector<EdgeFigure>& edges);

}  // namespace netcheck::judge
