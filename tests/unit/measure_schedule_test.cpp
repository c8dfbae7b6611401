// Every schedule, for 1 … 17 ranks, all types, roots and sizes, against a naive result worked out element by
// element from the operation's definition.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "measure/collective.h"
#include "measure/schedule.h"
#include "measure_executor.h"

namespace netcheck {
namespace {

using testing_measure::Buffers;
using testing_measure::execute;
using testing_measure::rounds_of_all;

// Elements as plain numbers, by means that are not the code under test.
void store(Type type, std::vector<std::byte>& buffer, std::size_t index, unsigned value) {
  const auto whole = static_cast<float>(value);
  const auto integer = static_cast<std::int32_t>(value);
  std::byte* at = &buffer[index * size_of(type)];
  if (type == Type::u8) *at = static_cast<std::byte>(value);
  if (type == Type::i32) std::memcpy(at, &integer, 4);
  if (type == Type::f32) std::memcpy(at, &whole, 4);
  if (type == Type::bf16)
    std::memcpy(at, reinterpret_cast<const std::byte*>(&whole) + 2, 2);  // little endian
}

double load(Type type, const std::vector<std::byte>& buffer, std::size_t index) {
  float whole = 0;
  std::int32_t integer = 0;
  const std::byte* at = &buffer[index * size_of(type)];
  if (type == Type::u8) return std::to_integer<int>(*at);
  if (type == Type::bf16) std::memcpy(reinterpret_cast<std::byte*>(&whole) + 2, at, 2);
  if (type == Type::f32) std::memcpy(&whole, at, 4);
  if (type == Type::i32) std::memcpy(&integer, at, 4);
  return type == Type::i32 ? integer : static_cast<double>(whole);
}

/// 0 … 7, different for every rank and element; sums over 17 ranks stay below 256, exact in every type.
unsigned value(std::size_t rank, std::size_t index) {
  return static_cast<unsigned>((rank * 5 + index * 3 + index / 7) % 8);
}

struct Case {
  Op op;
  const char* algorithm;
};

class Schedules : public testing::TestWithParam<std::tuple<Case, Type>> {
 protected:
  Batch batch(std::uint32_t ranks, std::uint32_t root, std::uint64_t wanted) {
    const auto& [which, type] = GetParam();
    return {.root = root,
            .op = which.op,
            .type = type,
            .bytes = actual_bytes(which.op, type, ranks, wanted),
            .algorithm = which.algorithm};
  }
  bool possible(std::uint32_t ranks) {
    return std::get<0>(GetParam()).algorithm != std::string_view("doubling") || std::has_single_bit(ranks);
  }
  bool rooted() {
    const Op op = std::get<0>(GetParam()).op;
    return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter;
  }
};

/// What the definition says that element `index` of rank's result is; nullopt where it says nothing.
std::optional<double> naive(const Batch& batch, std::size_t ranks, std::size_t rank, std::size_t index) {
  const std::size_t per_block = batch.bytes / size_of(batch.type) / ranks;
  const auto block = [&] { return index / per_block; };
  double sum = 0;
  for (std::size_t i = 0; i < ranks; ++i)
    sum += value(i, index);
  const bool is_root = rank == batch.root;
  switch (batch.op) {
    case Op::all_reduce:
      return sum;
    case Op::reduce:
      return is_root ? std::optional(sum) : std::nullopt;
    case Op::reduce_scatter:
      return block() == rank ? std::optional(sum) : std::nullopt;
    case Op::all_gather:
      return value(block(), index);
    case Op::gather:
      return is_root ? std::optional<double>(value(block(), index)) : std::nullopt;
    case Op::scatter:
      return block() == rank ? std::optional<double>(value(batch.root, index)) : std::nullopt;
    case Op::broadcast:
      return value(batch.root, index);
    case Op::alltoall:  // element `index` of block i is what rank i had at the same place of block `rank`
      if (block() == rank) return std::nullopt;
      return value(block(), rank * per_block + index % per_block);
    case Op::transfer:
      break;
  }
  return std::nullopt;
}

/// All ranks hold a full buffer of their own, also where the operation says they contribute nothing: what is
/// not overwritten would show.
void run_and_compare(const Batch& batch, std::uint32_t ranks) {
  const std::size_t count = batch.bytes / size_of(batch.type);
  Buffers work(ranks, std::vector<std::byte>(batch.bytes));
  Buffers landing(ranks, std::vector<std::byte>(batch.bytes, std::byte{0xEE}));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i)
      store(batch.type, work[rank], i, value(rank, i));
  execute(rounds_of_all(batch, ranks), batch.type, work, landing);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& result = uses_landing(batch.op) ? landing[rank] : work[rank];
    for (std::size_t i = 0; i < count; ++i) {
      const auto wanted = naive(batch, ranks, rank, i);
      if (!wanted) continue;
      ASSERT_EQ(load(batch.type, result, i), *wanted)
          << name(batch.op) << " " << batch.algorithm << " ranks " << ranks << " root " << batch.root
          << " bytes " << batch.bytes << " rank " << rank << " element " << i;
    }
  }
}

