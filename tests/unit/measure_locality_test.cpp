// Ways through the PCI tree. What each is called is worked out from the drawings in
// tests/fixtures/topology/make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"
#include "measure/locality.h"

namespace netcheck {
namespace {

using fixture::device;
using fixture::index_of;

std::string distance(const Machine& machine, const std::string& from, const std::string& to) {
  return name_of(distance_between(machine, index_of(machine, from), index_of(machine, to)));
}

TEST(Distance, IsNamedAsNvidiaSmiNamesIt) {
  Machine hgx = fixture::machine("hgx");
  EXPECT_EQ(distance(hgx, "0000:19:00.0", "0000:19:00.0"), "X");
  EXPECT_EQ(distance(hgx, "0000:19:00.0", "0000:18:00.0"), "PIX");   // one switch
  EXPECT_EQ(distance(hgx, "0000:19:00.0", "0000:3a:00.0"), "NODE");  // another host bridge of NUMA 0
  EXPECT_EQ(distance(hgx, "0000:19:00.0", "0000:9a:00.0"), "SYS");   // NUMA 1
  const Machine bond = fixture::machine("bond");
  EXPECT_EQ(distance(bond, "0000:c1:00.0", "0000:c1:00.1"), "PIX");  // one card
}

TEST(Distance, IsPhbBetweenTwoRootPortsOfOneHostBridge) {
  Machine server = fixture::machine("pcie-server");
  device(server, "0000:20:01.0").parent = index_of(server, "0000:10");
  EXPECT_EQ(distance(server, "0000:11:00.0", "0000:21:00.0"), "PHB");
}

// A switch below a switch: as in servers whose switches come in two layers.
TEST(Distance, IsPxbOverTwoSwitches) {
  Machine hgx = fixture::machine("hgx");
  const auto lower = static_cast<std::uint32_t>(hgx.pci.size());
  hgx.pci.push_back({.address = "0000:f0:00.0",
                     .kind = PciKind::port,
                     .facing = Facing::up,
                     .parent = index_of(hgx, "0000:17:00.0")});
  hgx.pci.push_back(
      {.address = "0000:f1:00.0", .kind = PciKind::port, .facing = Facing::down, .parent = lower});
  hgx.pci.push_back({.address = "0000:f2:00.0", .kind = PciKind::nic, .parent = lower + 1});
  EXPECT_EQ(distance(hgx, "0000:19:00.0", "0000:f2:00.0"), "PXB");
  EXPECT_EQ(distance(hgx, "0000:f2:00.0", "0000:19:00.0"), "PXB");
}

TEST(Distance, IsUnknownWhereNoNumaNodeIs) {
  Machine server = fixture::machine("pcie-server");
  for (PciDevice& bridge : server.pci)
    bridge.numa = bridge.socket = std::nullopt;
  EXPECT_EQ(distance(server, "0000:11:00.0", "0000:31:00.0"), "?");
  server.numa.resize(1);  // there is but one: it cannot be another
  EXPECT_EQ(distance(server, "0000:11:00.0", "0000:31:00.0"), "NODE");
}

// Sub-NUMA clusters: nvidia-smi calls two NUMA nodes of one socket SYS.
TEST(Distance, IsSysBetweenNumaNodesOfOneSocket) {
  Machine server = fixture::machine("pcie-server");
  device(server, "0000:20").numa = 5;
  EXPECT_EQ(distance(server, "0000:11:00.0", "0000:21:00.0"), "SYS");
}

TEST(LinkAbove, IsWhatBothEndsSay) {
  Machine hgx = fixture::machine("hgx");
  const auto gpu = index_of(hgx, "0000:19:00.0");
  auto hop = link_above(hgx, gpu);
  ASSERT_TRUE(hop);
  EXPECT_EQ(hop->now_text, "Gen5 x16");
  EXPECT_FALSE(hop->narrower || hop->slower);
  fixture::train(hgx, "0000:19:00.0", fixture::kGen5x8);
  hop = link_above(hgx, gpu);
  EXPECT_TRUE(hop->narrower);
  EXPECT_FALSE(hop->slower);
  EXPECT_EQ(hop->now_text, "Gen5 x8");
  EXPECT_EQ(hop->most_text, "Gen5 x16");
}

TEST(LinkAbove, IsNoWorseThanItsSlotCouldBe) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:19:00.0", fixture::kGen4x8);
  device(hgx, "0000:17:01.0").link.most = fixture::kGen4x8;  // the slot above GPU 0
  const auto hop = link_above(hgx, index_of(hgx, "0000:19:00.0"));
  EXPECT_FALSE(hop->narrower || hop->slower);
  EXPECT_EQ(hop->most_text, "Gen4 x8");
}

TEST(LinkAbove, TakesWhatItHasWhereOneEndDoesNotSayWhatItCould) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:19:00.0", fixture::kGen4x8);
  device(hgx, "0000:17:01.0").link.most.reset();
  const auto hop = link_above(hgx, index_of(hgx, "0000:19:00.0"));
  EXPECT_FALSE(hop->narrower || hop->slower);
  EXPECT_EQ(hop->most_text, "Gen4 x8");
}

