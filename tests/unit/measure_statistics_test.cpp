// Order statistics against hand calculation (type 7 quantiles, as in R and numpy).
#include <gmock/gmock.h>

#include <random>

#include "measure/statistics.h"

namespace netcheck {
namespace {

Sample sample(std::uint32_t rank, std::vector<std::int64_t> times) {
  Sample made{.rank = rank};
  for (const auto time : times)
    made.done.emplace_back(time);
  return made;
}

TEST(Median, TakesTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({}), std::nullopt);
}

TEST(Quantile, InterpolatesBetweenClosestRanks) {
  EXPECT_DOUBLE_EQ(*quantile({10, 20, 30, 40, 50}, 0.05), 12);  // position 0.2: 10 + 0.2 · 10
  EXPECT_DOUBLE_EQ(*quantile({50, 40, 30, 20, 10}, 0.95), 48);
  EXPECT_DOUBLE_EQ(*quantile({1, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(*quantile({1, 2}, 1), 2);
  EXPECT_EQ(quantile({}, 0.5), std::nullopt);
}

TEST(Spread, IsTheScaledMedianAbsoluteDeviation) {
  // median 2; deviations 1 1 0 0 2 4 7 → sorted 0 0 1 1 2 4 7 → 1
  EXPECT_DOUBLE_EQ(*spread({1, 1, 2, 2, 4, 6, 9}), 1.4826);
  EXPECT_EQ(spread({}), std::nullopt);
}

TEST(RankTime, IsTheMedianOfDifferencesWithoutTheFirst) {
  // differences 100 (left out), 10, 12, 11, 500 → sorted 10 11 12 500 → 11.5, rounded 12
  EXPECT_EQ(*rank_time(sample(0, {100, 110, 122, 133, 633})), Ns{12});
}

TEST(RankTime, UsesTheOnlyCompletionThereIs) {
  EXPECT_EQ(*rank_time(sample(0, {42})), Ns{42});
}

TEST(RankTime, RefusesNoSamplesAndNoTimeInsteadOfSayingZero) {
  const auto none = rank_time(sample(5, {}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().subject, "rank 5");
  EXPECT_FALSE(rank_time(sample(0, {7, 7, 7})));
  EXPECT_FALSE(rank_time(sample(0, {0})));
}

TEST(TransferTime, IsOverAllBytesAndAllTheTime) {
  // 476,672 bytes, four times, at 200 Mb/s, where 191.2 are payload, as recorded: they came in segments of
  // 65,160 bytes, 2.72 ms each, so an operation took seven of them or eight. 79.74 ms / 4 = 19.935 ms: 191.3
  // Mb/s. The median of the differences, 19.09 ms, would read 199.8.
  const auto received = sample(0, {21'780'000, 40'870'000, 59'930'000, 79'740'000});
  EXPECT_EQ(*transfer_time(received), Ns{19'935'000});
  EXPECT_EQ(*mean_time(received), Ns{19'935'000});
}

TEST(TransferTime, IsTheMedianWhereSomethingStoodStill) {
  // 10 10 10 10, and 20 late: 60 / 4 = 15 is 1.5 medians. 5 late: 45 / 4 = 11.25, within 1.25.
  EXPECT_EQ(*transfer_time(sample(0, {10, 20, 30, 60})), Ns{10});
  EXPECT_EQ(*mean_time(sample(0, {10, 20, 30, 60})), Ns{15});
  EXPECT_EQ(*transfer_time(sample(0, {1000, 2000, 3000, 4500})), Ns{1125});
}

TEST(TransferTime, IsNotTheMedianWhereTheReaderWasLate) {
  // As recorded at 1 Gb/s: 434,816 bytes each in 4.89 7.97 0.07 1.60 ms. In all 14.53 ms: 957.6 Mb/s, the
  // link's. The median, 1.60, would read 2,174.
  EXPECT_EQ(*transfer_time(sample(0, {4'890'000, 12'860'000, 12'930'000, 14'530'000})), Ns{3'632'500});
}

TEST(TransferTime, CountsWhatTcpRecoveredInABurst) {
  // Behind a receive shaper of 200 Mb/s that drops, as recorded: 2,447,808 bytes each in 144.26 82.06 80.68
  // 102.12 ms. In all 409.12 ms: 191.5 Mb/s, the link's. The median, 82.06, would read 238.6.
  EXPECT_EQ(*transfer_time(sample(0, {144'260, 226'320, 307'000, 409'120})), Ns{102'280});
}

TEST(TransferTime, RefusesNoSamplesAndNoTime) {
  for (const auto& time : {transfer_time(sample(4, {})), mean_time(sample(4, {0})),
                           transfer_time(sample(4, {0, 0})), transfer_time(sample(4, {0, 0, 1}))}) {
    ASSERT_FALSE(time);
    EXPECT_EQ(time.error().subject, "rank 4");
  }
  EXPECT_EQ(*transfer_time(sample(0, {42})), Ns{42});
}

TEST(OperationTime, IsTheSlowestRanksMedian) {
  EXPECT_EQ(*operation_time({sample(0, {5, 15, 25}), sample(1, {5, 35, 65}), sample(2, {5, 10, 15})}),
            Ns{30});
}

TEST(OperationTime, NamesTheFirstRankWithoutSamples) {
  const auto time = operation_time({sample(0, {1, 2}), sample(3, {}), sample(4, {})});
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().subject, "rank 3");
  EXPECT_FALSE(operation_time({}));
}

// Why medians come before the maximum: 512 ranks that all take 1 ms ± 10 %, 16 completions. The maximum of 15
// normal samples' medians over 512 ranks lies about 3 standard errors (1.25 · 10 % / √15) above the truth:
// 1 / 1.10 = 0.91. The median of per-operation maxima would lie 3 full deviations above: 0.77.
TEST(OperationTime, StaysNearTheTruthOver512NoisyRanks) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(1e6, 1e5);
  std::vector<Sample> samples;
  for (std::uint32_t rank = 0; rank < 512; ++rank) {
    Sample one{.rank = rank};
    double now = 0;
    for (int i = 0; i < 16; ++i)
      one.done.emplace_back(static_cast<std::int64_t>(now += noise(random)));
    samples.push_back(one);
  }
  const double fraction = 1e6 / static_cast<double>(operation_time(samples)->count());
  EXPECT_THAT(fraction, testing::AllOf(testing::Gt(0.88), testing::Lt(0.94)));
}

TEST(SpreadOf, ReportsMedianTailsAndVariation) {
  // differences 10 20 30 40 50: mean 30, squares 400+100+0+100+400 = 1000, / 4 = 250, √ = 15.811, / 30 =
  // 0.527
  const auto spread = spread_of(sample(0, {99, 109, 129, 159, 199, 249}));
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->median, Ns{30});
  EXPECT_EQ(spread->p5, Ns{12});
  EXPECT_EQ(spread->p95, Ns{48});
  EXPECT_NEAR(spread->variation, 0.527, 0.001);
}

TEST(SpreadOf, HasNoVariationWithOneCompletionAndRefusesNone) {
  EXPECT_EQ(spread_of(sample(0, {8}))->variation, 0);
  EXPECT_FALSE(spread_of(sample(0, {})));
}

Sample kept_for(int kept_ms, int whole_ms) {
  return {.done = {std::chrono::milliseconds(whole_ms)}, .kept = std::chrono::milliseconds(kept_ms)};
}

TEST(PartRunning, IsOneWhereNobodyWasKept) {
  EXPECT_EQ(part_running({kept_for(0, 100), kept_for(0, 50)}), 1);
  EXPECT_EQ(part_running({}), 1);
}

TEST(PartRunning, IsTheProductOfTheShares) {
  // 20 of 100 ms and 10 of 50 ms: a fifth each, which counts for two fifths.
  EXPECT_DOUBLE_EQ(part_running({kept_for(20, 100), kept_for(10, 50)}), 0.6 * 0.6);
}

TEST(PartRunning, MeasuresAgainstTheGivenSpanWhereThereIsOne) {
  Sample sender = kept_for(30, 0);
  sender.done.clear();  // a transfer's sender is not timed
  EXPECT_DOUBLE_EQ(part_running({sender, kept_for(0, 100)}, std::chrono::milliseconds(100)), 0.4);
}

TEST(PartRunning, IsUnknownWhereOneWasKeptForMoreThanHalf) {
  EXPECT_EQ(part_running({kept_for(51, 100), kept_for(0, 100)}), 0);
  Sample untimed = kept_for(5, 0);
  untimed.done.clear();
  EXPECT_EQ(part_running({untimed}), 0);
}

}  // namespace
}  // namespace netcheck
