// Names, as records and the line spell them: of phases, troubles and directions, and of nodes, whoever chose
// theirs. Pure. Used by this room, and by all that writes or reads a record or a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "judge/edges.h"
#include "judge/history.h"

namespace netcheck::judge {

[[nodiscard]] std::string_view name(Phase phase);          ///< "rendezvous"
[[nodiscard]] std::string_view name(Trouble trouble);      ///< "child_died"
[[nodiscard]] std::string_view name(Direction direction);  ///< "tx", "rx", "tx+rx"
[[nodiscard]] std::string_view name(Teaming teaming);      ///< "per_lane", "over_lanes"

/// Of a reason in the line and in the record: with names and figures it fits in Slurm's comment (line.cpp).
inline constexpr std::size_t kReasonBytes = 240;

/// A value that cannot be taken for another tag's, nor for another tool's part of the comment (" | ").
[[nodiscard]] std::string plain(std::string_view text, std::size_t max_bytes);

/// The name of a node's lane, plain and short: "eth1", "0000:1b:00.0"; "rail7" for one that it does not have.
[[nodiscard]] std::string lane_name(const Plan& plan, std::uint32_t node, std::uint32_t lane);

/// The name of a node of the plan, plain and at most 64 bytes, Slurm's own limit for a hostname; "node 7" for
/// an index that is none of the plan's.
[[nodiscard]] std::string node_name(const Plan& plan, std::uint32_t node);

}  // namespace netcheck::judge