TEST_P(Schedules, GiveTheNaiveResultForUpTo17RanksAllRootsAndUnevenSizes) {
  for (std::uint32_t ranks = 1; ranks <= 17; ++ranks) {
    if (!possible(ranks)) continue;
    for (std::uint32_t root = 0; root < (rooted() ? ranks : 1); ++root)
      for (const std::uint64_t wanted : {0UL, 4UL, 16UL * ranks, 1'003UL, 5'000UL}) {
        run_and_compare(batch(ranks, root, wanted), ranks);
        if (HasFatalFailure()) return;
      }
  }
}

TEST_P(Schedules, GiveTheNaiveResultInSeveralPieces) {
  for (const std::uint32_t ranks : {2U, 4U, 5U}) {
    if (!possible(ranks)) continue;
    run_and_compare(batch(ranks, ranks - 1, 700'004), ranks);  // two pieces of a chain and a short third
    if (HasFatalFailure()) return;
  }
}

TEST_P(Schedules, NeverSendAndReceiveTheSameBytesInOneRound) {
  const auto overlap = [](Piece a, Piece b) {
    return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
  };
  for (std::uint32_t ranks = 2; ranks <= 17; ++ranks) {
    if (!possible(ranks)) continue;
    for (const auto& rounds : rounds_of_all(batch(ranks, ranks / 2, 600'000), ranks))
      for (const auto& round : rounds)
        for (const auto& receive : round.receives)
          for (const auto& send : round.sends)
            EXPECT_FALSE(receive.store != Store::land && overlap(receive.piece, send.piece));
  }
}

std::string title(const testing::TestParamInfo<std::tuple<Case, Type>>& info) {
  const auto& [which, type] = info.param;
  return std::string(name(which.op)) + "_" + which.algorithm + "_" + std::string(name(type));
}

INSTANTIATE_TEST_SUITE_P(
    All, Schedules,
    testing::Combine(testing::Values(Case{Op::all_reduce, "ring"}, Case{Op::all_reduce, "doubling"},
                                     Case{Op::all_gather, "ring"}, Case{Op::all_gather, "doubling"},
                                     Case{Op::reduce_scatter, "ring"}, Case{Op::reduce_scatter, "doubling"},
                                     Case{Op::alltoall, "pairwise"}, Case{Op::broadcast, "chain"},
                                     Case{Op::reduce, "chain"}, Case{Op::gather, "direct"},
                                     Case{Op::scatter, "direct"}),
                     testing::Values(Type::u8, Type::i32, Type::f32, Type::bf16)),
    title);

std::uint64_t sent(const std::vector<Round>& rounds) {
  std::uint64_t bytes = 0;
  for (const auto& round : rounds)
    for (const auto& send : round.sends)
      bytes += send.piece.length;
  return bytes;
}

// The bus factor says what a rank's link carries: S · factor. So each rank of a ring must send just that.
TEST(ScheduleTraffic, IsWhatTheBusFactorSays) {
  for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::alltoall, Op::all_reduce})
    for (const std::uint32_t ranks : {2U, 3U, 8U}) {
      const std::uint64_t bytes = 48 * 1024;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto rounds = schedule(op, "", ranks, rank, 0, bytes, Type::f32);
        EXPECT_EQ(static_cast<double>(sent(*rounds)), bus_factor(op, ranks) * static_cast<double>(bytes))
            << name(op) << " " << ranks;
      }
    }
}

// 64 MiB in pieces of 256 KiB are 256; over 8 ranks the last piece ends its 7th hop in round 256 + 8 - 2.
TEST(ScheduleChain, PipelinesInPieces) {
  const auto rounds = schedule(Op::broadcast, "chain", 8, 3, 0, 64U << 20U, Type::u8);
  EXPECT_EQ(rounds->size(), 262U);
  EXPECT_EQ(rounds->at(10).sends.at(0).piece, (Piece{7 * 262'144, 262'144}));
  EXPECT_EQ(rounds->at(10).receives.at(0).piece, (Piece{8 * 262'144, 262'144}));
}

TEST(ScheduleChain, KeepsTheNumberOfPiecesBounded) {
  EXPECT_LE(schedule(Op::reduce, "", 2, 0, 0, 1ULL << 40U, Type::f32)->size(), 1'024U);
}

TEST(Schedule, NamesAnAlgorithmThatTheOperationDoesNotHave) {
  const auto refused = schedule(Op::alltoall, "ring", 4, 0, 0, 64, Type::f32);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().subject, testing::HasSubstr("alltoall by ring"));
  EXPECT_THAT(refused.error().remedy, testing::HasSubstr("pairwise"));
  EXPECT_FALSE(schedule(Op::transfer, "", 2, 0, 0, 64, Type::f32));
}

TEST(Schedule, RefusesWhatCannotBeLaidOut) {
  EXPECT_FALSE(schedule(Op::all_gather, "doubling", 6, 0, 0, 96, Type::f32));  // no power of two
  EXPECT_FALSE(schedule(Op::all_gather, "ring", 3, 0, 0, 64, Type::f32));      // 16 floats over 3 ranks
  EXPECT_FALSE(schedule(Op::all_reduce, "ring", 3, 0, 0, 63, Type::f32));      // no whole float
  EXPECT_FALSE(schedule(Op::all_gather, "ring", 3, 3, 0, 96, Type::f32));
  EXPECT_FALSE(schedule(Op::broadcast, "chain", 3, 0, 3, 96, Type::f32));
  EXPECT_FALSE(schedule(Op::broadcast, "chain", 0, 0, 0, 96, Type::f32));
}

TEST(TransferRounds, CarryOneWholeMessagePerEdgeIntoLanding) {
  const std::vector<Edge> edges = {{0, 1}, {1, 2}};
  const auto middle = transfer_rounds(edges, 1, 100);
  ASSERT_EQ(middle.size(), 1U);
  ASSERT_EQ(middle[0].sends.size(), 1U);
  ASSERT_EQ(middle[0].receives.size(), 1U);
  EXPECT_EQ(middle[0].sends[0].to, 2U);
  EXPECT_EQ(middle[0].receives[0].from, 0U);
  EXPECT_EQ(middle[0].receives[0].store, Store::land);
  EXPECT_EQ(middle[0].receives[0].piece, (Piece{0, 100}));
  EXPECT_TRUE(transfer_rounds(edges, 3, 100)[0].sends.empty());
  EXPECT_TRUE(matches({transfer_rounds(edges, 0, 100), middle, transfer_rounds(edges, 2, 100)}));
}

TEST(Matches, FindsASendWithoutReceiveAnotherLengthAndAnotherRound) {
  const Round sends{.sends = {{1, {0, 8}}}, .receives = {}};
  const Round receives{.sends = {}, .receives = {{0, {0, 8}, Store::put}}};
  const Round longer{.sends = {}, .receives = {{0, {0, 9}, Store::put}}};
  EXPECT_TRUE(matches({{sends}, {receives}}));
  EXPECT_FALSE(matches({{sends}, {Round{}}}));
  EXPECT_FALSE(matches({{Round{}}, {receives}}));
  EXPECT_FALSE(matches({{sends}, {longer}}));
  EXPECT_FALSE(matches({{sends, Round{}}, {Round{}, receives}}));
}

}  // namespace
}  // namespace netcheck
