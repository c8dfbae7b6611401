// What others move over a node's device at the same time was not to be had: it may exonerate, and accuses
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

/// One edge over 100 ms, while others had `room` of the way, bits/s.
EdgeFigure edge(std::uint32_t from, std::uint32_t to, double rate, double room = 0) {
  return {.from = {from, 0},
          .to = {to, 0},
          .rate = Rate{rate},
          .timed = std::chrono::milliseconds(100),
          .room_of_others = Rate{room}};
}

TEST(OtherTraffic, NobodyIsNamedIntoWhoseDeviceOthersSend) {
  for (const double part : {0.3, 0.6, 0.9, 0.99})
    for (const double yields : {0.0, 0.5}) {
      const auto check = judged(asking(4), {.others_in = {{{2, 0}, part}}, .yields = yields});
      EXPECT_EQ(name(check.verdict), "inconclusive") << part << ": " << check.text;
      EXPECT_THAT(check.text, HasSubstr("n2's devices carried other traffic")) << part;
    }
}

TEST(OtherTraffic, NobodyIsNamedOutOfWhoseDeviceOthersSend) {
  for (const double part : {0.3, 0.9}) {
    const auto check = judged(asking(4), {.others_out = {{{1, 0}, part}}});
    EXPECT_EQ(name(check.verdict), "inconclusive") << part << ": " << check.text;
    EXPECT_THAT(check.text, HasSubstr("n1's devices carried other traffic")) << part;
  }
}

TEST(OtherTraffic, OfOneRailExcusesThatRail) {
  Plan plan = plan_for(4, 2);
  plan.thresholds.min_per_rail = Rate{0.8e9};
  const auto check = judged(plan, {.others_in = {{{2, 1}, 0.9}}});
  EXPECT_EQ(name(check.verdict), "inconclusive") << check.text;
  // On rail 0 nobody else sends: 100 Mb/s of 1 Gb/s there is the node's own.
  const auto slow = judged(plan, {.receive = {{{2, 0}, 0.1}}, .others_in = {{{2, 1}, 0.9}}});
  EXPECT_EQ(name(slow.verdict), "fail") << slow.text;
  EXPECT_THAT(named(slow.verdict, slow.plan), ElementsAre("n2/eth0(rx)")) << slow.text;
}

TEST(OtherTraffic, ASlowNodeIsNamedAlthoughOthersUseTheNetworkALittle) {
  // 5 % everywhere: 100 Mb/s and twice 50 are 200 of 1,000.
  Network network{.transmit = {{{2, 0}, 0.1}}};
  for (std::uint32_t node = 0; node < 4; ++node)
    network.others_in[{node, 0}] = network.others_out[{node, 0}] = 0.05;
  const auto check = judged(asking(4), network);
  EXPECT_THAT(named(check.verdict, check.plan), ElementsAre("n2(tx)")) << check.text;
}

TEST(OtherTraffic, ASlowNodeIsNamedBesideOneThatOthersSendTo) {
  const auto check = judged(asking(6), {.transmit = {{{2, 0}, 0.1}}, .others_in = {{{0, 0}, 0.7}}});
  EXPECT_EQ(name(check.verdict), "fail") << check.text;
  EXPECT_THAT(named(check.verdict, check.plan), ElementsAre("n2(tx)")) << check.text;
}

TEST(OtherTraffic, WhatIsFastAllTheSamePasses) {
  const auto check = judged(asking(4), {.others_in = {{{1, 0}, 0.1}}});
  EXPECT_EQ(name(check.verdict), "pass") << check.text;
}

TEST(OtherTraffic, AnExcusedFigureSpeaksForNobody) {
  // n1 is slow with n0 and n2. If n2 were good for n3's sake alone, whose figure with n2 is excused, n2 would
  // be no second witness.
  const Plan plan = plan_for(4);
  std::vector<EdgeFigure> edges = {edge(1, 0, 1e8), edge(0, 1, 1e9), edge(1, 2, 1e8), edge(2, 1, 1e9),
                                   edge(3, 0, 1e9), edge(0, 3, 1e9), edge(3, 2, 1e9), edge(2, 3, 1e9)};
  ASSERT_EQ(decode(plan, edges).culprits.size(), 1U);
  edges[6] = edge(3, 2, 1e8, 1.6e9);  // the only way on which n2 received well
  EXPECT_THAT(decode(plan, edges).culprits, IsEmpty());
}

