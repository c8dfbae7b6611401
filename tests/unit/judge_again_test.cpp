// A gate that failed while the rounds isolate nobody is measured once more: one slow moment of a healthy
// network must not fail a job, and a network that is slow must.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/gate.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::Network;
using model::plan_for;
using model::play;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kAsked = 0.8e9;

Plan demanding(std::uint32_t nodes, double min = kAsked) {
  Plan plan = plan_for(nodes);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{min};
  return plan;
}

bool is(const Done& done, Phase phase) {
  const auto* measure = std::get_if<Measure>(&done.step);
  return measure != nullptr && measure->phase == phase;
}

/// Steps of that phase in a check of a healthy network; all rates halve in them.
Network slow_in(const Plan& plan, Phase phase) {
  Network network;
  const auto healthy = play(plan, {}).history.done;
  for (std::size_t step = 0; step < healthy.size(); ++step)
    if (is(healthy[step], phase)) network.moments[step] = 0.5;
  return network;
}

/// Indices of the gate's batches that came after a round.
std::vector<std::size_t> again(const History& history) {
  std::vector<std::size_t> found;
  bool rounds = false;
  for (std::size_t step = 0; step < history.done.size(); ++step) {
    rounds = rounds || is(history.done[step], Phase::blame);
    if (rounds && is(history.done[step], Phase::gate)) found.push_back(step);
  }
  return found;
}

std::string words(const Plan& plan, const model::Played& played) {
  return line(decide(plan, played.history), plan, played.elapsed);
}

TEST(Again, OneSlowMomentOfTheGateFailsNobody) {
  for (const std::uint32_t nodes : {2u, 3u, 4u, 8u}) {
    const Plan plan = demanding(nodes);
    const auto played = play(plan, slow_in(plan, Phase::gate));
    const Verdict verdict = decide(plan, played.history);
    ASSERT_EQ(name(verdict), "pass") << nodes << " " << words(plan, played);
    // The figure is the one that was measured when nothing was in the way: 1 Gb/s less latency.
    EXPECT_GT(std::get<Pass>(verdict).figures.busbw.bits_per_second, 0.9e9);
    EXPECT_EQ(again(played.history).size(), 1u);
    EXPECT_LE(played.elapsed, plan.budget);
  }
}

TEST(Again, AFigureThatIsFasterTheSecondTimeMustLastToo) {
  // At a tenth of the rate 256 KiB last as long as 30 ms; at the whole rate they do not.
  const Plan plan = demanding(4);
  Network network;
  for (std::size_t step = 2; step < 6; ++step)
    network.moments[step] = 0.1;
  const auto played = play(plan, network);
  ASSERT_EQ(name(decide(plan, played.history)), "pass") << words(plan, played);
  const auto steps = again(played.history);
  ASSERT_GE(steps.size(), 2u);
  EXPECT_TRUE(read_gate(plan, played.history).figure(0)->lasting());
  EXPECT_FALSE(read_gate(plan, played.history).again.at(0).sizes.front().lasting());
}

TEST(Again, OneSlowMomentInEitherPartitionFailsNobody) {
  const Plan plan = demanding(20);  // three groups, divided twice
  const auto healthy = play(plan, {}).history.done;
  std::size_t crossing = 0;
  for (std::size_t step = 0; step < healthy.size(); ++step)
    if (is(healthy[step], Phase::gate)) crossing = step;
  Network second;
  second.moments[crossing] = 0.5;
  Network first = slow_in(plan, Phase::gate);
  first.moments.erase(crossing);
  // The second partition stays joined; the first is formed anew, and its figure is its own.
  for (const auto& [network, forms] : {std::pair{second, 2}, {first, 3}}) {
    const auto played = play(plan, network);
    EXPECT_EQ(name(decide(plan, played.history)), "pass") << words(plan, played);
    EXPECT_EQ(again(played.history).size(), 1u);
    EXPECT_EQ(std::ranges::count_if(played.history.done,
                                    [](const Done& done) { return std::holds_alternative<Form>(done.step); }),
              forms);
  }
}

TEST(Again, AWholeNetworkBelowTheWishFailsAfterTheSecondMeasurement) {
  for (const std::uint32_t nodes : {2u, 4u, 20u}) {
    Plan plan = plan_for(nodes);
    plan.thresholds.min = Rate{1e10};
    const auto played = play(plan, {});
    EXPECT_EQ(name(decide(plan, played.history)), "fail") << words(plan, played);
    EXPECT_EQ(again(played.history).size(), 1u) << "one partition that has failed twice is enough";
  }
}

TEST(Again, ANamedNodeNeedsNoSecondMeasurement) {
  const Plan plan = demanding(4);
  Network network;
  network.transmit[{2, 0}] = 0.1;
  const auto played = play(plan, network);
  EXPECT_THAT(model::named(decide(plan, played.history), plan), ElementsAre("n2(tx)"));
  EXPECT_THAT(again(played.history), IsEmpty());
}

TEST(Again, ASlowFabricNeedsNoSecondMeasurement) {
  const Plan plan = demanding(4);
  const auto played = play(plan, {.rate = 0.2e9});
  ASSERT_EQ(name(decide(plan, played.history)), "fail");
  EXPECT_TRUE(std::get<Fail>(decide(plan, played.history)).blame.fabric_wide);
  EXPECT_THAT(again(played.history), IsEmpty());
}

TEST(Again, WithoutTimeForItAFigureThatNothingBearsOutIsInconclusive) {
  const Plan plan = demanding(4);
  auto played = play(plan, slow_in(plan, Phase::gate));
  const auto steps = again(played.history);
  ASSERT_EQ(steps.size(), 1u);
  played.history.done.resize(steps.front());
  EXPECT_THAT(words(plan, played), HasSubstr("netcheck=inconclusive phase=gate busbw="));
  EXPECT_THAT(words(plan, played),
              HasSubstr("below the threshold once, no way slow, and no time to measure again"));
}

TEST(Again, WithoutTimeForItASlowWayBearsTheFigureOut) {
  const Plan plan = demanding(2);  // two nodes: nobody can be named
  Network network;
  network.transmit[{0, 0}] = 0.1;
  auto played = play(plan, network);
  const auto steps = again(played.history);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(name(decide(plan, played.history)), "fail");
  played.history.done.resize(steps.front());
  EXPECT_EQ(name(decide(plan, played.history)), "fail") << words(plan, played);
}

TEST(Again, ASlowMomentThatReachesIntoTheFirstRoundFailsNobody) {
  for (const std::uint32_t nodes : {2u, 4u, 8u}) {
    const Plan plan = demanding(nodes);
    Network network = slow_in(plan, Phase::gate);
    network.moments[network.moments.rbegin()->first + 1] = 0.3;
    const auto played = play(plan, network);
    EXPECT_EQ(name(decide(plan, played.history)), "pass") << nodes << " " << words(plan, played);
  }
}

TEST(Again, WhatDoesNotEndTheSecondTimeFailsNobody) {
  const Plan plan = demanding(4);
  auto played = play(plan, slow_in(plan, Phase::gate));
  const auto steps = again(played.history);
  ASSERT_EQ(steps.size(), 1u);
  NodeOutcome& outcome = played.history.done[steps.front()].outcomes.front();
  outcome.trouble = Trouble::no_bytes;
  outcome.samples.front().done.clear();
  EXPECT_THAT(words(plan, played), HasSubstr("below the threshold once; measured again, it did not end"));
}

}  // namespace
}  // namespace netcheck::judge
