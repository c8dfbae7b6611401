// Thresholds for each rail and for each pair: what the node's own figure does not show.
#include <gmock/gmock.h>

#include "judge/pairs.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::Network;
using model::plan_for;
using model::play;
using std::chrono::milliseconds;
using testing::HasSubstr;

bool has_rounds(const History& history) {
  return std::ranges::any_of(history.done, [](const Done& done) {
    const auto* measure = std::get_if<Measure>(&done.step);
    return measure != nullptr && measure->phase == Phase::blame;
  });
}

// Two rails of 1 Gb/s, one of n0's at half: 1.5 Gb/s in all, enough for 1.2 Gb/s.
Plan two_rails(std::optional<Rate> per_rail) {
  Plan plan = plan_for(4, 2);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{1.2e9};
  plan.thresholds.min_per_rail = per_rail;
  return plan;
}
Network half_a_rail() {
  Network network;
  network.transmit[{0, 1}] = 0.5;
  return network;
}

TEST(PerRail, ThresholdFailsWhatTheSumLetsThrough) {
  EXPECT_EQ(name(decide(two_rails({}), play(two_rails({}), half_a_rail()).history)), "pass");
  const Plan plan = two_rails(Rate{0.9e9});
  const Verdict verdict = decide(plan, play(plan, half_a_rail()).history);
  ASSERT_EQ(name(verdict), "fail");
  const std::string words = line(verdict, plan, milliseconds(2'000));
  EXPECT_THAT(words, HasSubstr("min=1.2Gbps min_per_rail=900Mbps"));
  EXPECT_THAT(words, HasSubstr("slow=n0/eth1(tx: "));
  EXPECT_THAT(words, testing::ContainsRegex(
                         "reason=\"rail eth1: [45][0-9][0-9]\\.[0-9]Mbps of min_per_rail=900Mbps\""));
}

TEST(PerRail, ThresholdThatIsMetPassesWithoutRounds) {
  const Plan plan = two_rails(Rate{0.9e9});
  const auto history = play(plan, {}).history;
  EXPECT_EQ(name(decide(plan, history)), "pass");
  EXPECT_FALSE(has_rounds(history));
}

// Six nodes in a ring; the way from n0 to n3 is on no ring of neighbours.
Plan six(std::optional<Rate> per_pair) {
  Plan plan = plan_for(6);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{0.9e9};
  plan.thresholds.min_per_pair = per_pair;
  return plan;
}
Network slow_way() {
  Network network;
  network.links[{0, 3, 0}] = 0.3;
  return network;
}

TEST(PerPair, ThresholdFailsAWayThatNoRingUses) {
  EXPECT_EQ(name(decide(six({}), play(six({}), slow_way()).history)), "pass");
  const Plan plan = six(Rate{0.8e9});
  const Verdict verdict = decide(plan, play(plan, slow_way()).history);
  ASSERT_EQ(name(verdict), "fail");
  EXPECT_THAT(
      line(verdict, plan, milliseconds(2'000)),
      testing::ContainsRegex(
          "min_per_pair=800Mbps .*reason=\"n0>n3: [23][0-9][0-9]\\.[0-9]Mbps of min_per_pair=800Mbps\""));
}

// Its last steps measure the slow way once more; without them it may have been one slow moment.
TEST(PerPair, AWayThatWasSlowOnceFailsNobody) {
  const Plan plan = six(Rate{0.8e9});
  History history = play(plan, slow_way()).history;
  ASSERT_EQ(name(decide(plan, history)), "fail");
  while (name(decide(plan, history)) == "fail")
    history.done.pop_back();
  const Verdict verdict = decide(plan, history);
  ASSERT_EQ(name(verdict), "inconclusive");
  EXPECT_THAT(std::get<Inconclusive>(verdict).reason, HasSubstr("min_per_pair=800Mbps, once"));
}

TEST(PerPair, ThresholdThatIsMetPasses) {
  const Plan plan = six(Rate{0.8e9});
  const auto history = play(plan, {}).history;
  EXPECT_EQ(name(decide(plan, history)), "pass");
  EXPECT_TRUE(has_rounds(history));
}

std::vector<Pair> slow_ways_in(const Plan& plan, const Network& network) {
  return slow_ways(plan, edges_of(plan, play(plan, network).history));
}

TEST(SlowWays, AreThoseOfTheSlowNodeAlone) {
  Plan plan = plan_for(4);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{0.9e9};
  EXPECT_THAT(slow_ways_in(plan, {}), testing::IsEmpty());
  Network network;
  network.transmit[{3, 0}] = 0.3;
  const auto ways = slow_ways_in(plan, network);
  EXPECT_GE(ways.size(), 2U);  // with two partners
  for (const Pair& way : ways)
    EXPECT_EQ(way.from, 3U);
}

// 300 Mb/s is above what the site asks of a node, and far below what the others carry.
TEST(SlowWays, AreThoseBehindTheOthersToo) {
  Plan plan = plan_for(4);
  plan.thresholds.min = Rate{0.9e9};
  plan.thresholds.site_floor = Rate{0.2e9};
  Network network;
  network.transmit[{3, 0}] = 0.3;
  EXPECT_GE(slow_ways_in(plan, network).size(), 2U);
}

TEST(SlowWays, AreThoseUnderWhatIsAskedOfPairs) {
  EXPECT_THAT(slow_ways_in(six(Rate{0.8e9}), slow_way()), testing::ElementsAre(Pair{0, 3}));
}

// All at the same 1 Gb/s: none is slower than the others, and each is below what the site asks of a rail.
TEST(SlowWays, AreAllWhereTheSiteAsksMoreThanAnyCarries) {
  Plan plan = plan_for(4);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{2e9};
  EXPECT_GE(slow_ways_in(plan, {}).size(), 4U);
}

// Two rails of 1 Gb/s: a way carries 2 Gb/s.
TEST(PerPair, AWayIsAllItsRails) {
  Plan plan = plan_for(4, 2);
  plan.thresholds.min_per_pair = Rate{1.8e9};
  EXPECT_EQ(name(decide(plan, play(plan, {}).history)), "pass");
  plan.thresholds.min_per_pair = Rate{2.2e9};
  EXPECT_EQ(name(decide(plan, play(plan, {}).history)), "fail");
}

TEST(PerPair, WithoutTimeForPairsIsInconclusive) {
  Plan plan = six(Rate{0.8e9});
  History gate_only = play(six({}), {}).history;
  ASSERT_FALSE(has_rounds(gate_only));
  const Verdict verdict = decide(plan, gate_only);
  ASSERT_EQ(name(verdict), "inconclusive");
  EXPECT_THAT(std::get<Inconclusive>(verdict).reason, HasSubstr("min_per_pair"));
}

}  // namespace
}  // namespace netcheck::judge
