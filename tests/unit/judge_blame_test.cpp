// Edges, written by hand, to culprits. Rates in Mb/s; a healthy edge reads 950. With all healthy edges alike
// the bar is 0.8 × 950 = 760 for many edges, and lower (never below half) for few.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/blame.h"
#include "judge/edges.h"
#include "judge/evidence.h"
#include "judge/line.h"
#include "judge/matching.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::plan_for;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr double kFine = 950e6, kSlow = 95e6;

/// `pairs` both ways at kFine, except that `slow` says so.
std::vector<EdgeFigure> edges(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs,
                              const std::function<bool(std::uint32_t, std::uint32_t)>& slow,
                              std::uint16_t lane = 0, double rate = kSlow) {
  std::vector<EdgeFigure> result;
  for (const auto& [a, b] : pairs)
    for (const auto& [from, to] : {std::pair{a, b}, {b, a}})
      result.push_back({.from = {from, lane}, .to = {to, lane}, .rate = Rate{slow(from, to) ? rate : kFine}});
  return result;
}
const std::vector<std::pair<std::uint32_t, std::uint32_t>> kFour{{0, 1}, {2, 3}, {0, 2}, {1, 3}};
const std::vector<std::pair<std::uint32_t, std::uint32_t>> kEight{{0, 1}, {2, 3}, {4, 5}, {6, 7},
                                                                  {0, 4}, {1, 5}, {2, 6}, {3, 7}};

std::vector<std::string> names(const Plan& plan, const Blame& blame) {
  std::vector<std::string> result;
  for (const Culprit& culprit : blame.culprits)
    result.push_back(describe(culprit, plan));
  return result;
}

TEST(Blame, NamesASlowTransmitAndExoneratesItsPartners) {
  const Plan plan = plan_for(4);
  const Blame blame = decode(plan, edges(kFour, [](auto from, auto) { return from == 3; }));
  EXPECT_THAT(names(plan, blame), ElementsAre("n3(tx: 95.0Mbps)"));
  EXPECT_TRUE(blame.culprits.front().isolated);
  EXPECT_EQ(blame.median.bits_per_second, kFine);
}

TEST(Blame, OneGoodEdgeExoneratesANode) {
  // 3 → 2 is slow, 3 → 1 is not: node 3 is fine, and so is 2 (0 → 2): what is left is the way between them.
  const Plan plan = plan_for(4);
  const Blame blame = decode(plan, edges(kFour, [](auto from, auto to) { return from == 3 && to == 2; }));
  EXPECT_THAT(names(plan, blame), ElementsAre("n3>n2(link: 95.0Mbps)"));
  EXPECT_FALSE(blame.culprits.front().isolated);
}

TEST(Blame, NamesNobodyAfterOnePartnerOnly) {
  // One round: 3 → 2 slow. n3's transmit or n2's receive, nobody can tell.
  const Plan plan = plan_for(4);
  const Blame blame = decode(plan, edges({{0, 1}, {2, 3}}, [](auto from, auto) { return from == 3; }));
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_THAT(blame.explanation, HasSubstr("n3>n2 slow (95.0Mbps): n3's transmit or n2's receive"));
}

TEST(Blame, OfTwoNodesTellsTheDirectionAndNotTheSide) {
  const Plan plan = plan_for(2);
  const Blame blame = decode(plan, edges({{0, 1}}, [](auto from, auto) { return from == 1; }));
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_FALSE(blame.fabric_wide);
  EXPECT_EQ(blame.explanation, "n1>n0 slow (95.0Mbps): n1's transmit or n0's receive");
}

TEST(Blame, OfThreeNodesResolvesOneFault) {
  const Plan plan = plan_for(3);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> all{{0, 1}, {0, 2}, {1, 2}};
  EXPECT_THAT(names(plan, decode(plan, edges(all, [](auto from, auto to) { return from == 1 || to == 1; }))),
              ElementsAre("n1(tx+rx: 95.0Mbps)"));
  EXPECT_THAT(names(plan, decode(plan, edges(all, [](auto, auto to) { return to == 2; }))),
              ElementsAre("n2(rx: 95.0Mbps)"));
  // Without the third pair nobody is proven good.
  EXPECT_THAT(
      decode(plan, edges({{0, 1}, {0, 2}}, [](auto from, auto to) { return from == 0 || to == 0; })).culprits,
      IsEmpty());
}

