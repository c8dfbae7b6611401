// Teams over all lanes of their nodes, as over NCCL: one communicator, the gate over all its ranks, the
// rounds on the same one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/pairs.h"
#include "judge/rails.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::named;
using model::Network;
using model::play;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kGbps = 1e9;

Plan over_lanes(std::uint32_t nodes, std::uint32_t lanes) {
  Plan plan = model::plan_for(nodes, lanes);
  plan.teaming = Teaming::over_lanes;
  plan.op = Op::all_reduce;
  plan.algorithm = "ring";
  return plan;
}

Plan asking(std::uint32_t nodes, std::uint32_t lanes, double part) {
  Plan plan = over_lanes(nodes, lanes);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{part * kGbps * lanes};
  return plan;
}

std::size_t forms_in(const History& history) {
  return static_cast<std::size_t>(
      std::ranges::count_if(history.done, [](const Done& done) { return form_of(done) != nullptr; }));
}

TEST(TeamsOverLanes, HaveEveryLaneOfEveryNodeNodeByNode) {
  Plan plan = over_lanes(2, 2);
  plan.nodes[1].lanes.push_back("eth2");
  const auto teams = partition(plan, 0, 4);
  ASSERT_THAT(teams, SizeIs(1));
  EXPECT_EQ(teams[0].id, 4U);
  EXPECT_THAT(teams[0].ranks, ElementsAre(Rank{0, 0}, Rank{0, 1}, Rank{1, 0}, Rank{1, 1}, Rank{1, 2}));
}

TEST(TeamsOverLanes, NeverHaveMoreRanksThanTheSiteAllowsNorFewerThanTwoNodes) {
  Plan plan = over_lanes(8, 8);
  plan.max_world = 32;  // four nodes of 8
  EXPECT_THAT(team_sizes(plan), ElementsAre(32));
  EXPECT_EQ(group_count(plan), 2U);
  plan.max_world = 8;
  EXPECT_THAT(team_sizes(plan), ElementsAre(16));
  plan.max_world = 0;
  EXPECT_THAT(team_sizes(plan), ElementsAre(64));
  plan.teaming = Teaming::per_lane;  // each rail has a team of its own
  plan.max_world = 8;
  EXPECT_THAT(team_sizes(plan), ElementsAre(8));
}

TEST(TeamsOverLanes, AreThoseOfThePlanThatARecordKeeps) {
  Plan plan = over_lanes(2, 2);
  plan.max_world = 64;
  plan.forming = std::chrono::seconds(3);
  const Plan read = plan_from_json(to_json(plan));
  EXPECT_EQ(read.teaming, Teaming::over_lanes);
  EXPECT_EQ(read.max_world, 64U);
  EXPECT_EQ(read.forming, std::chrono::seconds(3));
}

TEST(TeamsOverLanes, AreOnePerLaneInAnOldRecord) {
  Json old = to_json(over_lanes(2, 2));
  for (const char* key : {"teaming", "max_world", "forming"})
    old.erase(key);
  EXPECT_EQ(plan_from_json(old).teaming, Teaming::per_lane);
}

struct Size {
  std::uint32_t nodes, lanes;
};
class OverLanes : public testing::TestWithParam<Size> {
 protected:
  static std::uint32_t nodes() { return GetParam().nodes; }
  static std::uint32_t lanes() { return GetParam().lanes; }
};

// 1 Gb/s a lane: all rings together carry as much as there are lanes.
TEST_P(OverLanes, PassWithTheBandwidthOfAllLanes) {
  const Plan plan = asking(nodes(), lanes(), 0.8);
  const auto played = play(plan, {});
  const Verdict verdict = decide(plan, played.history);
  ASSERT_EQ(name(verdict), "pass") << line(verdict, plan, played.elapsed);
  EXPECT_NEAR(std::get<Pass>(verdict).figures.busbw.bits_per_second, kGbps * lanes(), 0.06 * kGbps * lanes());
  EXPECT_THAT(std::get<Pass>(verdict).figures.per_rail, IsEmpty());
  EXPECT_THAT(line(verdict, plan, played.elapsed),
              HasSubstr("op=all_reduce algo=ring nodes=" + std::to_string(nodes()) +
                        " gpus=" + std::to_string(nodes() * lanes())));
}

TEST_P(OverLanes, NameTheNodeThatIsSlow) {
  if (nodes() < 3) return;
  for (const std::uint32_t victim : {0U, nodes() / 2, nodes() - 1}) {
    Network network;
    for (std::uint16_t lane = 0; lane < lanes(); ++lane)
      network.transmit[{victim, lane}] = 0.2;
    const Plan plan = asking(nodes(), lanes(), 0.8);
    const auto played = play(plan, network);
    const Verdict verdict = decide(plan, played.history);
    EXPECT_EQ(name(verdict), "fail");
    EXPECT_THAT(named(verdict, plan), ElementsAre("n" + std::to_string(victim) + "(tx)"));
    EXPECT_EQ(forms_in(played.history), nodes() > 8 ? 2U : 1U) << "the rounds are on the gate's communicator";
    EXPECT_FALSE(played.late);
  }
}

