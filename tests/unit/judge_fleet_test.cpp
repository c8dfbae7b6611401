// The odd one out among a job's nodes, and two nodes told apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/fleet.h"
#include "machines.h"

namespace netcheck::judge {
namespace {

using fixture::port;
using testing::ElementsAre;
using testing::IsEmpty;

NodeTraits node(Machine machine, const std::string& name) {
  machine.node = name;
  return traits_of(machine, limits_of(machine));
}

std::vector<NodeTraits> nodes(std::size_t count) {
  std::vector<NodeTraits> list;
  for (std::size_t i = 0; i < count; ++i)
    list.push_back(node(fixture::machine("hgx"), "n" + std::to_string(i + 1)));
  return list;
}

std::vector<std::string> lines(const std::vector<NodeTraits>& list) {
  std::vector<std::string> lines;
  for (const Oddity& oddity : odd_ones(list))
    lines.push_back(oddity.what);
  return lines;
}

TEST(OddOnes, AreNoneWhereAllAreAlike) {
  EXPECT_THAT(lines(nodes(16)), IsEmpty());
  EXPECT_THAT(lines(nodes(1)), IsEmpty());
  EXPECT_THAT(lines({}), IsEmpty());
}

TEST(OddOnes, NameTheNodeThatLacksAGpu) {
  auto list = nodes(16);
  Machine seven = fixture::machine("hgx");
  seven.gpus.pop_back();
  seven.nvlinks.pop_back();
  list[2] = node(seven, "n3");
  const auto oddities = odd_ones(list);
  ASSERT_FALSE(oddities.empty());
  EXPECT_EQ(oddities[0].what, "n3 has 7 GPUs, the other 15 nodes 8");
  EXPECT_THAT(oddities[0].nodes, ElementsAre(2));
}

TEST(OddOnes, NameWhatElseIsUneven) {
  auto list = nodes(4);
  Machine odd = fixture::machine("hgx");
  port(odd, "mlx5_1").mtu = 2044;
  port(odd, "mlx5_2").rate = Rate{200e9};
  port(odd, "mlx5_3").state = PortState::down;
  fixture::train(odd, "0000:9a:00.0", fixture::kGen5x8);
  odd.nvlinks[0].count = 17;
  list[3] = node(odd, "n4");
  EXPECT_THAT(lines(list),
              ElementsAre("n4 has 7 fabric ports up, the other 3 nodes 8",
                          "n4 has rails of 7 × 400 Gb/s + 1 × 200 Gb/s, the other 3 nodes 8 × 400 Gb/s",
                          "n4 has MTU 7 × 4092 + 1 × 2044, the other 3 nodes 8 × 4092",
                          "n4 has PCIe links of 15 × x16 + 1 × x8, the other 3 nodes 16 × x16",
                          "n4 has NVLinks of GPUs 7 × 18 + 1 × 17, the other 3 nodes 8 × 18"));
}

TEST(OddOnes, NameOtherDriversAndFirmware) {
  auto list = nodes(4);
  Machine odd = fixture::machine("hgx");
  odd.kernel = "6.8.0-31-generic";
  odd.drivers[1].version = "550.90.07";
  port(odd, "mlx5_5").firmware = "28.36.1010";
  list[3] = node(odd, "n4");
  EXPECT_THAT(lines(list),
              ElementsAre("n4 has kernel 6.8.0-31-generic, the other 3 nodes 6.8.0-45-generic",
                          "n4 has GPU driver 550.90.07, the other 3 nodes 550.54.15",
                          "n4 has firmware of rails 28.36.1010 + 28.39.1002, the other 3 nodes 28.39.1002"));
  for (const Oddity& oddity : odd_ones(list))
    EXPECT_EQ(flaw_of(oddity.key), Flaw::odd_driver);
  list = nodes(4);
  odd = fixture::machine("hgx");  // a rail less is no other firmware; the storage card's is nobody's
  std::erase_if(odd.ports, [](const NetworkPort& one) { return one.name == "mlx5_7"; });
  port(odd, "mlx5_8").firmware = "1.0";
  list[3] = node(odd, "n4");
  for (const Oddity& oddity : odd_ones(list))
    EXPECT_NE(flaw_of(oddity.key), Flaw::odd_driver) << oddity.what;
}

TEST(OddOnes, AreOneLineAlsoOfAThousandNodes) {
  auto list = nodes(1000);
  Machine odd = fixture::machine("hgx");
  for (NetworkPort& one : odd.ports)
    one.mtu = 1500;
  for (std::size_t i = 0; i < 400; ++i)
    list[i * 2] = node(odd, "n" + std::to_string((i * 2) + 1));
  const auto all = lines(list);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_LT(all[0].size(), 512u);
  EXPECT_THAT(all[0], testing::HasSubstr("have MTU 8 × 1500, the other 600 nodes 8 × 4092"));
}

TEST(OddOnes, AccuseNobodyWithoutAMajority) {
  auto list = nodes(2);
  Machine odd = fixture::machine("hgx");
  for (NetworkPort& one : odd.ports)
    if (one.mtu) one.mtu = 1500;
  list[1] = node(odd, "n2");
  const auto oddities = odd_ones(list);
  ASSERT_EQ(oddities.size(), 1u);
  EXPECT_THAT(oddities[0].nodes, IsEmpty());
  EXPECT_EQ(oddities[0].what, "MTU differ: 8 × 1500 on n2, 8 × 4092 on n1");
}

// A job over two kinds of nodes by design.
TEST(OddOnes, AreOfOneClassOfHardware) {
  auto list = nodes(3);
  list.push_back(node(fixture::machine("pcie-server"), "p1"));
  list.push_back(node(fixture::machine("cpu-hdr"), "c1"));
  EXPECT_THAT(lines(list), IsEmpty());
}

TEST(OddOnes, DoNotHoldTheUnknownAgainstANode) {
  auto list = nodes(4);
  Machine unknown = fixture::machine("hgx");
  for (NetworkPort& one : unknown.ports) {
    one.rate.reset();
    one.mtu.reset();
  }
  for (PciDevice& device : unknown.pci)
    device.link = {};
  unknown.kernel.clear();
  unknown.drivers.clear();
  unknown.nvlinks.clear();
  unknown.nvlinks_known = false;
  list[1] = node(unknown, "n2");
  EXPECT_THAT(lines(list), IsEmpty());
}

TEST(Traits, AreSmallOnTheWire) {
  const NodeTraits one = nodes(1)[0];
  const Bytes frame = to_cbor(to_json(one));
  EXPECT_LT(frame.size(), 600U);
  const NodeTraits found =
      read_frame(frame, "n1", [](const Json& json) { return traits_from_json(json); }).value();
  EXPECT_EQ(found.node, one.node);
  EXPECT_EQ(found.product, one.product);
  EXPECT_EQ(found.traits, one.traits);
}

// The idle GPU's link: no difference.
TEST(OddOnes, IgnoreTheGenerationOfAGpusLink) {
  auto list = nodes(4);
  Machine idle = fixture::machine("hgx");
  fixture::train(idle, "0000:19:00.0", fixture::kGen1x16);
  list[1] = node(idle, "n2");
  EXPECT_THAT(lines(list), IsEmpty());
}

TEST(Differences, GoDownToPortsAndLinks) {
  Machine good = fixture::machine("hgx");
  good.libraries = {{"NCCL", "2.21.5"}};
  EXPECT_THAT(differences(good, good), IsEmpty());
  Machine bad = good;
  port(bad, "mlx5_2").rate = Rate{200e9};
  fixture::train(bad, "0000:9a:00.0", fixture::kGen5x8);
  fixture::device(bad, "0000:02:00.0").driver.clear();
  bad.libraries = {{"NCCL", "2.18.3"}};
  EXPECT_THAT(differences(good, bad),
              ElementsAre(Difference{"rails of", "8 × 400 Gb/s", "7 × 400 Gb/s + 1 × 200 Gb/s"},
                          Difference{"PCIe links of", "16 × x16", "15 × x16 + 1 × x8"},
                          Difference{"NCCL: version", "2.21.5", "2.18.3"},
                          Difference{"mlx5_2: rate", "400 Gb/s", "200 Gb/s"},
                          Difference{"0000:9a:00.0: link", "Gen5 x16", "Gen5 x8"},
                          Difference{"0000:02:00.0: driver", "ixgbe", "-"}));
  EXPECT_THAT(differences(bad, good), testing::Contains(Difference{"0000:02:00.0: driver", "-", "ixgbe"}));
}

}  // namespace
}  // namespace netcheck::judge