TEST(Blame, MeasuredIsTheBestEdge) {
  const Plan plan = plan_for(4);
  auto all = edges(kFour, [](auto from, auto) { return from == 0; });
  for (EdgeFigure& edge : all)
    if (edge.from.node == 0 && edge.to.node == 2) edge.rate = Rate{120e6};
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n0(tx: 120.0Mbps)"));
}

TEST(Blame, TellsAllBytesOverAllTheTimeBesideAName) {
  // A burst made the operations of n0 look faster than they came: it is slow all the same, and 95 Mb/s is
  // told.
  const Plan plan = plan_for(4);
  auto all = edges(
      kFour, [](auto from, auto) { return from == 0; }, 0, 2 * kSlow);
  for (EdgeFigure& edge : all)
    if (edge.from.node == 0) edge.average = Rate{kSlow};
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n0(tx: 95.0Mbps)"));
}

TEST(Blame, ABurstAmongTheGoodHidesNoSlowNode) {
  // As recorded: n2 sends at a tenth; in the first round, before the rate was known, n0's bytes to n1 rode on
  // what the shaper lets through at once. One way each, in Mb/s: a spread of the good of 67 times 13.5
  // deviations would have put the bar under the slow.
  const Plan plan = plan_for(3);
  const std::vector<std::tuple<std::uint32_t, std::uint32_t, double>> read{
      {0, 1, 1091.1}, {1, 0, 955.6}, {0, 2, 956.3}, {2, 0, 95.6}, {1, 2, 960.5}, {2, 1, 95.6}};
  std::vector<EdgeFigure> all;
  for (const auto& [from, to, rate] : read)
    all.push_back({.from = {from, 0}, .to = {to, 0}, .rate = Rate{rate * 1e6}});
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n2(tx: 95.6Mbps)"));
}

TEST(Blame, ABriefFigureCountsForNothingBesideALongerOne) {
  // As recorded: 120 KB came in 3 ms, some of it at once, at 25 times the link's rate, which is measured
  // again.
  const Plan plan = plan_for(4);
  auto all = edges(kFour, [](auto, auto to) { return to == 2; });
  all.push_back({.from = {0, 0}, .to = {1, 0}, .rate = Rate{24e9}, .timed = std::chrono::milliseconds(3)});
  all.insert(all.begin(), all.back());
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n2(rx: 95.0Mbps)"));
}

TEST(Blame, NamesOneRailOfTwo) {
  const Plan plan = plan_for(4, 2);
  auto all = edges(
      kFour, [](auto, auto) { return false; }, 0);
  const auto second = edges(
      kFour, [](auto from, auto to) { return from == 2 || to == 2; }, 1);
  all.insert(all.end(), second.begin(), second.end());
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n2/eth1(tx+rx: 95.0Mbps)"));
}

TEST(Blame, NamesTheNodeWhenAllItsRailsAreSlow) {
  const Plan plan = plan_for(4, 2);
  auto all = edges(
      kFour, [](auto from, auto) { return from == 2; }, 0);
  const auto second = edges(
      kFour, [](auto from, auto) { return from == 2; }, 1);
  all.insert(all.end(), second.begin(), second.end());
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n2(tx: 95.0Mbps)"));
}

TEST(Blame, NamesTwoFaultsAtOnce) {
  const Plan plan = plan_for(8);
  const Blame blame = decode(plan, edges(kEight, [](auto from, auto to) { return from == 1 || to == 6; }));
  EXPECT_THAT(names(plan, blame), ElementsAre("n1(tx: 95.0Mbps)", "n6(rx: 95.0Mbps)"));
}

TEST(Blame, IsTheFabricsWhenMostAreBelowTheSitesFloor) {
  Plan plan = plan_for(8);
  plan.thresholds.site_floor = Rate{500e6};
  const Blame blame = decode(plan, edges(
                                       kEight, [](auto, auto) { return true; }, 0, 300e6));
  EXPECT_TRUE(blame.fabric_wide);
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_EQ(blame.explanation, "most paths are slow: the fabric or its configuration");
}

