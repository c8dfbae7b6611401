// One check as it will be simulated: the cluster, and what is wrong with it. Drawn from a seed; the truth
// that a verdict is held against.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/blame.h"
#include "measure/batch.h"
#include "policy/policy.h"

namespace netcheck::sim {

enum class Kind : std::uint8_t {
  none,
  late,       ///< its prolog starts some time after the others'
  absent,     ///< its prolog never comes
  crash,      ///< the probe dies at a time
  freeze,     ///< the probe is stopped at a time, for good
  hiccup,     ///< the probe is stopped for a while; see Fault::halts
  starved,    ///< its fabric process runs part of the time only
  crowded,    ///< others use part of its rails, in or out; see Fault::inward
  lacking,    ///< slow both ways, since its kernel ran out of something, and says so
  cut_data,   ///< no data in or out from a time on; the control channel lives
  cut_all,    ///< neither data nor control
  hang_open,  ///< the fabric process hangs in open, …
  hang_invite,
  hang_join,
  hang_run,
  die_open,  ///< … ends by itself in open, …
  die_join,
  die_run,
  refuse_open,  ///< … says no
  refuse_join,
  slow_node,  ///< both directions, all rails
  slow_tx,
  slow_rx,
  slow_rail,  ///< one rail of several, both directions
  slow_rail_tx,
  slow_link,  ///< one way between two nodes
  two_slow,   ///< two nodes, both directions
  unlike,     ///< another setting than the leader's
};
inline constexpr Kind kLastKind = Kind::unlike;
[[nodiscard]] std::string_view name(Kind kind);

struct Fault {
  Kind kind = Kind::none;
  std::uint32_t node = 0;
  std::uint32_t other = 0;  ///< slow_link: node → other; two_slow: the second node
  std::uint16_t lane = 0;   ///< slow_rail
  double factor = 1;    ///< slow: what is left of the rate; starved: of the time; crowded: what others take
  Ns at{};              ///< since the leader's start
  Ns lasts{};           ///< hiccup
  bool halts = false;   ///< hiccup: the whole node stood still, its data too
  bool inward = false;  ///< crowded: what comes in, not what goes out
  std::uint32_t call = 1;  ///< hang, die, refuse: the how-manieth call of its kind
};

struct Scenario {
  std::uint64_t seed = 0;
  std::uint32_t nodes = 4;
  std::uint16_t rails = 1;
  bool over_lanes = false;  ///< one team over all rails, as over NCCL, whose lanes are GPUs
  double rate = 1e9;        ///< bits/s of one rail and direction
  Ns latency{};             ///< of the data path
  double noise = 0;         ///< an operation takes up to this much longer
  Policy policy;
  Fault fault;
  bool strangers = false;              ///< somebody knocks at the leader's door
  bool wire = false;                   ///< messages and report go through their codecs
  bool rdma = false;                   ///< what the rails are built for is known, and counts
  std::optional<std::uint32_t> liar;   ///< a node that lies about its hardware, and about others'
  std::optional<std::uint32_t> blind;  ///< one that cannot look at its own
  std::vector<Ns> starts;              ///< of each node's probe
  std::vector<Ns> clocks;              ///< each node's clock minus the true time

  [[nodiscard]] bool slow_fault() const;
  /// Part of the time that a process of this node runs.
  [[nodiscard]] double runs(std::uint32_t node) const;
  /// Part of a rail of this node that others use, in or out.
  [[nodiscard]] double others(std::uint32_t node, bool inward) const;
  [[nodiscard]] Lack lack(std::uint32_t node) const;
  /// bits/s that a path can carry, faults included.
  [[nodiscard]] double path(Rank from, Rank to) const;
  /// The fault in words, for a failing seed.
  [[nodiscard]] std::string describe() const;
};

[[nodiscard]] Scenario draw(std::uint64_t seed);

}  // namespace netcheck::sim
