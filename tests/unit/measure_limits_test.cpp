// What the fixtures' machines could reach, calculated by hand. PCIe: GT/s × lanes × 128/130.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"
#include "measure/limits.h"

namespace netcheck {
namespace {

using fixture::port;
using fixture::train;
using testing::HasSubstr;

constexpr double kGen4x8 = 126.0308, kGen4x16 = 252.0615, kGen5x16 = 504.1231;  // Gb/s

double gigabits(const std::optional<Rate>& rate) {
  return rate ? rate->bits_per_second / 1e9 : -1;
}

const RailLimit& rail(const Machine& machine, const Limits& limits, const std::string& name) {
  for (const RailLimit& rail : limits.rails)
    if (machine.ports[rail.port].name == name) return rail;
  ADD_FAILURE() << "no rail " << name;
  return limits.rails.front();
}

TEST(Limits, AreTheSumOfTheRails) {
  const Machine hgx = fixture::machine("hgx");
  const Limits limits = limits_of(hgx);
  EXPECT_EQ(limits.rails.size(), 8u);
  EXPECT_NEAR(gigabits(limits.nominal), 3200, 1e-6);
  EXPECT_NEAR(gigabits(limits.present), 3200, 1e-6);
  EXPECT_EQ(limits.derivation, "8 rails × 400 Gb/s = 3200 Gb/s");
  EXPECT_NEAR(gigabits(limits.nvlink), 3600, 1e-6);  // 18 × 25 GB/s × 8
}

// Of links that are narrow alike the first stands for all.
TEST(Limits, NameTheFirstOfManyNarrowLinks) {
  Machine hgx = fixture::machine("hgx");
  for (const char* address : {"0000:18:00.0", "0000:3a:00.0", "0000:3c:00.0"})
    for (PciDevice* end : {&fixture::device(hgx, address), &hgx.pci[*fixture::device(hgx, address).parent]})
      end->link = {fixture::kGen4x8, fixture::kGen4x8, std::nullopt};
  const std::string derivation = limits_of(hgx).derivation;
  EXPECT_THAT(derivation, HasSubstr("narrows at 0000:18:00.0 to Gen4 x8 = 126 Gb/s, and 2 more alike"));
  EXPECT_THAT(derivation, testing::Not(HasSubstr("0000:3a:00.0")));
}

// Bridges between two GPUs each: a ring over all of them takes another way, too.
TEST(Limits, BetweenGpusAreUnknownWhereNvlinksDoNotJoinAll) {
  Machine hgx = fixture::machine("hgx");
  hgx.nvlinks.clear();
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu)
    hgx.nvlinks.push_back({.gpu = gpu, .peer = gpu ^ 1U, .count = 4, .rate = Rate{450e9}});
  EXPECT_FALSE(limits_of(hgx).nvlink);
  EXPECT_NEAR(gigabits(limits_of(hgx, {2, 3}).nvlink), 450, 1e-6);
  EXPECT_FALSE(limits_of(hgx, {1, 2}).nvlink);
}

TEST(Limits, FollowTheJobsGpus) {
  const Machine hgx = fixture::machine("hgx");
  // GPUs 0 and 1 share the two NICs of their switch: 2 × 400. Each GPU carries half of both: 400 of 504.
  EXPECT_NEAR(gigabits(limits_of(hgx, {0, 1}).nominal), 800, 1e-6);
  // GPU 0 alone has both NICs, but one PCIe link: 504.1 of 800, half of it for each.
  const Limits alone = limits_of(hgx, {0});
  EXPECT_NEAR(gigabits(alone.nominal), kGen5x16, 1e-3);
  EXPECT_NEAR(gigabits(alone.rails[0].nominal), kGen5x16 / 2, 1e-3);
  EXPECT_THAT(alone.derivation,
              HasSubstr("GPU 0's path narrows at 0000:19:00.0 to Gen5 x16 = 504 Gb/s, which 2 rails share"));
}

TEST(Limits, OfATrainedDownRailKeepTheirBar) {
  Machine hgx = fixture::machine("hgx");
  train(hgx, "0000:3c:00.0", fixture::kGen4x8);  // mlx5_3
  const Limits limits = limits_of(hgx);
  EXPECT_NEAR(gigabits(limits.nominal), 3200, 1e-6);
  EXPECT_NEAR(gigabits(rail(hgx, limits, "mlx5_3").present), kGen4x8, 1e-3);
  EXPECT_NEAR(gigabits(limits.present), 7 * 400 + kGen4x8, 1e-3);  // 2926
}

TEST(Limits, OfANarrowSlotAreWhatTheSlotCan) {
  Machine hgx = fixture::machine("hgx");
  train(hgx, "0000:3c:00.0", fixture::kGen4x8);
  fixture::device(hgx, "0000:39:02.0").link.most = fixture::kGen4x8;  // the port above mlx5_3
  const Limits limits = limits_of(hgx);
  EXPECT_NEAR(gigabits(limits.nominal), 7 * 400 + kGen4x8, 1e-3);
  EXPECT_THAT(limits.derivation, HasSubstr("7 rails × 400 Gb/s + mlx5_3 126 Gb/s = 2926 Gb/s"));
  EXPECT_THAT(limits.derivation, HasSubstr("narrows at 0000:3c:00.0 to Gen4 x8 = 126 Gb/s"));
}

TEST(Limits, OfAPortThatIsDownOrSlowKeepTheirBar) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_5").state = PortState::down;
  port(hgx, "mlx5_5").rate.reset();
  port(hgx, "mlx5_6").rate = Rate{200e9};
  const Limits limits = limits_of(hgx);
  EXPECT_NEAR(gigabits(limits.nominal), 3200, 1e-6);
  EXPECT_NEAR(gigabits(limits.present), 6 * 400 + 200, 1e-6);
  EXPECT_NEAR(gigabits(rail(hgx, limits, "mlx5_5").present), 0, 1e-6);
}