TEST(Blame, DoesNotTakeTheWaysOfOneNodeForTheFabric) {
  // Two rounds of three nodes: each way begins or ends at node 0.
  Plan plan = plan_for(3);
  plan.thresholds.site_floor = Rate{500e6};
  const Blame blame = decode(plan, edges({{0, 1}, {0, 2}}, [](auto, auto) { return true; }));
  EXPECT_FALSE(blame.fabric_wide);
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_EQ(blame.explanation, "most paths measured are slow, and n0 is on each: n0 or the fabric");
}

TEST(Blame, DoesNotHeedAUsersWish) {
  Plan plan = plan_for(8);
  plan.thresholds.min = Rate{1e13};
  const Blame blame = decode(plan, edges(kEight, [](auto, auto) { return false; }));
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_FALSE(blame.fabric_wide);
  EXPECT_EQ(blame.explanation, "no node stands out: one way, per rail, the median is 950.0Mbps");
}

TEST(Blame, ComparesOneClassOfHardwareOnly) {
  // Nodes 0 and 3 have another, ten times slower kind of NIC: nothing is wrong with them.
  const auto old = [](auto node) { return node == 0 || node == 3; };
  const auto all = edges(kEight, [&](auto from, auto to) { return old(from) || old(to); });
  Plan plan = plan_for(8);
  EXPECT_THAT(names(plan, decode(plan, all)), ElementsAre("n0(tx+rx: 95.0Mbps)", "n3(tx+rx: 95.0Mbps)"));
  plan.nodes[0].machine = plan.nodes[3].machine = "old";
  EXPECT_THAT(decode(plan, all).culprits, IsEmpty());
}

TEST(Blame, CallsItOversubscribedWhenASlowPairIsFineAlone) {
  const Plan plan = plan_for(4);
  auto all = edges(kFour, [](auto from, auto to) { return from == 0 && to == 2; });
  all.push_back({.from = {0, 0}, .to = {2, 0}, .round = 2, .rate = Rate{kFine}, .alone = true});
  const Blame blame = decode(plan, all);
  EXPECT_TRUE(blame.oversubscribed);
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_THAT(blame.explanation, HasSubstr("n0>n2 slow with others (95.0Mbps), fine alone (950.0Mbps)"));
}

TEST(Blame, SaysThatAWayComesAndGoes) {
  // Nothing at all among the others is no lack of room: the way was not there.
  const Plan plan = plan_for(4);
  auto all = edges(
      kFour, [](auto from, auto to) { return from == 0 && to == 2; }, 0, 0);
  all.push_back({.from = {0, 0}, .to = {2, 0}, .round = 2, .rate = Rate{kFine}, .alone = true});
  const Blame blame = decode(plan, all);
  EXPECT_FALSE(blame.oversubscribed || blame.dead || blame.fabric_wide);
  EXPECT_THAT(blame.culprits, IsEmpty());
  EXPECT_EQ(blame.explanation, "n0>n2 comes and goes: it carried nothing for a while, and 950.0Mbps later");
}

TEST(Blame, IsNobodysWhereNoWayCarriedAnything) {
  const auto dead = edges(
      kFour, [](auto, auto) { return true; }, 0, 0);
  Blame blame = decode(plan_for(4), dead);
  EXPECT_TRUE(blame.silent);
  EXPECT_FALSE(blame.dead || blame.fabric_wide);
  EXPECT_EQ(blame.explanation, "no bytes came over any way");
  // One way that carried shows that bytes could come.
  auto one = dead;
  one.front().rate = Rate{kFine};
  blame = decode(plan_for(4), one);
  EXPECT_TRUE(blame.dead && !blame.silent);
  // Two nodes have no others to compare with.
  blame = decode(plan_for(2), edges(
                                  {{0, 1}}, [](auto, auto) { return true; }, 0, 0));
  EXPECT_TRUE(blame.dead && !blame.silent);
}