TEST_P(OverLanes, NameTheLaneThatIsSlow) {
  if (nodes() < 3 || lanes() < 2) return;
  Network network;
  network.receive[{1, 1}] = 0.2;
  const Plan plan = asking(nodes(), lanes(), 0.8);
  const auto played = play(plan, network);
  const Verdict verdict = decide(plan, played.history);
  EXPECT_EQ(name(verdict), "fail");
  EXPECT_THAT(named(verdict, plan), ElementsAre("n1/eth1(rx)"));
}

INSTANTIATE_TEST_SUITE_P(Sizes, OverLanes,
                         testing::Values(Size{2, 1}, Size{2, 8}, Size{3, 2}, Size{4, 1}, Size{4, 2},
                                         Size{5, 4}, Size{8, 8}, Size{12, 2}),
                         [](const auto& size) {
                           return std::to_string(size.param.nodes) + "x" + std::to_string(size.param.lanes);
                         });

TEST(OverLanesRounds, GoOverTheLanesThatAllNodesHave) {
  Plan plan = asking(3, 2, 0.8);
  plan.nodes[1].lanes.push_back("eth2");
  Network network;
  for (std::uint16_t lane = 0; lane < 3; ++lane)
    network.transmit[{2, lane}] = 0.2;
  const auto played = play(plan, network);
  std::size_t gate_ranks = 0;
  std::set<std::uint16_t> measured;
  for (const EdgeFigure& edge : edges_of(plan, played.history))
    measured.insert(edge.from.lane);
  for (const Done& done : played.history.done)
    if (const Form* form = form_of(done)) gate_ranks = form->teams.front().ranks.size();
  EXPECT_EQ(gate_ranks, 7U) << "all ranks are in the gate";
  EXPECT_THAT(measured, ElementsAre(0, 1));
  EXPECT_THAT(named(decide(plan, played.history), plan), ElementsAre("n2(tx)"));
}

// --- rails: what is asked of each of them -----------------------------------------------------------------

NodeHardware two_by_two() {  // lanes 0 and 1 go over one port, 2 and 3 over another
  return {.traits = {},
          .flaws = {},
          .rails = {{"mlx5_0:1", true, Rate{kGbps}, {"eth0", "eth1"}},
                    {"mlx5_1:1", true, Rate{kGbps}, {"eth2", "eth3"}}}};
}

TEST(Rails, AreLanesThatShareAPortAsMostNodesSay) {
  Plan plan = over_lanes(3, 4);
  for (NodePlan& node : plan.nodes)
    node.hardware = two_by_two();
  plan.nodes[2].hardware->rails.pop_back();  // one that says otherwise
  EXPECT_THAT(rails_of(plan), ElementsAre(Rail{{0, 1}, 1}, Rail{{2, 3}, 1}));
  plan.nodes[1].hardware.reset();
  EXPECT_THAT(rails_of(plan), SizeIs(4)) << "one of three says so";
  plan.teaming = Teaming::per_lane;
  EXPECT_THAT(rails_of(plan), SizeIs(4));
}

TEST(Rails, AreOneWhereAGpuGoesOverSeveralPorts) {
  Plan plan = over_lanes(2, 2);
  for (NodePlan& node : plan.nodes)
    node.hardware = NodeHardware{.traits = {},
                                 .flaws = {},
                                 .rails = {{"a", true, Rate{kGbps}, {"eth0"}},
                                           {"b", true, Rate{kGbps}, {"eth0", "eth1"}},
                                           {"c", true, Rate{kGbps}, {"eth1"}}}};
  EXPECT_THAT(rails_of(plan), ElementsAre(Rail{{0, 1}, 3}));
}

TEST(Rails, AreMeasuredByTheRoundsWhereSomethingIsAskedOfEach) {
  Plan plan = asking(4, 4, 0.2);  // 0.8 of 4 Gb/s: one slow rail of two still passes
  plan.thresholds.min_per_rail = Rate{1.5 * kGbps};
  for (NodePlan& node : plan.nodes)
    node.hardware = two_by_two();
  auto played = play(plan, {});
  EXPECT_EQ(name(decide(plan, played.history)), "pass") << "2 Gb/s on each";
  EXPECT_THAT(edges_of(plan, played.history), testing::Not(IsEmpty()));
  Network network;
  network.transmit[{1, 2}] = network.transmit[{1, 3}] = 0.5;
  played = play(plan, network);
  const Verdict verdict = decide(plan, played.history);
  ASSERT_EQ(name(verdict), "fail") << line(verdict, plan, played.elapsed);
  // Two lanes of 0.5 Gb/s each, less some latency: 0.99 Gb/s of the 1.5 that are asked.
  EXPECT_THAT(std::get<Fail>(verdict).reason, HasSubstr("n1>"));
  EXPECT_THAT(std::get<Fail>(verdict).reason, HasSubstr("/eth2: 99"));
  EXPECT_THAT(std::get<Fail>(verdict).reason, HasSubstr("Mbps of min_per_rail=1.5Gbps"));
}

}  // namespace
}  // namespace netcheck::judge
