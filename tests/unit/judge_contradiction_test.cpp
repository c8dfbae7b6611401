// A file about a machine, and the machine: which of them counts, and where they disagree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/contradiction.h"
#include "machines.h"
#include "measure/other_tree.h"

namespace netcheck::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What a guest sees of it: each device on a bus of its own, nothing said of NUMA, links or NVLinks.
Machine flat(Machine machine) {
  Machine guest = machine;
  guest.pci.clear();
  guest.nvlinks.clear();
  guest.nvlinks_known = false;
  const auto hang = [&](std::uint32_t& place) {
    PciDevice device = machine.pci[place];
    device.link = {};
    device.parent = static_cast<std::uint32_t>(guest.pci.size());
    guest.pci.push_back({.address = device.address.substr(0, 7), .kind = PciKind::host_bridge});
    guest.pci.push_back(device);
    place = static_cast<std::uint32_t>(guest.pci.size() - 1);
  };
  for (Gpu& gpu : guest.gpus)
    hang(gpu.pci);
  for (NetworkPort& port : guest.ports)
    if (port.pci) hang(*port.pci);
  return guest;
}

std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> codes;
  for (const Finding& finding : findings)
    codes.push_back(finding.code);
  return codes;
}

TEST(WithTreeOf, GivesAGuestItsHostsLocality) {
  const Machine host = fixture::machine("hgx"), guest = flat(host);
  ASSERT_EQ(nearest_ports(guest, 3, false).ports.size(), 8u);  // flat: all are alike
  const Machine seen = with_tree_of(guest, host);
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(nearest_ports(seen, gpu, false).ports, nearest_ports(host, gpu, false).ports);
    EXPECT_EQ(nearest_ports(seen, gpu, false).distance, Distance::pix);
  }
  EXPECT_EQ(nvlinks_between(seen, 0, 7), 18u);
  EXPECT_EQ(limits_of(seen).derivation, "8 rails × 400 Gb/s = 3200 Gb/s");
  EXPECT_EQ(seen.ports.size(), guest.ports.size());
  for (std::uint32_t i = 0; i < seen.pci.size(); ++i)
    EXPECT_TRUE(!seen.pci[i].parent || *seen.pci[i].parent < i) << i;
}

TEST(WithTreeOf, KeepsWhatTheFileDoesNotKnow) {
  Machine host = fixture::machine("hgx");
  const Machine guest = flat(host);
  fixture::device(host, "0000:19:00.0").address = "0000:ee:00.0";  // GPU 0 is another one there
  const Machine seen = with_tree_of(guest, host);
  EXPECT_EQ(seen.pci[seen.gpus[0].pci].address, "0000:19:00.0");
  EXPECT_EQ(host_bridge_of(seen, seen.gpus[0].pci).address, "0000:19");
  EXPECT_FALSE(function_at(seen, "0000:ee:00.0"));
}

// A Gen5 card in a Gen4 slot that its guest does not see: what the file says that the link could is its bar.
TEST(WithTreeOf, TakesTheFilesWordForWhatALinkCould) {
  Machine host = fixture::machine("hgx"), guest = flat(host);
  fixture::device(host, "0000:18:00.0").link = {std::nullopt, PciSpeed{16, 16}, std::nullopt};
  fixture::device(guest, "0000:18:00.0").link = {PciSpeed{16, 16}, PciSpeed{32, 16}, std::nullopt};
  const Machine seen = with_tree_of(guest, host);
  EXPECT_EQ(seen.pci[*function_at(seen, "0000:18:00.0")].link.most, (PciSpeed{16, 16}));
}

TEST(WithTreeOf, KeepsLinksAsTheyHaveTrained) {
  const Machine host = fixture::machine("hgx");
  Machine guest = host;
  fixture::train(guest, "0000:18:00.0", fixture::kGen5x8);
  const Machine seen = with_tree_of(guest, host);
  EXPECT_EQ(seen.pci[*function_at(seen, "0000:18:00.0")].link.now, fixture::kGen5x8);
}

TEST(Contradictions, AreNoneWhereTheTreeIsFlatOrTheSame) {
  const Machine host = fixture::machine("hgx");
  EXPECT_THAT(contradictions(host, host), IsEmpty());
  EXPECT_THAT(contradictions(flat(host), host), IsEmpty());
  Machine guest = flat(host);
  guest.numa.resize(1);  // then all are known to be equally near
  EXPECT_THAT(contradictions(guest, host), IsEmpty());
}

TEST(Contradictions, AreNoneWhereTheFileLeavesOutWhatItsDevicesAre) {
  const Machine host = fixture::machine("hgx");
  Machine file = host;
  for (PciDevice& device : file.pci)
    if (device.kind == PciKind::gpu || device.kind == PciKind::nic) device.kind = PciKind::other;
  EXPECT_THAT(contradictions(host, file), IsEmpty());
  fixture::device(file, "0000:19:00.0").address = "0000:ee:00.0";
  EXPECT_THAT(codes(contradictions(host, file)), ElementsAre("nccl-differs", "nccl-differs"));
}

TEST(Contradictions, NameGpusWithOtherNeighbours) {
  const Machine host = fixture::machine("hgx");
  Machine file = host;
  file.source = "the file";
  std::swap(fixture::device(file, "0000:19:00.0").address, fixture::device(file, "0000:9b:00.0").address);
  const auto findings = contradictions(host, file);
  EXPECT_THAT(codes(findings), ElementsAre("nccl-differs", "nccl-differs"));
  EXPECT_EQ(findings[0].what,
            "nearest to GPU 0: mlx5_4, mlx5_5 (PIX) by the file, mlx5_0, mlx5_1 (PIX) by PCI");
  EXPECT_EQ(findings[1].culprit, "GPU 4");
}

TEST(Contradictions, NameAFileOfAnotherMachine) {
  Machine file = fixture::machine("pcie-server");
  file.source = "the file";
  const auto findings = contradictions(fixture::machine("hgx"), file);
  EXPECT_THAT(codes(findings), ElementsAre("nccl-differs", "nccl-differs"));
  EXPECT_EQ(findings[0].what, "the file tells of 0000:11:00.0 and 5 more, which this node does not have");
  EXPECT_EQ(findings[1].what, "the file does not tell of GPU 0 (0000:19:00.0) and 7 more");
}

}  // namespace
}  // namespace netcheck::judge