TEST(Blame, NamesNoLinkOfANodeWhoseWaysAreAllAlike) {
  // Of four nodes n0 and n2 are slow: 180, and 160 from n0 to n1. The median of the scores is (180 + 950) / 2
  // = 565, and two good edges leave a bar of 565 - 21 × 2 % of 950 = 166: by chance between the two ways of
  // n0.
  const Plan plan = plan_for(4);
  auto all = edges(
      kFour, [](auto from, auto to) { return from % 2 == 0 || to % 2 == 0; }, 0, 180e6);
  all.front().rate = Rate{160e6};  // 0 → 1
  EXPECT_THAT(names(plan, decode(plan, all)), IsEmpty());
}

TEST(Blame, TakesNoEvidenceForNoEvidence) {
  const Plan plan = plan_for(4);
  auto all = edges(kFour, [](auto, auto) { return false; });
  for (EdgeFigure& edge : all)
    if (edge.from.node == 3 || edge.to.node == 3) edge.rate = std::nullopt;
  EXPECT_THAT(decode(plan, all).culprits, IsEmpty());
}

TEST(Blame, ABriefFigureAccusesNobodyAndExonerates) {
  const Plan plan = plan_for(4);
  auto all = edges(kFour, [](auto from, auto) { return from == 3; });
  for (EdgeFigure& edge : all)
    if (edge.from.node == 3) edge.timed = std::chrono::microseconds(300);
  EXPECT_THAT(decode(plan, all).culprits, IsEmpty());
  // Nothing is known of n3's transmit; n0, whom it has not met, is proven good.
  EXPECT_THAT(suspects_with_good(plan, Standings(plan, all, kBlameFraction), 0), ElementsAre(Pair{0, 3}));
  all.push_back({.from = {3, 0}, .to = {2, 0}, .rate = Rate{kFine}, .timed = std::chrono::microseconds(300)});
  EXPECT_THAT(suspects_with_good(plan, Standings(plan, all, kBlameFraction), 0), IsEmpty());
}

TEST(Blame, SuspectsAreThoseWithoutAGoodEdge) {
  const Plan plan = plan_for(4);
  // Round one only: 3 → 2 slow: node 3 as sender, node 2 as receiver. Each meets one of the good.
  const Standings standings(plan, edges({{0, 1}, {2, 3}}, [](auto from, auto) { return from == 3; }),
                            kBlameFraction);
  EXPECT_THAT(suspects_with_good(plan, standings, 0), UnorderedElementsAre(Pair{0, 2}, Pair{1, 3}));
}

// --- from samples to edges -------------------------------------------------------------------------------

