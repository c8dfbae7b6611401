// From one-way edges to culprits: which node, which rail, which direction, or which link. Pure. The method
// and its limits: docs/measurement.md, "Blame".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/edges.h"
#include "judge/history.h"

namespace netcheck::judge {

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
  // What most of the figures were held against: of the class of hardware and rail with most scores.
  Rate median;     ///< of the scores
  Rate threshold;  ///< τ
  /// Slow for good, by measurements of its own: a node with two partners, or most of the fabric.
  [[nodiscard]] bool proves() const;
};

/// Which edge is slow, and which count at all: standing.h.
[[nodiscard]] Blame decode(const Plan& plan, const std::vector<EdgeFigure>& edges);

}  // namespace netcheck::judge
