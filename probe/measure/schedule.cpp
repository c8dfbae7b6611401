// Rings, doubling, pairwise exchange and chains as rounds of sends and receives. Pure. Called by the fabric
// modules' executors and the simulator, as the probe user.
#include "measure/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "measure/collective.h"

namespace netcheck {
namespace {

/// Pieces of a pipelined chain. Filling the pipe costs (n - 2) piece times: 2 % of 64 MiB over 8 ranks. Not
/// smaller, because each round costs tens of microseconds of wake-ups, 1 % of a piece's 2 ms at 1 Gb/s.
constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10U;
/// At most so many pieces, so that a schedule stays small (a round is 56 bytes and two allocations) and the
/// pipe's filling still costs less than 1 %.
constexpr std::uint64_t kMaxPieces = 1'024;
/// Pieces begin at multiples of 16 bytes, which every element size divides.
constexpr std::uint64_t kPieceAlignment = 16;

/// Everything the algorithms below need to know.
struct Shape {
  std::uint32_t ranks, rank, root;
  std::uint64_t bytes, element;

  /// `rank` + distance around the ring; distance may be negative, not below -ranks.
  [[nodiscard]] std::uint32_t around(std::int64_t distance) const {
    const auto n = static_cast<std::int64_t>(ranks);
    return static_cast<std::uint32_t>((static_cast<std::int64_t>(rank) + distance + n) % n);
  }
  /// Blocks `first` … `first + count - 1`. Blocks differ by at most one element; they are equal where the
  /// size divides, which schedule() insists on for operations that split.
  [[nodiscard]] Piece blocks(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t elements = bytes / element;
    const auto start_of = [&](std::uint64_t block) {
      // (elements · block) / ranks without overflow: elements = q · ranks + r
      return (elements / ranks * block + elements % ranks * block / ranks) * element;
    };
    return {.offset = start_of(first), .length = start_of(first + count) - start_of(first)};
  }
  [[nodiscard]] Piece block(std::uint64_t index) const { return blocks(index, 1); }
  /// The blocks of `member` and the others in its aligned group of `size`.
  [[nodiscard]] Piece group(std::uint32_t member, std::uint32_t size) const {
    return blocks(member - member % size, size);
  }
};

/// Pieces of no length are left out, on both sides alike.
void send(Round& round, std::uint32_t to, Piece piece) {
  if (piece.length > 0) round.sends.push_back({to, piece});
}
void receive(Round& round, std::uint32_t from, Piece piece, Store store) {
  if (piece.length > 0) round.receives.push_back({from, piece, store});
}

using Rounds = std::vector<Round>;

/// n - 1 rounds to the right: each block makes its way around and is summed at `rank`'s place at the end.
void ring_reduce_scatter(const Shape& shape, Rounds& rounds) {
  for (std::int64_t step = 0; step + 1 < shape.ranks; ++step) {
    auto& round = rounds.emplace_back();
    send(round, shape.around(1), shape.block(shape.around(-step - 1)));
    receive(round, shape.around(-1), shape.block(shape.around(-step - 2)), Store::add);
  }
}

/// n - 1 rounds to the right: each rank passes on the block that it got last.
void ring_all_gather(const Shape& shape, Rounds& rounds) {
  for (std::int64_t step = 0; step + 1 < shape.ranks; ++step) {
    auto& round = rounds.emplace_back();
    send(round, shape.around(1), shape.block(shape.around(-step)));
    receive(round, shape.around(-1), shape.block(shape.around(-step - 1)), Store::put);
  }
}

/// Recursive halving: log2 n exchanges with ever nearer partners, each over half of what is left.
void halving_reduce_scatter(const Shape& shape, Rounds& rounds) {
  for (std::uint32_t distance = shape.ranks / 2; distance > 0; distance /= 2) {
    const std::uint32_t partner = shape.rank ^ distance;
    auto& round = rounds.emplace_back();
    send(round, partner, shape.group(partner, distance));
    receive(round, partner, shape.group(shape.rank, distance), Store::add);
  }
}

/// Recursive doubling: log2 n exchanges with ever farther partners, each of all that is there.
void doubling_all_gather(const Shape& shape, Rounds& rounds) {
  for (std::uint32_t distance = 1; distance < shape.ranks; distance *= 2) {
    const std::uint32_t partner = shape.rank ^ distance;
    auto& round = rounds.emplace_back();
    send(round, partner, shape.group(shape.rank, distance));
    receive(round, partner, shape.group(partner, distance), Store::put);
  }
}

/// n - 1 rounds, in each of which every rank has one receiver and another sender, none of them twice.
void pairwise_alltoall(const Shape& shape, Rounds& rounds) {
  for (std::int64_t step = 1; step < shape.ranks; ++step) {
    auto& round = rounds.emplace_back();
    send(round, shape.around(step), shape.block(shape.around(step)));
    receive(round, shape.around(-step), shape.block(shape.around(-step)), Store::land);
  }
}

/// A pipeline along a line of ranks: the one at `position` (0 is the source) gets piece k from `before` one
/// round before it sends it to `after`.
void chain(const Shape& shape, std::uint32_t position, std::uint32_t before, std::uint32_t after, Store store,
           Rounds& rounds) {
  std::uint64_t piece = std::max(kPieceBytes, (shape.bytes + kMaxPieces - 1) / kMaxPieces);
  piece = (piece + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
  const std::uint64_t pieces = (shape.bytes + piece - 1) / piece;
  const auto at = [&](std::uint64_t k) {
    return Piece{.offset = k * piece, .length = std::min(piece, shape.bytes - k * piece)};
  };
  const bool first = position == 0;
  const bool last = position + 1 == shape.ranks;
  for (std::uint64_t time = 0; time < pieces + shape.ranks - 2; ++time) {
    auto& round = rounds.emplace_back();
    if (!last && time >= position && time - position < pieces) send(round, after, at(time - position));
    if (!first && time + 1 >= position && time + 1 - position < pieces)
      receive(round, before, at(time + 1 - position), store);
  }
}

void chain_broadcast(const Shape& shape, Rounds& rounds) {
  const std::uint32_t position = (shape.rank + shape.ranks - shape.root) % shape.ranks;
  chain(shape, position, shape.around(-1), shape.around(1), Store::put, rounds);
}

/// The broadcast's line backwards: from the root's left neighbour's far end to the root.
void chain_reduce(const Shape& shape, Rounds& rounds) {
  const std::uint32_t hops = (shape.rank + shape.ranks - shape.root) % shape.ranks;
  chain(shape, shape.ranks - 1 - hops, shape.around(1), shape.around(-1), Store::add, rounds);
}

void direct_gather(const Shape& shape, Rounds& rounds) {
  auto& round = rounds.emplace_back();
  if (shape.rank != shape.root) return send(round, shape.root, shape.block(shape.rank));
  for (std::uint32_t from = 0; from < shape.ranks; ++from)
    if (from != shape.root) receive(round, from, shape.block(from), Store::put);
}

void direct_scatter(const Shape& shape, Rounds& rounds) {
  auto& round = rounds.emplace_back();
  if (shape.rank != shape.root) return receive(round, shape.root, shape.block(shape.rank), Store::put);
  for (std::uint32_t to = 0; to < shape.ranks; ++to)
    if (to != shape.root) send(round, to, shape.block(to));
}

tl::unexpected<Error> refuse(Op op, std::string_view algorithm, std::string reason, std::string remedy) {
  return fail("lay out", fmt::format("{} by {}", name(op), printable(algorithm, 32)), std::move(reason),
              std::move(remedy));
}

Result<void> check(Op op, std::string_view algorithm, const Shape& shape) {
  if (shape.rank >= shape.ranks || shape.root >= shape.ranks)
    return refuse(op, algorithm,
                  fmt::format("rank {} and root {} of {} ranks", shape.rank, shape.root, shape.ranks), {});
  const std::uint64_t grain = moves_blocks(op) ? shape.ranks * shape.element : shape.element;
  if (shape.bytes % grain != 0)
    return refuse(op, algorithm, fmt::format("{} bytes are no multiple of {}", shape.bytes, grain),
                  "take the size from actual_bytes");
  if (algorithm == "doubling" && !std::has_single_bit(shape.ranks))
    return refuse(op, algorithm, fmt::format("{} ranks are no power of two", shape.ranks), "use ring");
  return {};
}

/// One algorithm of one operation; the operation's first row is its default.
struct Row {
  Op op;
  std::string_view algorithm;
  void (*first)(const Shape&, Rounds&);
  void (*second)(const Shape&, Rounds&) = nullptr;
};
constexpr Row kRows[] = {
    {Op::all_reduce, "ring", ring_reduce_scatter, ring_all_gather},
    {Op::all_reduce, "doubling", halving_reduce_scatter, doubling_all_gather},
    {Op::all_gather, "ring", ring_all_gather},
    {Op::all_gather, "doubling", doubling_all_gather},
    {Op::reduce_scatter, "ring", ring_reduce_scatter},
    {Op::reduce_scatter, "doubling", halving_reduce_scatter},
    {Op::alltoall, "pairwise", pairwise_alltoall},
    {Op::broadcast, "chain", chain_broadcast},
    {Op::reduce, "chain", chain_reduce},
    {Op::gather, "direct", direct_gather},
    {Op::scatter, "direct", direct_scatter},
};

using Meeting = std::tuple<std::size_t, std::size_t, std::size_t>;  // round, from, to
using Lengths = std::map<Meeting, std::vector<std::uint64_t>>;

}  // namespace

std::string_view default_algorithm(Op op) {
  for (const auto& row : kRows)
    if (row.op == op) return row.algorithm;
  return "direct";  // transfer
}

bool uses_landing(Op op) {
  return op == Op::alltoall || op == Op::transfer;
}

Result<std::vector<Round>> schedule(Op op, std::string_view algorithm, std::uint32_t ranks,
                                    std::uint32_t rank, std::uint32_t root, std::uint64_t bytes, Type type) {
  if (algorithm.empty()) algorithm = default_algorithm(op);
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.op == op && r.algorithm == algorithm; });
  if (row == std::end(kRows))
    return refuse(op, algorithm, "the operation has no such algorithm",
                  fmt::format("use {}", default_algorithm(op)));
  const Shape shape{ranks, rank, root, bytes, size_of(type)};
  if (const auto fits = check(op, algorithm, shape); !fits) return tl::unexpected(fits.error());
  Rounds rounds;
  if (ranks == 1 || bytes == 0) return rounds;
  row->first(shape, rounds);
  if (row->second != nullptr) row->second(shape, rounds);
  return rounds;
}

std::vector<Round> transfer_rounds(const std::vector<Edge>& edges, std::uint32_t rank, std::uint64_t bytes) {
  Rounds rounds(1);
  for (const auto& edge : edges) {
    if (edge.from == rank) send(rounds.front(), edge.to, {0, bytes});
    if (edge.to == rank) receive(rounds.front(), edge.from, {0, bytes}, Store::land);
  }
  return rounds;
}

bool matches(const std::vector<std::vector<Round>>& by_rank) {
  Lengths sent;
  Lengths received;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::size_t round = 0; round < by_rank[rank].size(); ++round) {
      for (const auto& one : by_rank[rank][round].sends)
        sent[{round, rank, one.to}].push_back(one.piece.length);
      for (const auto& one : by_rank[rank][round].receives)
        received[{round, one.from, rank}].push_back(one.piece.length);
    }
  }
  return sent == received;
}

}  // namespace netcheck
