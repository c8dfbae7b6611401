// The data pattern: exact sums, and no damage that goes unseen.
#include <gmock/gmock.h>

#include <set>

#include "measure/collective.h"
#include "measure/pattern.h"
#include "measure_executor.h"

namespace netcheck {
namespace {

using testing_measure::Buffers;
using testing_measure::execute;
using testing_measure::rounds_of_all;

constexpr Op kCollectives[] = {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::alltoall,
                               Op::broadcast,  Op::reduce,     Op::gather,         Op::scatter};
constexpr Type kTypes[] = {Type::u8, Type::i32, Type::f32, Type::bf16};

Batch batch(Op op, Type type, std::uint32_t ranks, std::uint64_t wanted, std::uint32_t root = 0) {
  return {
      .root = root, .op = op, .type = type, .bytes = actual_bytes(op, type, ranks, wanted), .seed = 12345};
}

struct Memory {
  Buffers work, landing;
  [[nodiscard]] std::vector<std::byte>& result(Op op, std::size_t rank) {
    return uses_landing(op) ? landing[rank] : work[rank];
  }
};

Memory filled(const Batch& batch, std::uint32_t ranks) {
  Memory run{Buffers(ranks, std::vector<std::byte>(batch.bytes)),
             Buffers(ranks, std::vector<std::byte>(batch.bytes))};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    fill(batch, ranks, rank, run.work[rank]);
    poison(run.landing[rank]);
  }
  return run;
}

Memory executed(const Batch& batch, std::uint32_t ranks) {
  Memory run = filled(batch, ranks);
  execute(rounds_of_all(batch, ranks), batch.type, run.work, run.landing);
  return run;
}

std::uint64_t wrong_in_all(const Batch& batch, std::uint32_t ranks, Memory& run) {
  std::uint64_t wrong = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    wrong += count_wrong(batch, ranks, rank, run.result(batch.op, rank));
  return wrong;
}

TEST(Pattern, IsZeroToSevenAndDependsOnSeedRankAndIndex) {
  std::set<int> seen;
  int same_seed = 0;
  int same_rank = 0;
  int same_index = 0;
  for (std::uint64_t i = 0; i < 4'000; ++i) {
    seen.insert(pattern(1, 0, i));
    same_seed += pattern(1, 0, i) == pattern(2, 0, i) ? 1 : 0;
    same_rank += pattern(1, 0, i) == pattern(1, 1, i) ? 1 : 0;
    same_index += pattern(1, 0, i) == pattern(1, 0, i + 1) ? 1 : 0;
  }
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  // Independent values agree once in eight: 500 of 4,000, deviation √(4000 · 7/64) = 21.
  for (const int same : {same_seed, same_rank, same_index})
    EXPECT_NEAR(same, 500, 105);
}

TEST(Pattern, HasNoPowerOfTwoAsItsPeriod) {
  for (std::uint64_t shift = 1; shift <= 1U << 20U; shift *= 2) {
    int same = 0;
    for (std::uint64_t i = 0; i < 1'000; ++i)
      same += pattern(1, 0, i) == pattern(1, 0, i + shift) ? 1 : 0;
    EXPECT_LT(same, 250) << shift;
  }
}

TEST(Pattern, AnswersRightForEveryOperationTypeAndSize) {
  for (const Op op : kCollectives)
    for (const Type type : kTypes)
      for (const std::uint32_t ranks : {1U, 2U, 3U, 8U, 17U})
        for (const std::uint64_t wanted : {16UL * ranks, 1'003UL, 40'000UL}) {
          const Batch one = batch(op, type, ranks, wanted, ranks / 2);
          Memory run = executed(one, ranks);
          EXPECT_EQ(wrong_in_all(one, ranks, run), 0U) << name(op) << name(type) << ranks << " " << wanted;
        }
}

// What fill() leaves must not pass for a result: every rank that should have received something says so.
TEST(CountWrong, SeesThatNothingCame) {
  for (const Op op : kCollectives)
    for (const Type type : kTypes) {
      const std::uint32_t ranks = 4;
      const Batch one = batch(op, type, ranks, 4'096, 1);
      Memory run = filled(one, ranks);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const bool root = rank == one.root;
        const bool receives = op == Op::reduce || op == Op::gather       ? root
                              : op == Op::broadcast || op == Op::scatter ? !root
                                                                         : true;
        EXPECT_EQ(count_wrong(one, ranks, rank, run.result(op, rank)) > 0, receives) << name(op) << rank;
      }
    }
}

// One element changed at the front, in the middle and at the end of what a rank received.
TEST(CountWrong, FindsOneFlippedElement) {
  for (const Type type : kTypes) {
    const Batch one = batch(Op::all_reduce, type, 3, 50'000);
    Memory run = executed(one, 3);
    const std::size_t element = size_of(type);
    const std::size_t count = one.bytes / element;
    for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
      run.work[1][at * element] ^= std::byte{0x01};
      EXPECT_EQ(count_wrong(one, 3, 1, run.work[1]), 1U) << name(type) << " " << at;
      run.work[1][at * element] ^= std::byte{0x01};
    }
    EXPECT_EQ(count_wrong(one, 3, 1, run.work[1]), 0U);
  }
}

TEST(CountWrong, CountsEachElementOnceAndTwoBlocksExchanged) {
  const Batch one = batch(Op::all_gather, Type::f32, 4, 16'384);
  Memory run = executed(one, 4);
  for (std::size_t i = 0; i < 40; ++i)
    run.work[2][i * 4 + 1] ^= std::byte{0x80};
  run.work[2][1] ^= std::byte{0x80};  // element 0 is right again
  EXPECT_EQ(count_wrong(one, 4, 2, run.work[2]), 39U);
  std::swap_ranges(run.work[3].begin(), run.work[3].begin() + 4'096, run.work[3].begin() + 4'096);
  EXPECT_GT(count_wrong(one, 4, 3, run.work[3]), 1'500U);  // of 2,048; one in eight agrees by chance
}

TEST(CountWrong, CountsAResultThatIsTooShort) {
  const Batch one = batch(Op::all_reduce, Type::f32, 2, 400);
  EXPECT_EQ(count_wrong(one, 2, 0, std::vector<std::byte>(399)), 100U);
}

// A sum whose rank is left out must show, also where bf16 is thinned out (n > 32).
TEST(CountWrong, SeesARankThatWasLeftOutOfASum) {
  for (const Type type : kTypes)
    for (const std::uint32_t ranks : {3U, 40U, 300U}) {
      const Batch one = batch(Op::all_reduce, type, ranks, 8'192);
      std::vector<std::byte> sum(one.bytes);
      std::vector<std::byte> contribution(one.bytes);
      fill(one, ranks, 0, sum);
      for (std::uint32_t rank = 1; rank + 1 < ranks; ++rank) {
        fill(one, ranks, rank, contribution);
        add_elements(type, contribution, sum);
      }
      EXPECT_GT(count_wrong(one, ranks, 0, sum), 0U) << name(type) << ranks;
      fill(one, ranks, ranks - 1, contribution);
      add_elements(type, contribution, sum);
      EXPECT_EQ(count_wrong(one, ranks, 0, sum), 0U) << name(type) << ranks;
    }
}

// The largest sums that the header promises: 65,536 ranks, added one after the other in the type itself.
TEST(CountWrong, IsExactForTheLargestTeam) {
  constexpr std::uint32_t kRanks = 65'536;
  for (const Type type : kTypes) {
    const Batch one = batch(Op::all_reduce, type, kRanks, 64);
    std::vector<std::byte> sum(one.bytes);
    std::vector<std::byte> contribution(one.bytes);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      fill(one, kRanks, rank, contribution);
      add_elements(type, contribution, sum);
    }
    EXPECT_EQ(count_wrong(one, kRanks, 7, sum), 0U) << name(type);
  }
}

TEST(CountWrong, ChecksATransferAtItsReceiverInBothDirectionsAtOnce) {
  Batch one = batch(Op::transfer, Type::f32, 3, 50'000);
  one.edges = {{0, 2}, {2, 0}};
  Memory run = executed(one, 3);
  EXPECT_EQ(wrong_in_all(one, 3, run), 0U);
  run.landing[2][7] ^= std::byte{0x01};
  EXPECT_EQ(count_wrong(one, 3, 2, run.landing[2]), 1U);
  EXPECT_EQ(count_wrong(one, 3, 1, run.landing[1]), 0U);  // receives nothing
}

TEST(Fill, WritesNothingButItsSpan) {
  const Batch one = batch(Op::all_gather, Type::u8, 2, 64);
  std::vector<std::byte> memory(66, std::byte{3});  // looks like a contribution
  fill(one, 2, 1, std::span(memory).subspan(1, 64));
  EXPECT_EQ(memory.front(), std::byte{3});
  EXPECT_EQ(memory.back(), std::byte{3});
  EXPECT_EQ(std::to_integer<int>(memory[1 + 32]), pattern(one.seed, 1, 32));
  EXPECT_GT(std::to_integer<int>(memory[1]), 7);  // the other's block: no contribution
}

std::vector<std::byte> bf16(std::initializer_list<std::uint16_t> values) {
  std::vector<std::byte> bytes;
  for (const auto value : values) {
    bytes.push_back(static_cast<std::byte>(value & 0xFFU));
    bytes.push_back(static_cast<std::byte>(value >> 8U));
  }
  return bytes;
}

// 1 = 0x3F80, 2 = 0x4000, 3 = 0x4040, 256 = 0x4380, 257 is no bf16: ties to even go to 256; 256 + 3 → 260 =
// 0x4382.
TEST(AddElements, RoundsBf16ToNearestEven) {
  auto into = bf16({0x3F80, 0x4380, 0x4380});
  add_elements(Type::bf16, bf16({0x4000, 0x3F80, 0x4040}), into);
  EXPECT_EQ(into, bf16({0x4040, 0x4380, 0x4382}));
}

TEST(AddElements, WrapsIntegersAndAddsOddCounts) {
  std::vector<std::byte> into(67, std::byte{250});
  add_elements(Type::u8, std::vector<std::byte>(67, std::byte{10}), into);
  EXPECT_EQ(into, std::vector<std::byte>(67, std::byte{4}));
}

TEST(MeasurePattern, ItsStretchesSayWhatIsFilledAndWhatIsExpected) {
  // For each operation: a work buffer written from stretches equals a filled one, and a result written from
  // what is expected has nothing wrong; one element less, and there is.
  for (const Op op : kCollectives)
    for (const Type type : kTypes)
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const Batch one = batch(op, type, 3, 60'000, 1);
        const auto write = [&one](const std::vector<Stretch>& stretches) {
          std::vector<std::byte> buffer(one.bytes, kPoison);
          for (const auto& stretch : stretches)
            for (std::uint64_t i = 0; i < stretch.length; ++i)
              buffer.at(stretch.offset + i) = stretch.period.at(i % stretch.period.size());
          return buffer;
        };
        std::vector<std::byte> filled(one.bytes);
        fill(one, 3, rank, filled);
        EXPECT_EQ(write(contributed_stretches(one, 3, rank)), filled) << name(op) << " " << rank;
        const auto expected = expected_stretches(one, 3, rank);
        auto result = write(expected);
        EXPECT_EQ(count_wrong(one, 3, rank, result), 0u) << name(op) << " " << rank;
        if (expected.empty()) continue;
        result.at(expected.back().offset + expected.back().length - 1) ^= std::byte{0x40};
        EXPECT_EQ(count_wrong(one, 3, rank, result), 1u) << name(op) << " " << rank;
      }
}

}  // namespace
}  // namespace netcheck
