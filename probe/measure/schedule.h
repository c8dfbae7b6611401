// Collectives as steps: (op, algorithm, n, rank, bytes) → what this rank sends, receives and reduces, round
// by round. One set of pure functions, run by one executor each in the UCX module, the simulator and the
// stand-ins.
//
// Buffers: every rank has one `work` buffer of Batch::bytes (see actual_bytes); "block i" is the i-th of n
// equal parts of it.
//
//   op              work before                         after
//   all_gather      block `rank`: own contribution      all blocks, of all ranks
//   reduce_scatter  all n blocks: contributions         block `rank`: the sum of everyone's block `rank`
//   all_reduce      contribution                        the sum
//   alltoall        block j: for rank j                 `landing` block i: from rank i; the own block is
//                                                       neither copied nor checked, it crosses no network
//   broadcast       the root's: its contribution        everyone's: the root's
//   reduce          contribution                        the root's: the sum
//   gather          block `rank`: own contribution      the root's: all blocks
//   scatter         the root's: all blocks              block `rank`
//   transfer        the sender's: its contribution      the receiver's `landing`: the sender's
//
// `landing` is a second buffer of the same size, needed where uses_landing(op) says so. Operations that add
// work in place and leave partial sums in `work`: an operation whose result is to be checked starts from a
// fresh fill().
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
  Piece piece;  ///< of `work`
};
struct Receive {
  std::uint32_t from = 0;
  Piece piece;
  Store store = Store::put;
};

/// One round: all its sends and receives go at once; the next round begins when this rank's part is complete.
/// No piece is both sent and received into in one round, so the order within it does not matter. Every rank
/// has the same number of rounds, some of them may be empty.
struct Round {
  std::vector<Send> sends;
  std::vector<Receive> receives;
};

/// The rounds of one rank. `algorithm`: "" for the default, "ring" (default for all_gather, reduce_scatter,
/// all_reduce), "doubling" (the same three, powers of two only), "pairwise" (default for alltoall), "chain"
/// (pipelined, default for broadcast and reduce), "direct" (gather, scatter). No rounds for n = 1. Error: an
/// algorithm the operation does not have, named; a size that is not n equal blocks of whole elements where
/// the operation splits. For transfer use transfer_rounds.
[[nodiscard]] Result<std::vector<Round>> schedule(Op op, std::string_view algorithm, std::uint32_t ranks,
                                                  std::uint32_t rank, std::uint32_t root, std::uint64_t bytes,
                                                  Type type);
/// One round with this rank's edges, empty where it has none.
[[nodiscard]] std::vector<Round> transfer_rounds(const std::vector<Edge>& edges, std::uint32_t rank,
                                                 std::uint64_t bytes);
[[nodiscard]] std::string_view default_algorithm(Op op);

/// Whether the operation's result is in `landing`: alltoall and transfer, where a rank sends from the very
/// bytes that it would receive into.
[[nodiscard]] bool uses_landing(Op op);

/// Whether the rounds of all ranks meet: every send has its receive of the same length in the same round, and
/// the other way round. Used by tests and the simulator.
[[nodiscard]] bool matches(const std::vector<std::vector<Round>>& by_rank);

}  // namespace netcheck