TEST(OtherTraffic, AWayThatIsSlowEvenSoIsSlow) {
  // 100 Mb/s with room for 200 more, of 1 Gb/s.
  const Plan plan = plan_for(4);
  const std::vector<EdgeFigure> edges = {edge(1, 0, 1e8, 2e8), edge(0, 1, 1e9), edge(1, 2, 1e8, 2e8),
                                         edge(2, 1, 1e9),      edge(3, 0, 1e9), edge(0, 3, 1e9),
                                         edge(3, 2, 1e9),      edge(2, 3, 1e9)};
  ASSERT_EQ(decode(plan, edges).culprits.size(), 1U);
  EXPECT_EQ(decode(plan, edges).culprits.front().node, 1U);
}

TEST(OtherTraffic, AFewBytesDoNotExcuseADeadWay) {
  // 10 kb/s of router advertisements and the like beside no byte at all.
  const Plan plan = plan_for(4);
  std::vector<EdgeFigure> edges = {edge(1, 0, 0, 1e4), edge(0, 1, 0, 1e4), edge(1, 2, 0, 1e4),
                                   edge(2, 1, 0, 1e4), edge(3, 0, 1e9),    edge(0, 3, 1e9),
                                   edge(3, 2, 1e9),    edge(2, 3, 1e9)};
  ASSERT_EQ(decode(plan, edges).culprits.size(), 1U);
  EXPECT_TRUE(decode(plan, edges).dead);
  for (EdgeFigure& figure : edges)
    if (figure.rate->bits_per_second <= 0) figure.room_of_others = Rate{1.8e9};  // a flood at 900 Mb/s
  EXPECT_THAT(decode(plan, edges).culprits, IsEmpty());
  EXPECT_FALSE(decode(plan, edges).dead);
}

TEST(OtherTraffic, ThatDrownsASendersAcknowledgementsExcusesItsWayOut) {
  // What comes in at n2 and goes out of it share nothing but the acknowledgements; the model slows both down.
  Network network{.transmit = {{{2, 0}, 0.4}}, .others_in = {{{2, 0}, 0.6}}};
  const auto check = judged(asking(4), network);
  EXPECT_EQ(name(check.verdict), "inconclusive") << check.text;
}

TEST(OtherTraffic, WhatDidNotEndInACrowdSaysNothingOfAnyWay) {
  // n3 is flooded; what was abandoned there is in the way of n0 and n1, where nobody else sends.
  const Plan plan = asking(4);
  for (const bool flooded : {true, false}) {
    auto played = model::play(plan, {.receive = {{{3, 0}, 0.05}}, .links = {{{0, 1, 0}, 1e-9}}});
    ASSERT_EQ(name(decide(plan, played.history)), "fail");
    for (Done& done : played.history.done)
      for (NodeOutcome& outcome : done.outcomes)
        for (Sample& sample : outcome.samples)
          if (flooded && outcome.node == 3) sample.others_in = 120'000'000;  // a second of 960 Mb/s
    const Verdict verdict = decide(plan, played.history);
    EXPECT_EQ(name(verdict), flooded ? "inconclusive" : "fail") << line(verdict, plan, played.elapsed);
  }
}

TEST(OtherTraffic, LeavesNoFigureOfAMomentToSizeWhatComesNext) {
  // At the gate's 0.5 Mb/s the first ways get 4 KiB, four times timed: 0.14 ms at 1 Gb/s. Taken for 0.5 ms
  // they are 262 Mb/s, 655 kB for each of five operations in 100 ms; at 1 Gb/s they would be 2 MB and more.
  const auto played =
      model::play(asking(4), {.latency = std::chrono::microseconds(1), .transmit = {{{2, 0}, 0.0005}}});
  std::vector<std::uint64_t> sizes;
  for (const Done& done : played.history.done)
    if (const auto* measure = std::get_if<Measure>(&done.step); measure && measure->phase == Phase::blame)
      sizes.push_back(measure->batches.front().bytes);
  ASSERT_GE(sizes.size(), 2U);
  EXPECT_EQ(sizes[0], 4'096U);
  EXPECT_LE(sizes[1], 660'000U);
}

TEST(OtherTraffic, ExcusesAPairUnderMinPerPair) {
  Plan plan = plan_for(2);
  plan.thresholds.min_per_pair = Rate{0.8e9};
  ASSERT_TRUE(short_way(plan, {edge(0, 1, 0.7e9), edge(1, 0, 1e9), edge(0, 1, 0.7e9)}));
  EXPECT_FALSE(short_way(plan, {edge(0, 1, 0.7e9, 0.2e9), edge(1, 0, 1e9), edge(0, 1, 0.7e9, 0.2e9)}));
}

}  // namespace
}  // namespace netcheck::judge