// A card in a virtual machine: it may be a Gen5 one in a Gen4 slot, and the guest does not see the slot.
TEST(LinkAbove, IsNoWorseThanItCouldBeWhereTheOtherEndIsNotSeen) {
  Machine vm = fixture::machine("vm");
  PciDevice& card = device(vm, "0000:00:03.0");
  card.link = {fixture::kGen4x8, fixture::kGen3x16, std::nullopt};
  auto hop = link_above(vm, index_of(vm, "0000:00:03.0"));
  ASSERT_TRUE(hop);
  EXPECT_FALSE(hop->narrower || hop->slower);
  EXPECT_EQ(hop->most_text, "Gen4 x8");
  // Below a switch as a file of NCCL's shows it, the file has said what the link could.
  vm.pci[0].kind = PciKind::port;
  hop = link_above(vm, index_of(vm, "0000:00:03.0"));
  EXPECT_TRUE(hop->narrower);
}

TEST(LinkAbove, IsNoneInsideASwitchAndOfWhatIsNotKnown) {
  Machine hgx = fixture::machine("hgx");
  EXPECT_FALSE(link_above(hgx, index_of(hgx, "0000:17:01.0")));  // downstream port
  EXPECT_FALSE(link_above(hgx, index_of(hgx, "0000:15:01.0")));  // root port
  EXPECT_TRUE(link_above(hgx, index_of(hgx, "0000:16:00.0")));   // upstream port
  const Machine vm = fixture::machine("vm");
  EXPECT_FALSE(link_above(vm, index_of(vm, "0000:00:03.0")));
}

TEST(WayBetween, ListsItsLinks) {
  const Machine hgx = fixture::machine("hgx");
  const Way way = way_between(hgx, index_of(hgx, "0000:19:00.0"), index_of(hgx, "0000:3a:00.0"));
  std::vector<std::string> devices;
  for (const PciHop& hop : way.hops)
    devices.push_back(hgx.pci[hop.device].address);
  // GPU 0, its switch's uplink; the other switch's uplink, the NIC
  EXPECT_THAT(devices, testing::ElementsAre("0000:19:00.0", "0000:16:00.0", "0000:38:00.0", "0000:3a:00.0"));
}

TEST(NearestPorts, AreTheEquallyNearOnes) {
  Machine hgx = fixture::machine("hgx");
  Nearest nearest = nearest_ports(hgx, 3, false);  // GPU 3 hangs at 0000:38:00.0 with mlx5_2 and mlx5_3
  EXPECT_EQ(nearest.distance, Distance::pix);
  EXPECT_THAT(nearest.ports, testing::ElementsAre(2, 3));
  fixture::port(hgx, "mlx5_2").state = fixture::port(hgx, "mlx5_3").state = PortState::down;
  nearest = nearest_ports(hgx, 3, true);
  EXPECT_EQ(nearest.distance, Distance::node);
  EXPECT_THAT(nearest.ports, testing::ElementsAre(0, 1));
  EXPECT_THAT(nearest_ports(hgx, 3, false).ports, testing::ElementsAre(2, 3));
}

TEST(NvLinks, CountOverSwitchesOrDirectly) {
  Machine hgx = fixture::machine("hgx");
  EXPECT_EQ(nvlinks_between(hgx, 0, 7), 18u);
  hgx.nvlinks[7].count = 12;
  EXPECT_EQ(nvlinks_between(hgx, 0, 7), 12u);
  hgx.nvlinks = {{.gpu = 0, .peer = 1, .count = 4, .rate = Rate{800e9}}, {.gpu = 0, .peer = 2, .count = 2}};
  EXPECT_EQ(nvlinks_between(hgx, 0, 1), 4u);
  EXPECT_EQ(nvlinks_between(hgx, 0, 3), 0u);
  EXPECT_EQ(nvlinks_of(hgx, 0).count, 6u);
  EXPECT_FALSE(nvlinks_of(hgx, 0).rate);  // two of the six do not say theirs
}

}  // namespace
}  // namespace netcheck
