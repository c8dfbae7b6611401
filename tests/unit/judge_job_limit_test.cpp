// What a job's nodes could nominally reach, and the thresholds that are a part of it.
#include <gmock/gmock.h>

#include "judge/job_flaws.h"
#include "judge/job_limit.h"
#include "judge_model.h"
#include "machines.h"

namespace netcheck::judge {
namespace {

using model::Network;
using model::plan_for;
using model::play;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Nodes of two RDMA rails of 1 Gb/s: 2 Gb/s in all.
Plan plan_with(std::uint32_t nodes) {
  Plan plan = plan_for(nodes, 2);
  for (NodePlan& node : plan.nodes)
    node.hardware = NodeHardware{{}, {}, {{"eth0", true, Rate{1e9}}, {"eth1", true, Rate{1e9}}}};
  return plan;
}
void build_for(NodePlan& node, double rate) {
  for (RailSpeed& rail : node.hardware->rails)
    rail.nominal = Rate{rate};
}
std::string line_of(const Plan& plan, const Network& network = {}) {
  return line(decide(plan, play(plan, network).history), plan, milliseconds(2'000));
}

TEST(JobLimit, IsTheSlowestNodes) {
  Plan plan = plan_with(4);
  EXPECT_EQ(limit_of_job(plan).all, Rate{2e9});
  EXPECT_EQ(limit_of_job(plan).rail, Rate{1e9});
  EXPECT_TRUE(limit_of_job(plan).counts);
  plan.nodes[1].machine = "another model";
  build_for(plan.nodes[1], 0.5e9);
  EXPECT_EQ(limit_of_job(plan).all, Rate{1e9});
}

TEST(JobLimit, OfALinkThatHasTrainedDownIsThatOfTheOthersOfItsClass) {
  Plan plan = plan_with(4);
  build_for(plan.nodes[2], 0.25e9);  // what it takes for its rated speed
  EXPECT_EQ(limit_of_job(plan).all, Rate{2e9});
  plan.nodes[2].hardware.reset();  // it does not know at all
  EXPECT_EQ(limit_of_job(plan).all, Rate{2e9});
}

TEST(JobLimit, IsNotMovedByOneNodeThatLies) {
  for (const double lie : {1.0, 1e14}) {
    Plan plan = plan_with(4);
    build_for(plan.nodes[3], lie);
    EXPECT_EQ(limit_of_job(plan).all, Rate{2e9}) << lie;
    for (RailSpeed& rail : plan.nodes[3].hardware->rails)
      rail.rdma = false;
    EXPECT_TRUE(limit_of_job(plan).counts);
  }
}

TEST(JobLimit, OfTwoThatDifferIsTheLower) {
  Plan plan = plan_with(2);
  build_for(plan.nodes[0], 0.5e9);
  EXPECT_EQ(limit_of_job(plan).all, Rate{1e9});
}

TEST(JobLimit, DoesNotCountWhereItIsUnknownOrBytesGoOverTcp) {
  Plan plan = plan_with(4);
  plan.nodes[1].machine = "another model";
  plan.nodes[1].hardware->rails[1].nominal.reset();
  EXPECT_FALSE(limit_of_job(plan).counts);
  EXPECT_EQ(limit_of_job(plan).why, "what n1's rails are built for is not known");
  plan = plan_with(4);
  for (NodePlan& node : plan.nodes)
    for (RailSpeed& rail : node.hardware->rails)
      rail.rdma = false;
  EXPECT_FALSE(limit_of_job(plan).counts);
  EXPECT_EQ(limit_of_job(plan).why, "it is not RDMA that carries the bytes");
  plan = plan_with(4);
  plan.nodes[0].machine = "another model";
  plan.nodes[0].lanes[1] = "eth7";  // measured over a rail of which nothing is known
  EXPECT_FALSE(limit_of_job(plan).counts);
  EXPECT_FALSE(limit_of_job(plan_for(4)).counts);
}

TEST(JobLimit, IsTheSitesWhereItSaysSo) {
  Plan plan = plan_with(4);
  plan.thresholds.nominal = Rate{3e9};
  EXPECT_EQ(limit_of_job(plan).all, Rate{3e9});
  EXPECT_EQ(limit_of_job(plan).rail, Rate{1.5e9});
}

TEST(Fractions, AreThresholdsOfTheLimit) {
  Plan plan = plan_with(4);
  plan.thresholds.min_fraction = 0.9;
  set_bars(plan);
  EXPECT_EQ(plan.thresholds.min, Rate{1.8e9});  // 0.9 of two rails of 1 Gb/s
  EXPECT_EQ(plan.thresholds.site_floor, Rate{1.8e9});
  EXPECT_THAT(line_of(plan), HasSubstr("netcheck=pass "));
  EXPECT_THAT(line_of(plan), HasSubstr(" min=1.8Gbps limit=2.0Gbps op="));
  Network network;
  network.transmit[{0, 0}] = network.transmit[{0, 1}] = 0.5;
  EXPECT_THAT(line_of(plan, network), HasSubstr("netcheck=fail "));
  EXPECT_THAT(line_of(plan, network), HasSubstr(" slow=n0(tx: "));
}

TEST(Fractions, ArePerRailToo) {
  Plan plan = plan_with(4);
  plan.thresholds.min_fraction_per_rail = 0.8;
  set_bars(plan);
  EXPECT_EQ(plan.thresholds.min_per_rail, Rate{0.8e9});
  EXPECT_EQ(plan.thresholds.min, std::nullopt);
  Network network;
  network.transmit[{0, 1}] = 0.5;
  EXPECT_THAT(line_of(plan, network), HasSubstr("netcheck=fail "));
  EXPECT_THAT(line_of(plan, network), HasSubstr(" slow=n0/eth1(tx: "));
}

TEST(Fractions, GiveWayToAHigherAbsoluteThreshold) {
  Plan plan = plan_with(4);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{1.9e9};
  plan.thresholds.min_fraction = 0.5;
  set_bars(plan);
  EXPECT_EQ(plan.thresholds.min, Rate{1.9e9});
}

TEST(Fractions, DecideNothingWhereTheLimitDoesNotCount) {
  Plan plan = plan_for(4, 2);
  plan.thresholds.min_fraction = 1;
  plan.thresholds.min_fraction_per_rail = 1;
  set_bars(plan);
  EXPECT_EQ(plan.thresholds.min, std::nullopt);
  EXPECT_EQ(plan.thresholds.min_per_rail, std::nullopt);
  Network network;
  network.rate = 1e8;
  EXPECT_THAT(line_of(plan, network), HasSubstr("netcheck=pass "));
  EXPECT_THAT(line_of(plan, network), Not(HasSubstr("limit=")));
}

TEST(Limit, WarnsBelowEightTenthsAndNeverFails) {
  Plan plan = plan_with(4);
  Network network;
  network.rate = 0.7e9;  // of rails that are built for 1 Gb/s
  EXPECT_THAT(line_of(plan, network), HasSubstr("netcheck=pass "));
  EXPECT_THAT(line_of(plan, network), HasSubstr(" limit=2.0Gbps "));
  EXPECT_THAT(line_of(plan, network), testing::ContainsRegex(" warn=(69|70)% of limit"));
  network.rate = 0.9e9;
  EXPECT_THAT(line_of(plan, network), Not(HasSubstr("limit")));
}

TEST(Limit, WarnsOfNothingThatOthersHad) {
  Plan plan = plan_with(4);
  Network network;
  for (std::uint32_t node = 0; node < 4; ++node)
    network.others_in[{node, 0}] = network.others_in[{node, 1}] = 0.3;  // 0.7 of each rail were left
  EXPECT_THAT(line_of(plan, network), Not(HasSubstr("of limit")));
}

TEST(Limit, WarnsOfOneRailAlone) {
  Plan plan = plan_with(4);
  Network network;
  for (std::uint32_t node = 0; node < 4; ++node)
    network.transmit[{node, 1}] = 0.7;  // 1.7 of 2 Gb/s in all
  EXPECT_THAT(line_of(plan, network), testing::ContainsRegex(" warn=rail 1: (69|70)% of limit"));
}

TEST(Limit, OfTheSitesThresholdAboveItIsToldAndFailsNobody) {
  Plan plan = plan_with(4);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{4e9};
  plan.thresholds.min_per_rail = Rate{2e9};
  set_bars(plan);
  EXPECT_THAT(plan.thresholds.unattainable, ElementsAre("min: 4Gbps", "min_per_rail: 2Gbps"));
  const std::string words = line_of(plan);
  EXPECT_THAT(words, HasSubstr("netcheck=pass "));
  EXPECT_THAT(words, HasSubstr(" limit=2.0Gbps "));
  EXPECT_THAT(words, HasSubstr(" warn=unattainable(min: 4Gbps),unattainable(min_per_rail: 2Gbps)"));
}

TEST(Limit, BelowAUsersWishFailsIt) {
  Plan plan = plan_with(4);
  plan.thresholds.min = Rate{4e9};
  plan.thresholds.site_floor = Rate{1e9};
  set_bars(plan);
  EXPECT_THAT(plan.thresholds.unattainable, IsEmpty());
  EXPECT_EQ(name(decide(plan, play(plan, {}).history)), "fail");
}

TEST(Limit, IsKeptInPlansAndJudgedAgain) {
  Plan plan = plan_with(4);
  plan.thresholds.min_fraction = 0.9;
  plan.thresholds.min_fraction_per_rail = 0.8;
  plan.thresholds.nominal = Rate{3e9};
  plan.thresholds.min_per_pair = Rate{5e9};
  plan.weights.of(Flaw::iommu) = Weight::ignore;
  set_bars(plan);
  const Plan again = plan_from_json(to_json(plan));
  EXPECT_EQ(to_json(again), to_json(plan));
  EXPECT_EQ(again.nodes[1].hardware, plan.nodes[1].hardware);
  EXPECT_EQ(again.weights, plan.weights);
  EXPECT_EQ(again.thresholds.unattainable, plan.thresholds.unattainable);
}

TEST(Rails, OfTheCheckAreThoseThatItOpensAndThoseThatAreDown) {
  Machine machine = fixture::machine("hgx");
  const std::vector<std::string> lanes = {"mlx5_0:1", "mlx5_1:1", "mlx5_2:1"};
  EXPECT_EQ(hardware_of(machine, lanes).rails.size(), 3u);
  fixture::port(machine, "mlx5_3").state = PortState::down;
  const auto rails = hardware_of(machine, lanes).rails;
  ASSERT_EQ(rails.size(), 4u);
  // From a card to memory two of them share a Gen5 x16: 32 GT/s × 16 × 128/130 = 504.1 Gb/s.
  for (const RailSpeed& rail : rails) {
    EXPECT_TRUE(rail.rdma);
    EXPECT_NEAR(rail.nominal->bits_per_second, 252.06e9, 0.01e9);
  }
  EXPECT_THAT(hardware_of(machine, lanes).flaws,
              ElementsAre(testing::Field(&OwnFlaw::flaw, Flaw::port_down)));
}

TEST(Rails, WithoutRdmaAreTheOneInterfaceThatIsMeasured) {
  Machine machine;
  for (const char* name : {"eth0", "eth1"}) {
    NetworkPort port;
    port.name = port.interface = name;
    port.state = PortState::up;
    port.rate = Rate{10e9};
    machine.ports.push_back(port);
  }
  EXPECT_THAT(hardware_of(machine, {"eth1"}).rails, ElementsAre(RailSpeed{"eth1", false, Rate{10e9}}));
}

// Of the HGX fixture (measure_limits_test.cpp): GPUs 0 and 1 share the two ports of their switch, 2 × 400
// Gb/s.
TEST(HardwareOfGpus, IsThePortsThatServeThem) {
  const Machine hgx = fixture::machine("hgx");
  std::vector<std::string> lanes;
  for (const std::uint32_t gpu : {0U, 1U})
    lanes.push_back(hgx.pci[hgx.gpus[gpu].pci].address);
  auto rails = hardware_of(hgx, lanes).rails;
  EXPECT_THAT(rails, ElementsAre(RailSpeed{"mlx5_0:1", true, Rate{400e9}, lanes},
                                 RailSpeed{"mlx5_1:1", true, Rate{400e9}, lanes}));
  // As NVML writes an address.
  for (std::string& lane : lanes) {
    std::ranges::transform(lane, lane.begin(), [](unsigned char c) { return std::toupper(c); });
    lane.insert(0, "0000");
  }
  rails = hardware_of(hgx, lanes).rails;
  ASSERT_EQ(rails.size(), 2U);
  EXPECT_EQ(rails[0].gpus, lanes);
  EXPECT_THAT(hardware_of(hgx, {"0000:fe:00.0"}).rails, IsEmpty()) << "no GPU, and no port";
  const NodeHardware told = hardware_of(hgx, lanes);
  EXPECT_EQ(hardware_from_json(to_json(told)), told);
}

TEST(HardwareOfGpus, MakesTheLimitOfAJobOverThem) {
  Plan plan = plan_for(2, 4);
  plan.teaming = Teaming::over_lanes;
  plan.op = Op::all_reduce;
  for (NodePlan& node : plan.nodes)
    node.hardware = NodeHardware{
        {},
        {},
        {{"mlx5_0:1", true, Rate{2e9}, {"eth0", "eth1"}}, {"mlx5_1:1", true, Rate{2e9}, {"eth2", "eth3"}}}};
  EXPECT_EQ(limit_of_job(plan).all, Rate{4e9});  // two ports of 2 Gb/s, whatever the number of GPUs
  EXPECT_EQ(limit_of_job(plan).rail, Rate{2e9});
  EXPECT_TRUE(limit_of_job(plan).counts);
  plan.thresholds.nominal = Rate{3e9};  // the site's word: 1.5 Gb/s for each of two ports
  EXPECT_EQ(limit_of_job(plan).rail, Rate{1.5e9});
  plan.thresholds.nominal.reset();
  for (NodePlan& node : plan.nodes)
    node.hardware->rails.pop_back();  // two GPUs go over a port of which nothing is known
  EXPECT_FALSE(limit_of_job(plan).counts);
}

}  // namespace
}  // namespace netcheck::judge
