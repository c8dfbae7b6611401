// A verdict, as far as actions need it: who is to be kept away from, and who may be drained.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prolog/decide.h"

namespace netcheck::prolog {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

judge::Plan plan_of(std::size_t nodes) {
  judge::Plan plan;
  for (std::size_t i = 1; i <= nodes; ++i)
    plan.nodes.push_back({fmt::format("n{}", i), {"eth0"}, ""});
  return plan;
}

judge::Verdict slow(std::vector<judge::Culprit> culprits, bool wide = false) {
  judge::Fail fail;
  fail.blame.culprits = std::move(culprits);
  fail.blame.fabric_wide = wide;
  return fail;
}

judge::Culprit node(std::uint32_t index, bool isolated = true) {
  return {index, std::nullopt, std::nullopt, judge::Direction::transmit, Rate{96e6}, isolated};
}

TEST(FindingOf, NamesEachCulpritOnceAndNoLinksEnds) {
  judge::Culprit link = node(0);
  link.peer = 1;
  const judge::Verdict verdict = slow({node(2), node(2), link});
  const Finding finding = finding_of(verdict, verdict, plan_of(4));
  EXPECT_THAT(finding.culprits, ElementsAre("n3"));
  ASSERT_EQ(finding.drainable.size(), 1u);
  EXPECT_EQ(finding.drainable.front().words, "n3(tx: 96.0Mbps)");
  EXPECT_FALSE(finding.drainable.front().fast_enough);
}

TEST(FindingOf, SaysWhyThereIsNoCulprit) {
  judge::Culprit link = node(0);
  link.peer = 1;
  EXPECT_EQ(finding_of(slow({}), std::nullopt, plan_of(2)).no_culprit, "two-nodes");
  EXPECT_EQ(finding_of(slow({}), std::nullopt, plan_of(4)).no_culprit, "no-culprit");
  EXPECT_EQ(finding_of(slow({}, true), std::nullopt, plan_of(4)).no_culprit, "fabric-wide");
  EXPECT_EQ(finding_of(slow({link}), std::nullopt, plan_of(4)).no_culprit, "link");
}

TEST(FindingOf, LetsNobodyBeDrainedForAUsersWish) {
  const judge::Verdict verdict = slow({node(2)});
  for (const std::optional<judge::Verdict>& site :
       {std::optional<judge::Verdict>(judge::Pass{}), std::optional<judge::Verdict>()}) {
    const Finding finding = finding_of(verdict, site, plan_of(4));
    EXPECT_FALSE(finding.site_fails);
    EXPECT_THAT(finding.drainable, IsEmpty());
    EXPECT_THAT(finding.culprits, ElementsAre("n3"));  // his own job may go elsewhere
  }
}

TEST(FindingOf, KnowsACheckThatAUsersOperationHasMade) {
  judge::Inconclusive unknown;
  unknown.phase = judge::Phase::gate;
  EXPECT_FALSE(finding_of(unknown, std::nullopt, plan_of(4)).sites_check);
  EXPECT_TRUE(finding_of(unknown, unknown, plan_of(4)).sites_check);
}

TEST(FindingOf, DrainsOnlyWhoWasIsolated) {
  const judge::Verdict verdict = slow({node(1, false), node(2)});
  EXPECT_EQ(finding_of(verdict, verdict, plan_of(4)).drainable.size(), 1u);
}

TEST(FindingOf, SaysWhoIsAsFastAsTheSiteAsks) {
  // 96 Mb/s: behind a way that others fill a node is slower than the rest, and fast enough.
  judge::Plan plan = plan_of(4);
  const auto is_fast_enough = [&] {
    return finding_of(slow({node(2)}), slow({node(2)}), plan).drainable.front().fast_enough;
  };
  plan.thresholds.site_floor = Rate{90e6};
  EXPECT_TRUE(is_fast_enough());
  judge::Culprit rail = node(2);
  rail.lane = 1;
  rail.measured = Rate{10e6};  // the other of its rails
  const judge::Verdict both = slow({node(2), rail});
  EXPECT_FALSE(finding_of(both, both, plan).drainable.front().fast_enough);
  plan.thresholds.min_per_rail = Rate{100e6};
  EXPECT_FALSE(is_fast_enough());
  plan.thresholds = {};
  EXPECT_FALSE(is_fast_enough());
  plan.thresholds.site_floor = Rate{97e6};
  EXPECT_FALSE(is_fast_enough());
}

TEST(FindingOf, SaysWhetherTheSitesFiguresWereNoisy) {
  judge::Verdict verdict = slow({node(2)});
  EXPECT_FALSE(finding_of(verdict, verdict, plan_of(4)).noisy);  // a dead way has no figures at all
  std::get<judge::Fail>(verdict).figures = judge::Figures{.busbw = Rate{96e6}};
  EXPECT_FALSE(finding_of(verdict, verdict, plan_of(4)).noisy);
  std::get<judge::Fail>(verdict).figures->noisy = true;
  EXPECT_TRUE(finding_of(verdict, verdict, plan_of(4)).noisy);
}

TEST(FindingOf, TellsACheckThatBeganFromOneThatDidNot) {
  judge::Inconclusive unknown;
  EXPECT_EQ(finding_of(unknown, std::nullopt, plan_of(4)).kind, Finding::Kind::not_measured);
  unknown.phase = judge::Phase::rendezvous;
  EXPECT_EQ(finding_of(unknown, std::nullopt, plan_of(4)).kind, Finding::Kind::broken_off);
  EXPECT_EQ(finding_of(judge::Pass{}, std::nullopt, plan_of(4)).kind, Finding::Kind::pass);
}

judge::Verdict flawed(std::vector<std::uint32_t> nodes, bool broken_part) {
  judge::Fail fail;
  fail.flawed.push_back({std::move(nodes), "n3(port-down: mlx5_3)", broken_part});
  return fail;
}

TEST(FindingOf, KeepsAwayFromFlawedHardwareAndDrainsOnlyBrokenParts) {
  const Finding broken = finding_of(flawed({2}, true), flawed({2}, true), plan_of(4));
  EXPECT_THAT(broken.culprits, ElementsAre("n3"));
  ASSERT_EQ(broken.drainable.size(), 1u);
  EXPECT_EQ(broken.drainable.front().words, "n3(port-down: mlx5_3)");
  const Finding odd = finding_of(flawed({2}, false), flawed({2}, false), plan_of(4));
  EXPECT_THAT(odd.culprits, ElementsAre("n3"));
  EXPECT_THAT(odd.drainable, IsEmpty());
}

TEST(FindingOf, NamesNobodyWhereHardwareDiffers) {
  const Finding finding = finding_of(flawed({}, false), flawed({}, false), plan_of(4));
  EXPECT_THAT(finding.culprits, IsEmpty());
  EXPECT_EQ(finding.no_culprit, "nodes-differ");
}

}  // namespace
}  // namespace netcheck::prolog
