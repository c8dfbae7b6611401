// What one step of the gate comes to: its figures, and whether they are enough. Pure. Used by the gate, which
// strings the steps together, and by the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/evidence.h"

namespace netcheck::judge {

/// The gate's figure: the minimum over groups of the sum over rails.
struct Figures {
  Rate busbw;
  std::vector<Rate> per_rail;  ///< minimum over groups, by lane; empty where teams are over all lanes
  Op op = Op::all_gather;
  std::string algorithm;
  std::uint64_t bytes = 0;   ///< message size of the figure
  std::uint32_t groups = 1;  ///< most groups in a partition
  bool noisy = false;
  /// Of the team whose processes ran least, all of them together: measure/statistics.h. The rates divided by
  /// it, and room_of_others added to them, are the unhindered rates (standing.h has the rule). 0: they may be
  /// any.
  double part_running = 1;
  // Of that team the one process that was kept from running most: for the reason. Its own part of the time,
  // as it is known, counted once.
  std::uint32_t most_kept = 0;  ///< its node
  double most_kept_part = 0;
  Lack most_kept_lack = Lack::nothing;  ///< of that node: then no part says anything
  std::vector<Rate> room_of_others;     ///< by lane, of the rank where it is most: measure/statistics.h
  std::uint32_t most_shared = 0;        ///< the node whose device others used most
  friend bool operator==(const Figures&, const Figures&) = default;
};

/// A batch shorter than this is not a figure yet: shapers let 10–20 ms of line rate pass at once.
inline constexpr Ns kLasting = std::chrono::milliseconds(30);

/// One size that every team completed.
struct GateSize {
  Figures figures;
  std::uint64_t bytes = 0;  ///< of the largest team: what the next size grows from
  Ns operation{};           ///< of the slowest team
  Ns timed{};               ///< operation × iterations
  /// Long enough to be a figure: a burst (a shaper's bucket, socket buffers) can carry a short batch faster
  /// than the link.
  [[nodiscard]] bool lasting() const;
};

/// The figures of one step of the gate; nullopt when any team is incomplete.
[[nodiscard]] std::optional<GateSize> size_of_step(const Plan& plan, const TeamIndex& teams,
                                                   const Done& done);

/// The figures, had the fabric's processes run all the time and the devices carried nothing else
/// (standing.h). nullopt: they may be any.
[[nodiscard]] std::optional<Figures> unhindered(const Figures& figures);

/// Below what is asked of a node, or of a rail.
[[nodiscard]] bool too_slow(const Plan& plan, const Figures& figures);

/// So it would be unhindered, too (standing.h has the rule).
[[nodiscard]] bool surely_too_slow(const Plan& plan, const Figures& figures);

}  // namespace netcheck::judge
