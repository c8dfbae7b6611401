// Which ports are fabric ports: the rules of roles.cpp, each with a machine that shows it and one that does
// not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"
#include "topology/machine.h"

namespace netcheck::topology {
namespace {

using fixture::port;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> fabric(Machine& machine, const PortGlobs& globs = {}) {
  tell_roles(machine, globs);
  std::vector<std::string> names;
  for (const NetworkPort& one : machine.ports)
    if (one.why_not.empty()) names.push_back(one.name);
  return names;
}

TEST(Roles, AreTheRailsOfAGpuNode) {
  Machine hgx = fixture::recorded("hgx");
  EXPECT_THAT(fabric(hgx),
              ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"));
  EXPECT_EQ(port(hgx, "mlx5_8").why_not, "1 × 200 Gb/s beside 8 × 400 Gb/s");
  EXPECT_EQ(port(hgx, "eno1").why_not, "no RDMA");
  EXPECT_EQ(port(hgx, "docker0").why_not, "container bridge");
  EXPECT_EQ(port(hgx, "lo").why_not, "loopback");
}

TEST(Roles, OfTheOtherFixtures) {
  Machine server = fixture::recorded("pcie-server"), cpu = fixture::recorded("cpu-hdr");
  Machine bond = fixture::recorded("bond"), vm = fixture::recorded("vm");
  EXPECT_THAT(fabric(server), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(fabric(cpu), ElementsAre("mlx5_0"));
  EXPECT_THAT(fabric(bond), ElementsAre("mlx5_bond_0"));
  EXPECT_THAT(fabric(vm), ElementsAre("eth0"));
  EXPECT_EQ(port(bond, "ens1f1np1").why_not, "part of bond0");
}

TEST(Roles, AreTheSitesWhereItSaysSo) {
  Machine hgx = fixture::recorded("hgx");
  EXPECT_THAT(fabric(hgx, {{}, {"mlx5_[0-5]"}}), ElementsAre("mlx5_6", "mlx5_7"));
  EXPECT_EQ(port(hgx, "mlx5_3").why_not, "excluded by the site");
  EXPECT_THAT(fabric(hgx, {{"mlx5_8", "ib3"}, {}}), ElementsAre("mlx5_3", "mlx5_8"));
  EXPECT_EQ(port(hgx, "mlx5_0").why_not, "not among the site's devices");
  EXPECT_THAT(fabric(hgx, {{"mlx5_0:1"}, {}}), ElementsAre("mlx5_0"));
  EXPECT_THAT(fabric(hgx, {{"mlx5_*"}, {"mlx5_[1-8]"}}), ElementsAre("mlx5_0"));
}

// A rail that is lost is a finding; it must not fall out of the fabric, nor drag others with it.
TEST(Roles, KeepAPortThatIsDownOrSlow) {
  Machine hgx = fixture::recorded("hgx");
  port(hgx, "mlx5_2").state = PortState::down;
  port(hgx, "mlx5_2").rate.reset();
  port(hgx, "mlx5_3").rate = Rate{100e9};
  EXPECT_EQ(fabric(hgx).size(), 8u);
}

TEST(Roles, KeepRailsThatAreAllDown) {
  Machine hgx = fixture::recorded("hgx");
  for (NetworkPort& one : hgx.ports)
    if (one.link_layer == "InfiniBand") {
      one.state = PortState::down;
      one.rate.reset();
    }
  EXPECT_EQ(fabric(hgx).size(), 8u);  // below the switches of the GPUs
  EXPECT_EQ(port(hgx, "mlx5_8").why_not, "nearest to no GPU");
}

TEST(Roles, TakeLinkLayersOfOneCardApart) {
  Machine hgx = fixture::recorded("hgx");
  for (const char* name : {"mlx5_6", "mlx5_7"}) {  // the same card, cabled to storage
    port(hgx, name).link_layer = "Ethernet";
  }
  EXPECT_EQ(fabric(hgx).size(), 6u);
  EXPECT_EQ(port(hgx, "mlx5_7").why_not, "2 × 400 Gb/s beside 6 × 400 Gb/s");
}

TEST(Roles, LeaveOutSecondPortsThatNoCardHasCabled) {
  Machine machine = fixture::recorded("bond");
  machine.ports.clear();
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    NetworkPort one;
    one.name = one.rdma_device = name;
    one.pci = fixture::index_of(machine, name[5] == '0' ? "0000:c1:00.0" : "0000:c1:00.1");
    one.state = name[5] == '0' ? PortState::up : PortState::down;
    machine.ports.push_back(one);
  }
  EXPECT_THAT(fabric(machine), ElementsAre("mlx5_0"));
  EXPECT_EQ(port(machine, "mlx5_1").why_not, "not cabled");
  machine.ports[1].state = PortState::up;
  EXPECT_THAT(fabric(machine), ElementsAre("mlx5_0", "mlx5_1"));
}

TEST(Roles, LeaveOutPortsThatAreNearestToNoGpu) {
  Machine hgx = fixture::recorded("hgx");
  fixture::device(hgx, "0000:5b:00.0").device =
      0x1021;  // the storage card is of the rails' kind, on a root port of its own
  port(hgx, "mlx5_8").link_layer = "InfiniBand";
  port(hgx, "mlx5_8").rate = Rate{400e9};
  EXPECT_EQ(fabric(hgx).size(), 8u);
  EXPECT_EQ(port(hgx, "mlx5_8").why_not, "nearest to no GPU");
}

TEST(Roles, AreNotThoseOfSixtyFourFunctionsOfOneCard) {
  Machine hgx = fixture::recorded("hgx");
  fixture::add_functions(hgx, "0000:18:00.0", 64);
  EXPECT_THAT(fabric(hgx),
              ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"));
  EXPECT_EQ(port(hgx, "mlx5_163").why_not, "SR-IOV function");
}

// Another card of that maker has a port; this one has its functions alone, and they are what there is.
TEST(Roles, KeepFunctionsWhoseCardHasNoPort) {
  Machine cpu = fixture::recorded("cpu-hdr");
  fixture::add_functions(cpu, "0000:41:00.0", 1);
  std::erase_if(cpu.ports, [](const NetworkPort& one) { return one.name == "mlx5_0"; });
  EXPECT_THAT(fabric(cpu), ElementsAre("mlx5_100"));
}

TEST(Roles, LeaveOutVirtualFunctionsBesidePhysicalOnes) {
  Machine cpu = fixture::recorded("cpu-hdr");
  NetworkPort function = port(cpu, "mlx5_0");
  function.name = function.rdma_device = "mlx5_1";
  function.virtual_function = true;
  cpu.ports.push_back(function);
  EXPECT_THAT(fabric(cpu), ElementsAre("mlx5_0"));
  EXPECT_EQ(port(cpu, "mlx5_1").why_not, "SR-IOV function");
  port(cpu, "mlx5_0").virtual_function = true;  // a VM sees nothing else
  EXPECT_THAT(fabric(cpu), ElementsAre("mlx5_0", "mlx5_1"));
}

// Two of 25 Gb/s are more ports than one of 200, and carry less.
TEST(Roles, AreTheKindThatCarriesMostNotTheMostPorts) {
  Machine cpu = fixture::recorded("cpu-hdr");
  for (const char* name : {"eno1", "eno2"}) {
    port(cpu, name).rdma_device = std::string("bnxt_re_") + name;
    port(cpu, name).rate = Rate{25e9};
  }
  EXPECT_THAT(fabric(cpu), ElementsAre("mlx5_0"));
  EXPECT_EQ(port(cpu, "eno1").why_not, "2 × 25 Gb/s beside 1 × 200 Gb/s");
}

// Without RDMA: what carries most, if it is up; a port that was never cabled is nothing that is missing.
TEST(Roles, OfEthernetAreTheFastestKind) {
  Machine hgx = fixture::recorded("hgx");
  std::erase_if(hgx.ports, [](const NetworkPort& one) { return !one.rdma_device.empty(); });
  hgx.gpus.clear();
  EXPECT_THAT(fabric(hgx), ElementsAre("eno1"));
  Machine cpu = fixture::recorded("cpu-hdr");
  std::erase_if(cpu.ports, [](const NetworkPort& one) { return !one.rdma_device.empty(); });
  EXPECT_THAT(fabric(cpu), ElementsAre("eno1"));
  EXPECT_EQ(port(cpu, "eno2").why_not, "down");
}

}  // namespace
}  // namespace netcheck::topology
