// Collectives as steps: (op, algorithm, n, rank, bytes) → what this rank sends, receives and reduces, round
// by round. One set of pure functions, run by one executor each in the UCX module, the simulator and the
// stand-ins.
//
// Buffers: every rank has one `work` buffer of Batch::bytes (actual_bytes). Before the operation:
//   all_gather      block `rank` of n holds this rank's contribution; after: all blocks
//   reduce_scatter  all n blocks hold contributions; after: block `rank` holds the sum of everyone's block
//   `rank` all_reduce      the whole buffer is contributed; after: the whole buffer holds the sum alltoall
//   block j is for rank j; received into the `landing` buffer of the same size: block i from rank i broadcast
//   the root's buffer; after: everyone's. reduce: the sum at the root gather/scatter  blocks at the root
//   transfer        the sender's buffer, one edge
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "measure/batch.h"

namespace netcheck {

struct Piece {  ///< a byte range of a buffer
  std::uint64_t offset = 0, length = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};
enum class Store : std::uint8_t {
  put,  ///< received bytes replace `work`'s
  add,  ///< received elements are added to `work`'s
  land  ///< received bytes go to `landing`
};
struct Send {
  std::uint32_t to = 0;
  Piece piece;
};
struct Receive {
  std::uint32_t from = 0;
  Piece piece;
  Store store = Store::put;
};

/// One round: all its sends and receives go at once; the next round begins when this rank's part is complete.
struct Round {
  std::vector<Send> sends;
  std::vector<Receive> receives;
};

/// The rounds of one rank. `algorithm`: "ring" (default for all_gather, reduce_scatter, all_reduce),
/// "doubling" (powers of two only), "pairwise" (default for alltoall), "chain" (pipelined, default for
/// broadcast and reduce), "direct" (gather, scatter, transfer). Error: an algorithm the operation does not
/// have, named. Empty rounds for n = 1. For transfer use transfer_rounds.
[[nodiscard]] Result<std::vector<Round>> schedule(Op op, std::string_view algorithm, std::uint32_t ranks,
                                                  std::uint32_t rank, std::uint32_t root, std::uint64_t bytes,
                                                  Type type);
[[nodiscard]] std::vector<Round> transfer_rounds(const std::vector<Edge>& edges, std::uint32_t rank,
                                                 std::uint64_t bytes);
[[nodiscard]] std::string_view default_algorithm(Op op);

/// Whether the rounds of all ranks meet: every send has its receive of the same length in the same round
/// order. Used by tests and the simulator.
[[nodiscard]] bool matches(const std::vector<std::vector<Round>>& by_rank);

}  // namespace netcheck
