// Bus bandwidth and sizes against published rows and hand calculation.
#include <gmock/gmock.h>

#include <tuple>

#include "measure/collective.h"

namespace netcheck {
namespace {

using std::chrono::nanoseconds;
using testing::DoubleNear;

double gigabytes(Rate rate) {
  return rate.bits_per_second / 8e9;
}

// CoreWeave's nccl-tests README: all_reduce, float, sum; "time (us) algbw (GB/s) busbw (GB/s)", two decimals.
TEST(BusBandwidth, MatchesPublishedRowOf96Ranks) {
  const Ns took = nanoseconds(5'808'000);
  EXPECT_THAT(gigabytes(alg_bandwidth(1'073'741'824, took)), DoubleNear(184.87, 0.01));
  EXPECT_THAT(gigabytes(bus_bandwidth(Op::all_reduce, 96, 1'073'741'824, took)), DoubleNear(365.90, 0.02));
}

TEST(BusBandwidth, MatchesPublishedRowOf1440Ranks) {
  const Ns took = nanoseconds(24'782'000);
  EXPECT_THAT(gigabytes(alg_bandwidth(4'294'967'296, took)), DoubleNear(173.31, 0.01));
  EXPECT_THAT(gigabytes(bus_bandwidth(Op::all_reduce, 1440, 4'294'967'296, took)), DoubleNear(346.38, 0.02));
}

// nccl-tests doc/PERFORMANCE.md, worked out by hand for n = 4.
TEST(BusFactor, FollowsTheTableOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 4), 1.5);
  for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::alltoall, Op::gather, Op::scatter})
    EXPECT_DOUBLE_EQ(bus_factor(op, 4), 0.75) << name(op);
  for (const Op op : {Op::broadcast, Op::reduce, Op::transfer})
    EXPECT_DOUBLE_EQ(bus_factor(op, 4), 1) << name(op);
}

TEST(BusFactor, IsZeroForOneRankBecauseNothingCrossesANetwork) {
  EXPECT_EQ(bus_factor(Op::all_reduce, 1), 0);
  EXPECT_EQ(bus_factor(Op::all_gather, 1), 0);
  EXPECT_EQ(bus_factor(Op::all_gather, 0), 0);
}

TEST(BusBandwidth, IsZeroNotInfiniteForNoTime) {
  EXPECT_EQ(bus_bandwidth(Op::all_gather, 4, 1 << 20, Ns::zero()).bits_per_second, 0);
}

// base = (count/n) & ~(16/elt - 1) elements per rank; S = base·n·elt.
TEST(ActualBytes, SplitsIntoSharesOfSixteenBytes) {
  // 1,000,000 B / 4 = 250,000 floats; / 3 = 83,333; & ~3 = 83,332; · 3 · 4 = 999,984
  EXPECT_EQ(actual_bytes(Op::all_gather, Type::f32, 3, 1'000'000), 999'984U);
  // 1,000 bytes; / 7 = 142; & ~15 = 128; · 7 = 896
  EXPECT_EQ(actual_bytes(Op::alltoall, Type::u8, 7, 1'000), 896U);
  // 1,001 B / 2 = 500 bf16; / 3 = 166; & ~7 = 160; · 3 · 2 = 960
  EXPECT_EQ(actual_bytes(Op::reduce_scatter, Type::bf16, 3, 1'001), 960U);
  EXPECT_EQ(actual_bytes(Op::gather, Type::i32, 4, 1 << 20), 1U << 20U);
}

TEST(ActualBytes, IsZeroWhenTooSmallToSplit) {
  EXPECT_EQ(actual_bytes(Op::all_gather, Type::f32, 4, 63), 0U);  // 15 floats / 4 = 3; & ~3 = 0
  EXPECT_EQ(actual_bytes(Op::all_gather, Type::f32, 4, 64), 64U);
  EXPECT_EQ(actual_bytes(Op::scatter, Type::f32, 0, 64), 0U);
}

TEST(ActualBytes, RoundsWholeBuffersToElements) {
  EXPECT_EQ(actual_bytes(Op::all_reduce, Type::f32, 3, 1'003), 1'000U);
  EXPECT_EQ(actual_bytes(Op::broadcast, Type::bf16, 3, 1'003), 1'002U);
  EXPECT_EQ(actual_bytes(Op::transfer, Type::u8, 2, 1'003), 1'003U);
}

}  // namespace
}  // namespace netcheck
