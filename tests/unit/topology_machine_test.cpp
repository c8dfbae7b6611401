// Machines read back from a /sys and /proc written for them (plant.h): hwloc's tree, sysfs's attributes,
// ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/machine.h"
#include "machines.h"
#include "plant.h"
#include "topology/interfaces.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {
namespace {

using fixture::Plant;
using fixture::port;

Machine read(const Plant& plant) {
  auto machine = read_machine(plant.root());
  if (!machine) {
    ADD_FAILURE() << describe(machine.error());
    return {};
  }
  return *machine;
}

// What sysfs does not have, or not in the order of the fixture.
Machine comparable(Machine machine) {
  machine.source.clear();
  machine.notes.clear();
  machine.memlock_bytes.reset();
  machine.nvlinks.clear();
  machine.nvlinks_known = false;
  std::ranges::sort(machine.ports, {}, &NetworkPort::name);
  return machine;
}

// Devices by address: hwloc lists host bridges in the order of their buses.
std::vector<PciDevice> by_address(const Machine& machine) {
  std::vector<PciDevice> devices = machine.pci;
  for (PciDevice& device : devices)
    if (device.parent)
      device.model = machine.pci[*device.parent].address;  // an index means nothing once sorted
  for (PciDevice& device : devices) {
    device.parent.reset();
    device.physical.reset();
  }
  std::ranges::sort(devices, {}, &PciDevice::address);
  return devices;
}

std::string address_of(const Machine& machine, const NetworkPort& port) {
  return port.pci ? machine.pci[*port.pci].address : "";
}

void expect_same(const Machine& planted, const Machine& found) {
  const Machine wanted = comparable(planted), got = comparable(found);
  EXPECT_EQ(got.node, wanted.node);
  EXPECT_EQ(got.product, wanted.product);
  EXPECT_EQ(got.kernel, wanted.kernel);
  EXPECT_EQ(got.drivers, wanted.drivers);
  EXPECT_EQ(got.numa, wanted.numa);
  const auto devices = by_address(got), wanted_devices = by_address(wanted);
  ASSERT_EQ(devices.size(), wanted_devices.size());
  const auto text = [](const PciDevice& device) {
    Machine one;
    one.pci = {device};
    return to_json(one)["pci"].dump();
  };
  for (std::size_t i = 0; i < devices.size(); ++i)
    EXPECT_EQ(text(devices[i]), text(wanted_devices[i]));
  ASSERT_EQ(got.gpus.size(), wanted.gpus.size());
  for (std::size_t i = 0; i < got.gpus.size(); ++i) {
    EXPECT_EQ(got.pci[got.gpus[i].pci].address, wanted.pci[wanted.gpus[i].pci].address);
    EXPECT_EQ(got.gpus[i].uuid, wanted.gpus[i].uuid);
    EXPECT_EQ(got.gpus[i].model, wanted.gpus[i].model);
  }
  ASSERT_EQ(got.ports.size(), wanted.ports.size());
  for (std::size_t i = 0; i < got.ports.size(); ++i) {
    NetworkPort one = got.ports[i], other = wanted.ports[i];
    EXPECT_EQ(address_of(got, one), address_of(wanted, other)) << other.name;
    one.pci = other.pci;
    EXPECT_EQ(one, other) << other.name;
  }
}

class EveryMachine : public testing::TestWithParam<const char*> {};

TEST_P(EveryMachine, IsReadAsItIs) {
  const Machine machine = fixture::recorded(GetParam());
  const Plant plant(machine);
  expect_same(machine, read(plant));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryMachine,
                         testing::Values("hgx", "pcie-server", "cpu-hdr", "bond", "vm"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(ReadMachine, LeavesUnknownWhatSysfsDoesNotTell) {
  const Machine machine = fixture::recorded("hgx");
  const Plant plant(machine);
  const std::string gpu = plant.pci_folder("0000:19:00.0"), nic = plant.pci_folder("0000:18:00.0");
  plant.write(gpu + "/current_link_speed", "Unknown");
  plant.write(gpu + "/max_link_width", "255");
  plant.remove(gpu + "/numa_node");
  plant.write(nic + "/current_link_speed", "");
  plant.write(nic + "/max_link_speed", "-1");
  plant.remove(nic + "/driver");
  plant.write("sys/class/net/eno1/speed", "-1");
  plant.write("sys/class/net/eno1/mtu", "");
  plant.write("sys/class/net/eno1/operstate", "unknown");
  plant.write("sys/class/infiniband/mlx5_3/ports/1/rate", "Unknown");
  plant.remove("sys/class/infiniband/mlx5_3/ports/1/state");
  plant.remove("sys/class/infiniband/mlx5_3/ports/1/link_layer");
  Machine found = read(plant);
  EXPECT_FALSE(fixture::device(found, "0000:19:00.0").link.now);
  EXPECT_FALSE(fixture::device(found, "0000:19:00.0").link.most);
  EXPECT_FALSE(fixture::device(found, "0000:18:00.0").link.now);
  EXPECT_FALSE(fixture::device(found, "0000:18:00.0").link.most);
  EXPECT_EQ(fixture::device(found, "0000:18:00.0").driver, "");
  EXPECT_FALSE(port(found, "eno1").rate);
  EXPECT_FALSE(port(found, "eno1").mtu);
  EXPECT_EQ(port(found, "eno1").state, PortState::unknown);
  EXPECT_FALSE(port(found, "mlx5_3").rate);
  EXPECT_EQ(port(found, "mlx5_3").state, PortState::unknown);
  EXPECT_EQ(port(found, "mlx5_3").link_layer, "");
}

TEST(ReadMachine, KnowsNoRateOfALinkWithoutACardAndOfOneThatIsDown) {
  Machine machine = fixture::recorded("hgx");
  port(machine, "docker0").rate = Rate{10e9};  // veth and bridges say 10000 whatever they carry
  port(machine, "eno1").state_text = "down";
  port(machine, "mlx5_2").state_text = "1: DOWN";
  const Plant plant(machine);
  Machine found = read(plant);
  EXPECT_FALSE(port(found, "docker0").rate);
  EXPECT_FALSE(port(found, "eno1").rate);
  EXPECT_EQ(port(found, "mlx5_2").state, PortState::down);
  EXPECT_EQ(port(found, "mlx5_2").state_text, "1: DOWN");
  EXPECT_FALSE(port(found, "mlx5_2").rate);  // the 10 Gb/s of a link that has not come up
}

TEST(ReadMachine, SeesAcsOnlyInAWholeConfigurationSpace) {
  Machine machine = fixture::recorded("hgx");
  fixture::device(machine, "0000:17:01.0").redirects = true;
  fixture::device(machine, "0000:17:02.0").redirects.reset();  // 64 bytes: what others than root see
  const Plant plant(machine);
  Machine found = read(plant);
  EXPECT_EQ(fixture::device(found, "0000:17:01.0").redirects, true);
  EXPECT_EQ(fixture::device(found, "0000:17:00.0").redirects, false);
  EXPECT_FALSE(fixture::device(found, "0000:17:02.0").redirects);
}

TEST(ReadMachine, ReadsWhatACardMaySendWhereThatIsShown) {
  Machine machine = fixture::recorded("hgx");
  PciDevice& nic = fixture::device(machine, "0000:18:00.0");
  nic.relaxed_ordering = true;
  nic.max_read_request = 4096;
  PciDevice& other = fixture::device(machine, "0000:1a:00.0");
  other.relaxed_ordering = false;
  other.max_read_request = 128;
  const Plant plant(machine);
  Machine found = read(plant);
  expect_same(machine, found);    // the rest show 64 bytes, as to others than root
  std::string lost(256, '\xff');  // fallen off the bus: all reads give ones
  plant.write(plant.pci_folder("0000:18:00.0") + "/config", lost);
  std::string ring(256, '\0');  // a list that leads back to its beginning
  ring[0x34] = 0x40, ring[0x40] = 0x01, ring[0x41] = 0x40;
  plant.write(plant.pci_folder("0000:1a:00.0") + "/config", ring);
  found = read(plant);
  EXPECT_FALSE(fixture::device(found, "0000:18:00.0").relaxed_ordering);
  EXPECT_FALSE(fixture::device(found, "0000:1a:00.0").relaxed_ordering);
}

TEST(ReadMachine, ReadsTheVersionOfADriver) {
  const Machine machine = fixture::recorded("hgx");
  const Plant plant(machine);
  plant.remove("sys/module");
  EXPECT_TRUE(read(plant).drivers.empty());  // as of those that come with the kernel
  plant.write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version: 12");
  EXPECT_THAT(read(plant).drivers, testing::ElementsAre(DriverVersion{"nvidia", "570.86.15"}));
  plant.write("proc/driver/nvidia/version", "NVRM version: none");
  EXPECT_TRUE(read(plant).drivers.empty());
}

TEST(ReadMachine, ReadsTheBestGidOfARocePort) {
  for (const Gids gids : {Gids::unknown, Gids::none, Gids::version_1, Gids::link_local, Gids::usable}) {
    Machine machine = fixture::recorded("bond");
    port(machine, "mlx5_bond_0").gids = gids;
    const Plant plant(machine);
    Machine found = read(plant);
    EXPECT_EQ(port(found, "mlx5_bond_0").gids, gids);
  }
}

// In a container: the card is to be seen, its interface is elsewhere, and the kernel shows none of its GIDs.
TEST(ReadMachine, KnowsNoGidsOfAPortWhoseInterfaceIsElsewhere) {
  Machine machine = fixture::recorded("hgx");
  port(machine, "mlx5_8").gids = Gids::none;
  port(machine, "mlx5_8").interface.clear();
  const Plant plant(machine);
  Machine found = read(plant);
  EXPECT_EQ(port(found, "mlx5_8").gids, Gids::unknown);
}

TEST(ReadMachine, NoticesAGpuThatItsDriverDoesNotKnow) {
  Machine machine = fixture::recorded("hgx");
  machine.gpus[4].known_to_driver = false;
  const Plant plant(machine);
  const Machine found = read(plant);
  EXPECT_EQ(found.gpus[4].known_to_driver, false);
  EXPECT_EQ(found.gpus[3].known_to_driver, true);
}

TEST(ReadMachine, NotesGpusThatOnlyTheirDriverKnows) {
  const Machine machine = fixture::recorded("hgx");
  const Plant plant(machine);
  EXPECT_TRUE(read(plant).notes.empty());
  plant.write("proc/driver/nvidia/gpus/0000:ee:00.0/information", "Model: \t\t a GPU");
  const Machine found = read(plant);
  EXPECT_EQ(found.gpus.size(), 8u);
  EXPECT_THAT(found.notes, testing::ElementsAre("the driver knows 1 GPU that is not to be seen on the bus"));
}

// A sysfs that was mounted in another network namespace: the same names, other links.
TEST(AddPorts, LeavesOutTheInterfacesOfAnotherNamespace) {
  const Machine machine = fixture::recorded("vm");
  const Plant plant(machine);
  for (const char* name : {"eth0", "lo"})
    plant.write(std::string("sys/class/net/") + name + "/ifindex", "987654");
  Machine found = machine;
  add_ports(found, plant.root(), true);
  EXPECT_TRUE(found.ports.empty());
  add_ports(found, plant.root(), false);
  EXPECT_EQ(found.ports.size(), 2u);
}

// A user's environment must not put another machine in this one's place.
TEST(ReadMachine, IgnoresHwlocsEnvironment) {
  ::setenv("HWLOC_XMLFILE", (fixture::folder() + "/two-sockets.hwloc.xml").c_str(), 1);
  ::setenv("HWLOC_SYNTHETIC", "pack:7 core:2 pu:1", 1);
  const auto machine = read_machine();
  ASSERT_TRUE(machine);
  EXPECT_NE(machine->numa.size(), 7u);
  for (const Gpu& gpu : machine->gpus)
    EXPECT_NE(gpu.uuid, "GPU-00000000-0000-0000-0000-000000000000");
}

TEST(ReadMachine, KnowsWhoseFunctionsOfSriovAre) {
  Machine machine = fixture::recorded("hgx");
  fixture::add_functions(machine, "0000:18:00.0", 64);
  const Plant plant(machine);
  const Machine found = read(plant);
  expect_same(machine, found);
  std::uint32_t functions = 0;
  for (const PciDevice& device : found.pci) {
    if (!device.physical) continue;
    ++functions;
    EXPECT_EQ(found.pci[*device.physical].address, "0000:18:00.0");
  }
  EXPECT_EQ(functions, 64u);
}

// A recorded tree in which two functions are each other's card.
TEST(ReadMachine, TakesNoFunctionForACard) {
  Machine machine = fixture::recorded("hgx");
  fixture::add_functions(machine, "0000:18:00.0", 2);
  const Plant plant(machine);
  plant.link(plant.pci_folder("0000:18:01.0") + "/physfn", "../0000:18:01.1");
  plant.link(plant.pci_folder("0000:18:01.1") + "/physfn", "../0000:18:01.0");
  Machine found = read(plant);
  EXPECT_FALSE(fixture::device(found, "0000:18:01.0").physical);
  EXPECT_FALSE(fixture::device(found, "0000:18:01.1").physical);
}

TEST(ReadMachine, CountsNoPartOfAGpuAsAGpu) {
  Machine machine = fixture::recorded("hgx");
  PciDevice part = fixture::device(machine, "0000:19:00.0");
  part.address = "0000:19:00.4";
  part.physical = fixture::index_of(machine, "0000:19:00.0");
  machine.pci.push_back(part);
  const Plant plant(machine);
  EXPECT_EQ(read(plant).gpus.size(), 8u);
  plant.remove(plant.pci_folder("0000:19:00.4") + "/physfn");  // as a virtual machine sees it
  EXPECT_EQ(read(plant).gpus.size(), 9u);
}

// Two RDMA devices below one bond, where the driver does not merge them: one port carries for both.
TEST(ReadMachine, TakesABondForOnePort) {
  Machine machine = fixture::recorded("bond");
  std::erase_if(machine.ports, [](const NetworkPort& one) { return one.name != "lo"; });
  const Plant plant(machine);
  plant.write("sys/class/net/bond0/ifindex", "9");
  plant.write("sys/class/net/bond0/type", "1");
  plant.write("sys/class/net/bond0/operstate", "up");
  plant.write("sys/class/net/bond0/speed", "200000");
  plant.write("sys/class/net/bond0/bonding/slaves", "eth2 eth3");
  for (int i = 0; i < 2; ++i) {
    const std::string place = fmt::format("sys/devices/pci0000:c0/0000:c1:00.{}", i);
    const std::string net = fmt::format("{}/net/eth{}", place, i + 2),
                      rdma = fmt::format("{}/infiniband/mlx5_{}", place, i);
    plant.link(fmt::format("sys/class/net/eth{}", i + 2), "../../../" + net);
    plant.link(fmt::format("sys/class/infiniband/mlx5_{}", i), "../../../" + rdma);
    plant.write(net + "/ifindex", std::to_string(i + 2));
    plant.write(net + "/type", "1");
    plant.link(net + "/master", "../../../../virtual/net/bond0");
    plant.write(rdma + "/ports/1/state", "4: ACTIVE");
    plant.write(rdma + "/ports/1/link_layer", "Ethernet");
    plant.write(rdma + "/ports/1/rate", "100 Gb/sec (4X EDR)");
  }
  Machine found = read(plant);
  tell_roles(found, {});
  std::vector<std::string> fabric;
  for (const NetworkPort& one : found.ports)
    if (one.why_not.empty()) fabric.push_back(one.name);
  EXPECT_THAT(fabric, testing::ElementsAre("mlx5_0"));
  EXPECT_EQ(port(found, "mlx5_0").rate, Rate{200e9});
  EXPECT_EQ(port(found, "mlx5_1").why_not, "part of bond0");
}

TEST(ReadMachine, LeavesOutTheNearEndsOfFunctions) {
  const Machine machine = fixture::recorded("vm");
  const Plant plant(machine);
  plant.write("sys/class/net/eth0/phys_port_name", "p0");
  EXPECT_EQ(read(plant).ports.size(), 2u);
  for (const char* near_end : {"pf0vf3", "c1pf0sf88"}) {
    plant.write("sys/class/net/eth0/phys_port_name", near_end);
    EXPECT_EQ(read(plant).ports.size(), 1u) << near_end;
  }
}

TEST(ReadMachine, KnowsVirtualFunctions) {
  Machine machine = fixture::recorded("hgx");
  port(machine, "eno1").virtual_function = true;
  const Plant plant(machine);
  Machine found = read(plant);
  EXPECT_TRUE(port(found, "eno1").virtual_function);
  EXPECT_FALSE(port(found, "mlx5_0").virtual_function);
}

// hwloc-gather-topology records no /proc/sys, but what uname(2) says.
TEST(ReadMachine, TakesItsNameFromWhatWasGathered) {
  const Plant plant(fixture::recorded("vm"));
  plant.remove("proc/sys");
  plant.write("proc/hwloc-nofile-info",
              "OSName: Linux\nOSRelease: 6.1.0-18-amd64\nHostName: n3\nPageSize: 4096");
  const Machine found = read(plant);
  EXPECT_EQ(found.node, "n3");
  EXPECT_EQ(found.kernel, "6.1.0-18-amd64");
}

// A container, or a VM without PCI.
TEST(ReadMachine, GoesWithoutPci) {
  const Plant plant(fixture::recorded("vm"));
  plant.remove("sys/bus");
  Machine found = read(plant);
  EXPECT_TRUE(found.pci.empty());
  EXPECT_EQ(found.notes.size(), 1u);
  EXPECT_FALSE(port(found, "eth0").pci);
}

TEST(ReadMachine, SaysWhatAFolderLacks) {
  const auto missing = read_machine("/nonexistent/node");
  ASSERT_FALSE(missing);
  EXPECT_THAT(describe(missing.error()), testing::HasSubstr("/nonexistent/node"));
  const Plant plant(fixture::recorded("vm"));
  plant.remove("sys");
  const auto empty = read_machine(plant.root());
  ASSERT_FALSE(empty);
  EXPECT_THAT(describe(empty.error()), testing::HasSubstr("no sys/devices/system/cpu"));
  plant.write("sys/nothing", "");
  EXPECT_FALSE(read_machine(plant.root()));
}

TEST(ReadMachine, ReadsThisOne) {
  const auto machine = read_machine();
  ASSERT_TRUE(machine);
  EXPECT_FALSE(machine->numa.empty());
  EXPECT_TRUE(machine->memlock_bytes);
  EXPECT_EQ(machine->source, "this machine");
}

// Bits of linux/ethtool.h: 10000baseT is 12, Autoneg 6, Pause 13, 100000baseCR4 38 (bit 6 of the second
// word), 400000baseCR4 89 (25 of the third), 800000baseCR4 115 (19 of the fourth), FEC_RS 50.
TEST(FastestMode, IsOfTheModesThatAPortSupports) {
  using Modes = std::vector<std::uint32_t>;
  const auto gigabits = [](const Modes& modes) {
    const auto rate = fastest_mode(modes);
    return rate ? rate->bits_per_second / 1e9 : -1;
  };
  EXPECT_EQ(gigabits({(1U << 12) | (1U << 6)}), 10);
  EXPECT_EQ(gigabits({1U << 12, 1U << 6}), 100);
  EXPECT_EQ(gigabits({1U << 12, 1U << 6, 1U << 25}), 400);
  EXPECT_EQ(gigabits({0, 0, 0, 1U << 19, UINT32_MAX}), 800);
  EXPECT_EQ(gigabits({(1U << 6) | (1U << 13), 1U << 18}), -1);  // no mode among them
  EXPECT_EQ(gigabits({}), -1);
}

TEST(FastestMode, IsUnknownWhereNoDriverTells) {
  EXPECT_FALSE(fastest_supported("lo"));
  EXPECT_FALSE(fastest_supported("no such one"));
  EXPECT_FALSE(fastest_supported("longer than any interface's name"));
}

TEST(KindOfVirtual, GoesByTheName) {
  EXPECT_STREQ(kind_of_virtual("docker0"), "container bridge");
  EXPECT_STREQ(kind_of_virtual("veth1234"), "container's link");
  EXPECT_EQ(kind_of_virtual("ens1f0"), nullptr);
}

}  // namespace
}  // namespace netcheck::topology