// Half of them slow is half of them at fault: the bar is the faster half's.
TEST(RatedSpeed, IsTheFasterOfTwoHalves) {
  Machine hgx = fixture::machine("hgx");
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"})
    port(hgx, name).rate = Rate{200e9};
  EXPECT_NEAR(gigabits(rated_speed(hgx, port(hgx, "mlx5_0"))), 400, 1e-6);
  port(hgx, "mlx5_4").rate = Rate{200e9};  // five of eight: a switch that gives 200, most likely
  EXPECT_NEAR(gigabits(rated_speed(hgx, port(hgx, "mlx5_5"))), 200, 1e-6);
  port(hgx, "mlx5_5").rated = Rate{400e9};  // a source that says it
  EXPECT_NEAR(gigabits(rated_speed(hgx, port(hgx, "mlx5_5"))), 400, 1e-6);
}

TEST(RatedSpeed, ComparesCardsOfOneKindOnly) {
  Machine hgx = fixture::machine("hgx");
  EXPECT_NEAR(gigabits(rated_speed(hgx, port(hgx, "mlx5_8"))), 200, 1e-6);
}

TEST(Limits, AreUnknownWhereARateIs) {
  const Machine vm = fixture::machine("vm");
  const Limits limits = limits_of(vm);
  EXPECT_FALSE(limits.nominal);
  EXPECT_EQ(limits.derivation, "unknown: nothing says how fast eth0 is");
  EXPECT_FALSE(limit_of(limits, Op::all_gather, 4).bus);
}

TEST(Limits, OfABondAreItsMembersOnOneCard) {
  Machine bond = fixture::machine("bond");
  EXPECT_NEAR(gigabits(limits_of(bond).nominal), 200, 1e-6);
  // Both ports in a slot of Gen4 x8: 126 of 200.
  for (const char* address : {"0000:c1:00.0", "0000:c1:00.1", "0000:c0:01.0"}) {
    fixture::device(bond, address).link = {fixture::kGen4x8, fixture::kGen4x8, std::nullopt};
  }
  EXPECT_NEAR(gigabits(limits_of(bond).nominal), kGen4x8, 1e-3);
}

// Two NICs behind one switch on a node without GPUs: both cross its uplink.
TEST(Limits, OfASharedUplinkAreTheUplink) {
  Machine hgx = fixture::machine("hgx");
  hgx.gpus.clear();
  const Limits limits = limits_of(hgx);
  // Each switch: 2 × 400 over Gen5 x16 = 504.1; four of them.
  EXPECT_NEAR(gigabits(limits.nominal), 4 * kGen5x16, 1e-2);
  EXPECT_THAT(limits.derivation,
              HasSubstr("mlx5_0's path narrows at 0000:16:00.0 to Gen5 x16 = 504 Gb/s, which 2 "
                        "rails share"));
}

double bus(const Limits& limits, Op op, std::uint32_t nodes) {
  return gigabits(limit_of(limits, op, nodes).bus);
}

TEST(OperationLimit, OfRingsIsTheNodesRails) {
  const Limits limits = limits_of(fixture::machine("hgx"));
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast, Op::reduce})
    EXPECT_NEAR(bus(limits, op, 2), 3200, 1e-6);
  EXPECT_NEAR(bus(limits, Op::all_reduce, 1), 3600, 1e-6);  // NVLink alone
}

// n = 16 ranks, N = 2: each rank sends S/16 to each other; 8 ranks send 8·8/16·S = 4 S out of the node in
// t = 4 S/3200. busbw = 15/16 · S/t = 15/16 · 800 = 750.
TEST(OperationLimit, OfAlltoallIsAGpusShare) {
  const Limits limits = limits_of(fixture::machine("hgx"));
  EXPECT_NEAR(bus(limits, Op::alltoall, 2), 750, 1e-6);
  // N = 16, n = 128: 8 · 120/128 S = 7.5 S out; busbw = 127/128 · 3200/7.5 = 423.33
  EXPECT_NEAR(bus(limits, Op::alltoall, 16), 423.333, 1e-3);
}

// The root receives (n-r)/n · S = 1/2 S over its rail of 400: S/t = 800; busbw = 15/16 · 800 = 750.
TEST(OperationLimit, OfGatherIsTheRootsRail) {
  EXPECT_NEAR(bus(limits_of(fixture::machine("hgx")), Op::gather, 2), 750, 1e-6);
}

TEST(OperationLimit, OfTransfersIsOneRail) {
  EXPECT_NEAR(bus(limits_of(fixture::machine("hgx")), Op::transfer, 4), 400, 1e-6);
}

// Without NVLink rings go over each GPU's slot: Gen4 x16 is less than the two rails' 400.
TEST(OperationLimit, WithoutNvlinkIsTheSlots) {
  const Limits limits = limits_of(fixture::machine("pcie-server"));
  EXPECT_NEAR(gigabits(limits.nominal), 400, 1e-6);
  EXPECT_NEAR(bus(limits, Op::all_reduce, 2), kGen4x16, 1e-3);
  EXPECT_NEAR(bus(limits, Op::all_reduce, 1), kGen4x16, 1e-3);
}

TEST(OperationLimit, WithoutGpusIsAllRailsForEveryOperation) {
  const Limits limits = limits_of(fixture::machine("cpu-hdr"));
  for (const Op op : {Op::all_gather, Op::alltoall, Op::gather, Op::transfer})
    EXPECT_NEAR(bus(limits, op, 4), 200, 1e-6);
  EXPECT_FALSE(limit_of(limits, Op::all_gather, 1).bus);
}

}  // namespace
}  // namespace netcheck