/// A history of one half-round 0→1, 2→3 after a gate batch that everyone completed (or not).
History half_round(bool gate_completed) {
  History history;
  const Team team{.id = 1, .ranks = {{0, 0}, {1, 0}, {2, 0}, {3, 0}}};
  Form form{.phase = Phase::connect, .teams = {team}};
  history.done.emplace_back().step = std::move(form);
  const Batch gate{.id = 1, .team = 1, .op = Op::all_gather, .bytes = 4096, .warmup = 1, .iterations = 1};
  Done connect;
  connect.step = Measure{.phase = Phase::connect, .batches = {gate}};
  for (std::uint32_t node = 0; node < 4; ++node) {
    NodeOutcome outcome{.node = node};
    if (gate_completed) {
      outcome.samples = {{.rank = node, .done = {Ns(100'000)}, .received = 6144}};
      outcome.batch = {1};
    } else {
      outcome.trouble = Trouble::no_bytes;
    }
    connect.outcomes.push_back(outcome);
  }
  history.done.push_back(connect);
  const Batch transfer{.id = 2,
                       .team = 1,
                       .op = Op::transfer,
                       .bytes = 1'000'000,
                       .warmup = 1,
                       .iterations = 3,
                       .edges = {{0, 1}, {2, 3}}};
  Done half;
  half.step = Measure{.phase = Phase::blame, .batches = {transfer}, .allowance = std::chrono::seconds(1)};
  for (std::uint32_t node = 0; node < 4; ++node)
    half.outcomes.push_back({.node = node, .samples = {{.rank = node}}, .batch = {2}});
  // 0 → 1: 1 MB each 10 ms, 800 Mb/s.
  half.outcomes[1].samples = {
      {.rank = 1, .done = {Ns(10'000'000), Ns(20'000'000), Ns(30'000'000)}, .received = 4'000'000}};
  half.outcomes[3].trouble = Trouble::no_bytes;
  history.done.push_back(half);
  return history;
}

TEST(Edges, AreTimedAtTheReceiver) {
  const auto edges = edges_of(plan_for(4), half_round(true));
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(edges[0].from, (Rank{0, 0}));
  EXPECT_EQ(edges[0].rate->bits_per_second, 800e6);
  EXPECT_FALSE(edges[0].partial || edges[0].alone);
}

TEST(Edges, NoBytesIsZeroWhereBytesHaveCome) {
  EXPECT_EQ(edges_of(plan_for(4), half_round(true))[1].rate, Rate{0});
  // 0 → 1 works in the same half-round.
  EXPECT_EQ(edges_of(plan_for(4), half_round(false))[1].rate, Rate{0});
}

TEST(Edges, NoBytesIsNoEvidenceWhereAnEndHardlyRan) {
  for (const std::uint32_t end : {2u, 3u}) {
    History history = half_round(true);
    history.done.back().outcomes[end].samples.front().kept = std::chrono::milliseconds(600);  // of 1 s
    EXPECT_EQ(edges_of(plan_for(4), history)[1].rate, std::nullopt);
    // It was stopped before it could say anything.
    history = half_round(true);
    history.done.back().outcomes[end].samples.clear();
    history.done.back().outcomes[end].batch.clear();
    EXPECT_EQ(edges_of(plan_for(4), history)[1].rate, std::nullopt);
  }
}

TEST(Edges, NoBytesIsNoEvidenceWhereNothingHasEverCome) {
  History history = half_round(false);
  history.done.back().outcomes[1] = {.node = 1, .trouble = Trouble::no_bytes};
  for (const EdgeFigure& edge : edges_of(plan_for(4), history))
    EXPECT_EQ(edge.rate, std::nullopt);
}

TEST(Edges, AFailedProcessAtEitherEndIsNoEvidence) {
  for (const Trouble trouble : {Trouble::child_died, Trouble::child_silent, Trouble::refused})
    for (const std::uint32_t end : {2u, 3u}) {
      History history = half_round(true);
      history.done.back().outcomes[end].trouble = trouble;
      EXPECT_EQ(edges_of(plan_for(4), history)[1].rate, std::nullopt);
      EXPECT_TRUE(edges_of(plan_for(4), history)[0].rate);
    }
  // Before, too: the process that died in the connect batch was replaced, its node is not to be trusted.
  History history = half_round(true);
  history.done[1].outcomes[2].trouble = Trouble::child_died;
  EXPECT_EQ(edges_of(plan_for(4), history)[1].rate, std::nullopt);
}

TEST(Edges, SomeBytesAreARateOverTheAllowance) {
  History history = half_round(true);
  history.done.back().outcomes[3].samples[0].received = 1'250'000;  // in 1 s: 10 Mb/s
  const auto edge = edges_of(plan_for(4), history)[1];
  EXPECT_TRUE(edge.partial);
  EXPECT_NEAR(edge.rate->bits_per_second, 10e6, 1);
}

TEST(Edges, AnUnfinishedReceiverWithoutTroubleIsNoEvidence) {
  History history = half_round(true);
  history.done.back().outcomes[3].trouble.reset();
  EXPECT_EQ(edges_of(plan_for(4), history)[1].rate, std::nullopt);
}

TEST(Edges, ANodeSpeaksForItselfOnly) {
  History history = half_round(true);
  // Node 0 claims a figure for rank 3.
  history.done.back().outcomes[0].samples = {
      {.rank = 3, .done = {Ns(1), Ns(2), Ns(3)}, .received = 4'000'000}};
  EXPECT_EQ(edges_of(plan_for(4), history)[1].rate, Rate{0});
}

}  // namespace
}  // namespace netcheck::judge
