// A process that does not run moves no bytes: what it was kept from running may exonerate, and accuses
// nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/gate.h"
#include "judge/pairs.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::asking;
using model::judged;
using model::named;
using model::Network;
using model::plan_for;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One edge, as its two ends tell it: at `rate`, over 100 ms, both ends running for that part of it.
EdgeFigure edge(std::uint32_t from, std::uint32_t to, double rate, double part_running = 1) {
  return {.from = {from, 0},
          .to = {to, 0},
          .rate = Rate{rate},
          .timed = std::chrono::milliseconds(100),
          .part_running = part_running};
}

TEST(KeptFromRunning, NobodyIsNamedWhoseProcessRanHalfOrLessOfTheTime) {
  for (const double part : {0.6, 0.5, 0.25, 0.1, 0.02}) {
    const auto check = judged(asking(4), {.runs = {{2, part}}, .untold = 0.1});
    EXPECT_EQ(name(check.verdict), "inconclusive") << part << ": " << check.text;
    EXPECT_THAT(check.text, HasSubstr("n2's process was kept from running for")) << part;
  }
}

TEST(KeptFromRunning, AWholeClusterShortOfProcessorsDoesNotFail) {
  // Each runs 70 % of the time: rings and ways are at half the rate.
  const auto check =
      judged(asking(6), {.runs = {{0, 0.7}, {1, 0.7}, {2, 0.7}, {3, 0.7}, {4, 0.7}, {5, 0.7}}});
  EXPECT_EQ(name(check.verdict), "inconclusive") << check.text;
}

TEST(KeptFromRunning, ASlowNodeIsNamedAlthoughProcessesWereKeptALittle) {
  const auto check =
      judged(asking(4), {.transmit = {{{2, 0}, 0.1}}, .runs = {{0, 0.9}, {1, 0.9}, {2, 0.9}, {3, 0.9}}});
  EXPECT_THAT(named(check.verdict, check.plan), ElementsAre("n2(tx)")) << check.text;
}

TEST(KeptFromRunning, ASlowNodeBesideOneThatIsKeptIsNoReasonToNameTheOther) {
  for (std::uint32_t kept = 0; kept < 6; ++kept) {
    const auto check = judged(asking(6), {.transmit = {{{2, 0}, 0.1}}, .runs = {{kept, 0.3}}});
    for (const auto& who : named(check.verdict, check.plan))
      EXPECT_EQ(who, "n2(tx)") << "n" << kept << " was kept: " << check.text;
  }
}

TEST(KeptFromRunning, ASlowNodeFailsTheCheckAlthoughAnothersProcessExcusesTheGate) {
  // n0 ran 30 % of the time: the ring may have had any rate. n2 met n3 and n5, and sent 100 Mb/s of the 800.
  const auto check = judged(asking(6), {.transmit = {{{2, 0}, 0.1}}, .runs = {{0, 0.3}}});
  EXPECT_EQ(name(check.verdict), "fail") << check.text;
  EXPECT_THAT(named(check.verdict, check.plan), ElementsAre("n2(tx)")) << check.text;
}

TEST(KeptFromRunning, WhatIsFastAllTheSamePasses) {
  // 0.9 of 1 Gb/s is above the 800 Mb/s that are asked for.
  const auto check = judged(asking(4), {.runs = {{1, 0.9}}});
  EXPECT_EQ(name(check.verdict), "pass") << check.text;
}

TEST(KeptFromRunning, AnExcusedFigureSpeaksForNobody) {
  // n1 is slow with n0 and n2. If n2 were good for n3's sake alone, whose figure with n2 is excused, n2 would
  // be no second witness.
  const Plan plan = plan_for(4);
  std::vector<EdgeFigure> edges = {edge(1, 0, 1e8), edge(0, 1, 1e9), edge(1, 2, 1e8), edge(2, 1, 1e9),
                                   edge(3, 0, 1e9), edge(0, 3, 1e9), edge(3, 2, 1e9), edge(2, 3, 1e9)};
  ASSERT_EQ(decode(plan, edges).culprits.size(), 1U);
  edges[6] = edge(3, 2, 1e8, 0.1);  // the only way on which n2 received well
  EXPECT_THAT(decode(plan, edges).culprits, IsEmpty());
}

TEST(KeptFromRunning, AWayThatIsSlowEvenSoIsSlow) {
  const Plan plan = plan_for(4);
  // 100 Mb/s in 60 % of the time are 167 Mb/s of 1 Gb/s.
  std::vector<EdgeFigure> edges = {edge(1, 0, 1e8, 0.6), edge(0, 1, 1e9), edge(1, 2, 1e8, 0.6),
                                   edge(2, 1, 1e9),      edge(3, 0, 1e9), edge(0, 3, 1e9),
                                   edge(3, 2, 1e9),      edge(2, 3, 1e9)};
  ASSERT_EQ(decode(plan, edges).culprits.size(), 1U);
  EXPECT_EQ(decode(plan, edges).culprits.front().node, 1U);
}

TEST(KeptFromRunning, ExcusesAPairUnderMinPerPair) {
  Plan plan = plan_for(2);
  plan.thresholds.min_per_pair = Rate{0.8e9};
  const std::vector<EdgeFigure> twice = {edge(0, 1, 0.7e9), edge(1, 0, 1e9), edge(0, 1, 0.7e9)};
  ASSERT_TRUE(short_way(plan, twice));
  const std::vector<EdgeFigure> kept = {edge(0, 1, 0.7e9, 0.7), edge(1, 0, 1e9), edge(0, 1, 0.7e9, 0.7)};
  EXPECT_FALSE(short_way(plan, kept));
}

TEST(KeptFromRunning, AnExcusedFigureSizesNoRound) {
  // n2's way at 0.55 Gb/s is excused, so the median of the first half-round is the other's 1 Gb/s: 80 ms of
  // that in 4 operations and one before them are 2 MB each. Both ways' median would be 0.775 Gb/s.
  const auto played = model::play(asking(4), {.runs = {{2, 0.55}}});
  std::vector<std::uint64_t> sizes;
  for (const Done& done : played.history.done)
    if (const auto* measure = std::get_if<Measure>(&done.step); measure && measure->phase == Phase::blame)
      sizes.push_back(measure->batches.front().bytes);
  ASSERT_GE(sizes.size(), 2U);
  EXPECT_NEAR(static_cast<double>(sizes[1]), 2e6, 0.02e6);
}

TEST(KeptFromRunning, AGateThatWasKeptIsNoFirstSighting) {
  // Below once while n1 was kept, the rounds clean; below once more in a slow moment of the network.
  const Plan plan = asking(4);
  auto played = model::play(plan, {.runs = {{1, 0.7}}});
  History history = played.history;
  std::size_t step = 0;
  for (Done& done : history.done) {
    const auto* measure = std::get_if<Measure>(&done.step);
    const bool rounds = measure != nullptr && measure->phase == Phase::blame;
    if (rounds) break;
    ++step;
  }
  history.done.resize(step);
  ASSERT_TRUE(too_slow(plan, *figures_of(plan, history)));
  model::Network later;
  for (std::size_t i = 4; i < 40; ++i)
    later.moments[i] = 0.75;  // from the second sighting on; counted from the first step that is played
  const auto after = model::Player(plan, later, history).play();
  const Verdict verdict = decide(plan, after.history);
  EXPECT_NE(name(verdict), "fail") << line(verdict, plan, after.elapsed);
}

}  // namespace
}  // namespace netcheck::judge
