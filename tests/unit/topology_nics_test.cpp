// NICs from a sysfs tree (tests/fixtures/sysfs: a node with four Ethernet links and two RDMA ports), and the
// lanes chosen from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "topology/interfaces.h"
#include "topology/inventory.h"

namespace netcheck::topology {
namespace {

namespace fs = std::filesystem;

const std::string kNode = (fs::path(__FILE__).parent_path().parent_path() / "fixtures" / "sysfs").string();

Interface link(const std::string& name, std::uint32_t index, const std::string& mac,
               std::vector<std::string> addresses) {
  Interface interface;
  interface.name = name;
  interface.index = index;
  interface.mac = mac;
  interface.running = true;
  interface.addresses = std::move(addresses);
  interface.mtu = 1500;
  return interface;
}

// What getifaddrs would say on the node whose sysfs the fixture is.
std::vector<Interface> links() {
  Interface loopback = link("lo", 1, "00:00:00:00:00:00", {});
  loopback.loopback = true;
  Interface unplugged = link("eth3", 5, "02:00:00:00:00:05", {"10.9.0.1"});
  unplugged.running = false;
  return {loopback,
          link("eth0", 2, "02:00:00:00:00:02", {"10.0.0.1", "2001:db8::1"}),
          link("eth1", 3, "02:00:00:00:00:03", {"10.1.0.1"}),
          link("eth2", 4, "02:00:00:00:00:04", {}),
          unplugged,
          link("docker0", 6, "02:42:00:00:00:06", {"172.17.0.1"}),
          link("ib0", 7, "00:00:10:29:fe:80", {"10.2.0.1"})};
}

const Nic& named(const std::vector<Nic>& nics, const std::string& name) {
  for (const Nic& nic : nics)
    if (nic.name == name) return nic;
  ADD_FAILURE() << "no " << name;
  return nics.front();
}

Inventory node(const std::vector<std::string>& exclude = {}) {
  Inventory inventory;
  inventory.nics = list_nics(links(), exclude, kNode);
  return inventory;
}

TEST(ListNics, SaysWhyALinkIsNoFabricNic) {
  const auto nics = list_nics(links(), {"eth1"}, kNode);
  EXPECT_EQ(named(nics, "lo").why_not, "loopback");
  EXPECT_EQ(named(nics, "eth0").why_not, "");
  EXPECT_EQ(named(nics, "eth1").why_not, "excluded by the site");
  EXPECT_EQ(named(nics, "eth2").why_not, "no address");
  EXPECT_EQ(named(nics, "eth3").why_not, "down");
  EXPECT_EQ(named(nics, "docker0").why_not, "container bridge");
}

TEST(ListNics, ReadsTheRatedSpeedAndTheNumaNode) {
  const Nic nic = named(list_nics(links(), {}, kNode), "eth0");  // speed: 100000 Mb/s
  ASSERT_TRUE(nic.speed);
  EXPECT_DOUBLE_EQ(nic.speed->bits_per_second, 1e11);
  EXPECT_EQ(nic.numa, 1);
  EXPECT_EQ(nic.mtu, 1500u);
  EXPECT_EQ(nic.address, "10.0.0.1");
  EXPECT_EQ(nic.ucx_device, "eth0");
}

TEST(ListNics, KnowsNoSpeedOfALinkWithoutADevice) {
  EXPECT_FALSE(named(list_nics(links(), {}, kNode), "eth1").speed);  // a veth, that claims 10000
}

TEST(ListNics, KnowsNoSpeedWhereTheDriverSaysMinusOne) {
  EXPECT_FALSE(named(list_nics(links(), {}, kNode), "eth2").speed);
}

// A sysfs of another network namespace has an eth0 too, but it is not ours.
TEST(ListNics, DoesNotBelieveASysfsThatIsAboutAnotherLinkOfThatName) {
  auto interfaces = links();
  interfaces[1].mac = "aa:bb:cc:dd:ee:ff";
  EXPECT_FALSE(named(list_nics(interfaces, {}, kNode), "eth0").speed);
  interfaces = links();
  interfaces[1].index = 99;
  EXPECT_FALSE(named(list_nics(interfaces, {}, kNode), "eth0").speed);
}

TEST(ListNics, ReadsRdmaPorts) {
  const auto nics = list_nics(links(), {}, kNode);
  const Nic& active = named(nics, "mlx5_0");
  EXPECT_TRUE(active.rdma);
  EXPECT_TRUE(active.up);
  EXPECT_EQ(active.ucx_device, "mlx5_0:1");
  EXPECT_DOUBLE_EQ(active.speed.value_or(Rate{}).bits_per_second, 4e11);  // "400 Gb/sec (4X NDR)"
  EXPECT_EQ(active.address, "10.2.0.1");                                  // of its ib0
  EXPECT_EQ(active.numa, 0);
  EXPECT_EQ(active.why_not, "");
  const Nic& second = named(nics, "mlx5_1:2");
  EXPECT_FALSE(second.up);
  EXPECT_EQ(second.why_not, "port not active (1: DOWN)");
}

/// The fixture's tree, to be changed.
class OwnTree {
 public:
  OwnTree() {
    std::string name = (fs::temp_directory_path() / "netcheck-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    fs::copy(kNode, root_, fs::copy_options::recursive);
  }
  ~OwnTree() { fs::remove_all(root_); }
  OwnTree(const OwnTree&) = delete;
  OwnTree& operator=(const OwnTree&) = delete;
  [[nodiscard]] const std::string& root() const { return root_; }
  void add(const std::string& folder) const { fs::create_directories(root_ + "/sys/class/" + folder); }

 private:
  std::string root_;
};

TEST(ListNics, SaysWhichAreFunctionsOfACardThatIsThereItself) {
  const OwnTree tree;
  tree.add("infiniband/mlx5_1/device/physfn/infiniband/mlx5_0");
  tree.add("net/eth0/device/physfn/net/eth1");
  const auto nics = list_nics(links(), {}, tree.root());
  EXPECT_EQ(named(nics, "mlx5_0").why_not, "");
  EXPECT_EQ(named(nics, "mlx5_1").why_not, "SR-IOV function");
  EXPECT_EQ(named(nics, "eth0").why_not, "SR-IOV function");
  const OwnTree alone;  // its card has no device here: it is all there is
  alone.add("infiniband/mlx5_1/device/physfn/net");
  EXPECT_EQ(named(list_nics(links(), {}, alone.root()), "mlx5_1").why_not, "");
}

TEST(ChooseLanes, TakesAllActiveRdmaPortsWhereThereAreAny) {
  const auto lanes = choose_lanes(node(), {}, "10.0.0.1");
  ASSERT_TRUE(lanes);
  EXPECT_THAT(*lanes, testing::ElementsAre("mlx5_0:1", "mlx5_1:1"));
}

TEST(ChooseLanes, ElseTakesTheInterfaceThatLeadsToTheOthers) {
  const auto lanes = choose_lanes(node({"mlx5_*"}), {}, "10.1.0.1");
  ASSERT_TRUE(lanes);
  EXPECT_THAT(*lanes, testing::ElementsAre("eth1"));
}

TEST(ChooseLanes, KnowsALinkLocalAddressByItsScope) {
  const auto lanes = choose_lanes(node({"mlx5_*"}), {}, "fe80::1%eth0");
  ASSERT_TRUE(lanes);
  EXPECT_THAT(*lanes, testing::ElementsAre("eth0"));
}

TEST(ChooseLanes, TakesTheSitesDevicesInTheSitesOrderEachOnce) {
  Wanted wanted;
  wanted.devices = {"eth1", "eth[01]"};
  const auto lanes = choose_lanes(node(), wanted, "10.0.0.1");
  ASSERT_TRUE(lanes);
  EXPECT_THAT(*lanes, testing::ElementsAre("eth1", "eth0"));
}

TEST(ChooseLanes, FindsAnRdmaPortByNameOrByUcxsName) {
  for (const char* glob : {"mlx5_0", "mlx5_0:1", "*_0:1"}) {
    Wanted wanted;
    wanted.devices = {glob};
    EXPECT_THAT(choose_lanes(node(), wanted, "").value(), testing::ElementsAre("mlx5_0:1")) << glob;
  }
}

TEST(ChooseLanes, NamesTheGlobThatFitsNothing) {
  Wanted wanted;
  wanted.devices = {"eth0", "hsn*"};
  const auto lanes = choose_lanes(node(), wanted, "10.0.0.1");
  ASSERT_FALSE(lanes);
  EXPECT_EQ(lanes.error().subject, "hsn*");
  EXPECT_NE(lanes.error().remedy.find("eth0"), std::string::npos);
}

TEST(ChooseLanes, NamesTheDeviceThatIsDown) {
  Wanted wanted;
  wanted.devices = {"eth3"};
  const auto lanes = choose_lanes(node(), wanted, "");
  ASSERT_FALSE(lanes);
  EXPECT_EQ(lanes.error().reason, "eth3 is down");
}

TEST(ChooseLanes, RefusesAnAddressThatNoInterfaceHas) {
  EXPECT_FALSE(choose_lanes(node({"mlx5_*"}), {}, "192.0.2.1"));
  EXPECT_FALSE(choose_lanes(node({"mlx5_*"}), {}, ""));
}

TEST(ChooseLanes, RefusesTheInterfaceThatTheSiteExcludes) {
  const auto lanes = choose_lanes(node({"mlx5_*", "eth0"}), {}, "10.0.0.1");
  ASSERT_FALSE(lanes);
  EXPECT_EQ(lanes.error().subject, "eth0");
}

TEST(TakeInventory, CountsComputeGpusAndNotTheConsolesVga) {
  const Inventory inventory = take_inventory("n1", {}, kNode);
  EXPECT_EQ(inventory.gpus, 3u);  // two of 0x10de/0x0302, one of 0x1002/0x0380; the 0x1a03 VGA is a console's
  EXPECT_EQ(inventory.machine, "PowerEdge XE9680");
}

TEST(TakeInventory, TakesTheCpusModelWhereNobodyNamedTheBoard) {
  const fs::path root = fs::temp_directory_path() / ("netcheck-machine-" + std::to_string(::getpid()));
  fs::create_directories(root / "sys/class/dmi/id");
  fs::create_directories(root / "proc");
  std::ofstream(root / "sys/class/dmi/id/product_name") << "To Be Filled By O.E.M.\n";
  std::ofstream(root / "proc/cpuinfo") << "processor\t: 0\nmodel name\t: AMD EPYC 9654\n";
  EXPECT_EQ(take_inventory("n1", {}, root.string()).machine, "AMD EPYC 9654");
  fs::remove_all(root);
}

TEST(TakeInventory, KnowsThisVeryNode) {
  const Inventory inventory = take_inventory("n1", {});
  utsname name{};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_EQ(inventory.node, "n1");
  EXPECT_EQ(inventory.kernel, name.release);
  EXPECT_GE(inventory.cores, 1u);
  EXPECT_GE(inventory.sockets, 1u);
  EXPECT_GE(inventory.numa_nodes, 1u);
  EXPECT_EQ(named(inventory.nics, "lo").why_not, "loopback");
  EXPECT_EQ(named(inventory.nics, "lo").address, "");  // 127.0.0.1 leads to no other node
}

TEST(GpuModel, IsTheFirstCardsAsItsDriverNamesIt) {
  std::string root = (fs::temp_directory_path() / "netcheck-gpus-XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  EXPECT_EQ(gpu_model_of(root), "");
  // /proc/driver/nvidia/gpus/BUS/information, as the driver of 2023 writes it.
  for (const char* bus : {"0000:9b:00.0", "0000:1b:00.0"}) {
    fs::create_directories(fs::path(root) / "proc/driver/nvidia/gpus" / bus);
    std::ofstream(fs::path(root) / "proc/driver/nvidia/gpus" / bus / "information")
        << "Model: \t\t NVIDIA " << (bus[5] == '1' ? "H100 80GB HBM3" : "A100") << "\nIRQ:   \t\t 18\n";
  }
  EXPECT_EQ(gpu_model_of(root), "NVIDIA H100 80GB HBM3");
  fs::remove_all(root);
}

}  // namespace
}  // namespace netcheck::topology
