// What ranks do together and what they report: operations, teams, batches, samples. The vocabulary of judge,
// fabric and session. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/json.h"
#include "contract/units.h"

namespace netcheck {

enum class Op : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  alltoall,
  broadcast,
  reduce,
  gather,
  scatter,
  transfer
};
enum class Type : std::uint8_t { u8, i32, f32, bf16 };

/// What a node's kernel has run out of, which whoever has an account there can bring about: while it lasts,
/// bytes come late or not at all, and nobody's network is to blame.
enum class Lack : std::uint8_t {
  nothing,
  tcp_memory,   ///< of all TCP sockets together: net.ipv4.tcp_mem
  neighbours,   ///< room for more of them: net.ipv4.neigh.default.gc_thresh3
  connections,  ///< room to track more of them: net.netfilter.nf_conntrack_max
};

/// One end of the data plane: a GPU or a NIC of a node.
struct Rank {
  std::uint32_t node = 0;  ///< index into the job's NodeList
  std::uint16_t lane = 0;  ///< index into that node's lanes (GPUs or NICs)
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

/// A one-way transfer; indices into Team::ranks.
struct Edge {
  std::uint32_t from = 0, to = 0;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// Any subset of ranks, same order on every member. `id` is unique within a check.
struct Team {
  std::uint32_t id = 0;
  std::vector<Rank> ranks;
  friend bool operator==(const Team&, const Team&) = default;
};

/// Identical on all members; they run exactly this: `warmup` untimed operations, a data-plane barrier,
/// `iterations` timed ones. For transfer the barrier is a token over each edge from receiver to sender, so
/// that one dead edge stalls no other.
struct Batch {
  std::uint32_t id = 0;    ///< unique within a check
  std::uint32_t team = 0;  ///< Team::id
  std::uint32_t root = 0;  ///< rank, for rooted operations
  Op op = Op::all_gather;
  Type type = Type::f32;
  std::uint64_t bytes =
      0;  ///< S of docs/measurement.md (max of send and receive buffer of one rank); per edge for transfer
  std::uint32_t warmup = 0, iterations = 0;
  std::vector<Edge> edges;  ///< transfer only: at most one in and one out per rank
  std::string algorithm;    ///< "" = the module's default
  std::uint64_t seed = 0;   ///< of the data pattern
  bool verify = true;       ///< check the whole buffer, outside the timing
  friend bool operator==(const Batch&, const Batch&) = default;
};

/// One rank's part of one batch.
struct Sample {
  std::uint32_t rank = 0;  ///< index into Team::ranks
  std::vector<Ns> done;  ///< completion times of the timed operations since the barrier, rising. A transfer's
                         ///< sender reports none: it is timed at the receiver
  std::uint64_t received = 0;  ///< payload bytes that arrived, warm-up included
  std::uint64_t wrong = 0;     ///< elements that were not what the seed says
  /// How long the process was kept from running (stopped, or without a processor) since the barrier; since
  /// the batch began where it did not end, and for a transfer's sender. Such a time may exonerate, and
  /// accuses nobody.
  Ns kept{};
  /// Bytes that others moved into and out of this rank's device in the meantime: of other processes, users
  /// and nodes, as far as the device tells. The way had room for them.
  std::uint64_t others_in = 0, others_out = 0;
  /// At some time since the rank's fabric process began. Then its times accuse nobody.
  Lack lack = Lack::nothing;
  friend bool operator==(const Sample&, const Sample&) = default;
};

[[nodiscard]] std::string_view name(Op op);  ///< "all_gather"
[[nodiscard]] Result<Op> parse_op(std::string_view text);
[[nodiscard]] std::string_view name(Type type);  ///< "f32"
[[nodiscard]] Result<Type> parse_type(std::string_view text);
[[nodiscard]] std::size_t size_of(Type type);
[[nodiscard]] std::string_view name(Lack lack);  ///< "tcp_memory"
[[nodiscard]] Result<Lack> parse_lack(std::string_view text);

[[nodiscard]] Json to_json(const Team& team);
[[nodiscard]] Json to_json(const Batch& batch);
[[nodiscard]] Json to_json(const Sample& sample);
// Strict readers for read_frame; they throw Malformed. Bounds: ≤ 65,536 ranks, ≤ 4,096 iterations, ≤ 1 TiB;
// no rank twice in a team, at most one edge into and one out of a rank, completion times not falling.
[[nodiscard]] Team team_from_json(const Json& value);
[[nodiscard]] Batch batch_from_json(const Json& value);
[[nodiscard]] Sample sample_from_json(const Json& value);

}  // namespace netcheck
