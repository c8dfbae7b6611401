// Findings of one machine: each shown by a change to a fixture, and not by the fixture itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/hardware.h"
#include "machines.h"

namespace netcheck::judge {
namespace {

using fixture::device;
using fixture::port;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<Finding> findings(const Machine& machine) {
  return findings_of(machine, limits_of(machine));
}

std::vector<std::string> codes(const Machine& machine) {
  std::vector<std::string> codes;
  for (const Finding& finding : findings(machine))
    codes.push_back(std::string(name_of(finding.severity)) + " " + finding.code);
  return codes;
}

/// The only finding of that code.
Finding only(const Machine& machine, const std::string& code) {
  std::vector<Finding> found = findings(machine);
  std::erase_if(found, [&](const Finding& finding) { return finding.code != code; });
  if (found.size() != 1) {
    ADD_FAILURE() << found.size() << " findings " << code;
    return {};
  }
  EXPECT_FALSE(found[0].remedy.empty());
  EXPECT_EQ(found[0].what.find('\n'), std::string::npos);
  return found[0];
}

TEST(Findings, AreNoneOfMachinesThatAreAsBuilt) {
  for (const char* name : {"hgx", "cpu-hdr", "bond", "vm"})
    EXPECT_THAT(codes(fixture::machine(name)), IsEmpty()) << name;
}

TEST(Findings, NameARailThatIsDown) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_3").state = PortState::down;
  port(hgx, "mlx5_3").state_text = "1: DOWN";
  const Finding finding = only(hgx, "port-down");
  EXPECT_EQ(finding.severity, Severity::fault);
  EXPECT_EQ(finding.culprit, "mlx5_3");
  EXPECT_EQ(finding.what, "mlx5_3 is down (1: DOWN): 1 of 8 rails lost; it serves GPUs 2, 3");
  EXPECT_THAT(finding.remedy, HasSubstr("subnet manager"));
}

TEST(Findings, SayNothingOfAManagementPortThatIsDown) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "eno1").state = port(hgx, "mlx5_8").state = PortState::down;
  EXPECT_THAT(codes(hgx), IsEmpty());
}

TEST(Findings, NameARailThatIsSlow) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_6").rate = Rate{200e9};
  EXPECT_EQ(only(hgx, "port-slow").what, "mlx5_6 runs at 200 Gb/s of 400 Gb/s");
  for (NetworkPort& one : hgx.ports)
    if (one.rate && one.why_not.empty()) one.rate = Rate{200e9};  // all alike: that is what the fabric is
  EXPECT_THAT(codes(hgx), IsEmpty());
}

// Nothing to compare it with: what the card supports is enough.
TEST(Findings, NameAnOnlyPortThatIsSlowerThanItIsRated) {
  Machine cpu = fixture::machine("cpu-hdr");
  port(cpu, "mlx5_0").rate = Rate{100e9};
  EXPECT_THAT(codes(cpu), IsEmpty());  // nothing tells what it could
  port(cpu, "mlx5_0").rated = Rate{200e9};
  EXPECT_EQ(only(cpu, "port-slow").what, "mlx5_0 runs at 100 Gb/s of 200 Gb/s");
  port(cpu, "mlx5_0").rate = Rate{200e9};
  EXPECT_THAT(codes(cpu), IsEmpty());
}

// Cards of 400 Gb/s on switches of 200: nothing has failed, but an odd one is still found.
TEST(Findings, OnlyNoteThatNoPortRunsAtItsRating) {
  Machine hgx = fixture::machine("hgx");
  for (NetworkPort& one : hgx.ports)
    if (one.why_not.empty()) one.rate = Rate{200e9}, one.rated = Rate{400e9};
  EXPECT_EQ(only(hgx, "port-below-rating").what,
            "mlx5_0, mlx5_1 and 6 more are held to 200 Gb/s, as their like run; the cards could 400 Gb/s");
  EXPECT_THAT(codes(hgx), ElementsAre("note port-below-rating"));
  port(hgx, "mlx5_6").rate = Rate{100e9};
  EXPECT_EQ(only(hgx, "port-slow").what, "mlx5_6 runs at 100 Gb/s of 200 Gb/s");
  port(hgx, "mlx5_2").rate = Rate{400e9};  // one can: the others are slow
  EXPECT_THAT(codes(hgx), testing::SizeIs(7));
  EXPECT_THAT(codes(hgx), testing::Each("fault port-slow"));
}

TEST(Findings, NameACardThatHasTrainedNarrow) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:3c:00.0", fixture::kGen5x8);
  const Finding finding = only(hgx, "pcie-narrow");
  EXPECT_EQ(finding.severity, Severity::fault);
  EXPECT_EQ(finding.culprit, "0000:3c:00.0");
  // 32 × 8 × 128/130 = 252.06, 32 × 16 × 128/130 = 504.12
  EXPECT_EQ(finding.what,
            "0000:3c:00.0 (mlx5_3) has trained at Gen5 x8; both ends can Gen5 x16 (252 Gb/s of 504 Gb/s)");
}

TEST(Findings, SayNothingOfASlotThatCanNoMore) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:3c:00.0", fixture::kGen5x8);
  device(hgx, "0000:39:02.0").link.most = fixture::kGen5x8;
  EXPECT_THAT(codes(hgx), IsEmpty());
}

TEST(Findings, NameASwitchWhoseUplinkIsNarrowOrSlow) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:98:00.0", fixture::kGen3x16);
  EXPECT_THAT(only(hgx, "pcie-slow").what, HasSubstr("0000:98:00.0 (the switch of GPU 4, GPU 5 and 2 more)"));
  EXPECT_THAT(codes(hgx), ElementsAre("fault pcie-slow"));
}

// Drivers let the link of an idle GPU fall back to Gen1: no reason to drain a node.
TEST(Findings, OnlyNoteAGpuWhoseLinkIsSlow) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:19:00.0", fixture::kGen1x16);
  EXPECT_THAT(codes(hgx), ElementsAre("note pcie-slow"));
  fixture::train(hgx, "0000:19:00.0", {2.5, 8});
  EXPECT_THAT(codes(hgx), ElementsAre("fault pcie-narrow"));
}

TEST(Findings, SayNothingOfCardsThatAreNoPartOfTheFabric) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:5b:00.0", fixture::kGen5x8);
  fixture::train(hgx, "0000:02:00.0", {8, 1});
  EXPECT_THAT(codes(hgx), IsEmpty());
}

TEST(Findings, NameGpusThatLoseTheirNearestPorts) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_2").state = port(hgx, "mlx5_3").state = PortState::down;
  EXPECT_THAT(codes(hgx), ElementsAre("fault port-down", "fault port-down", "warning gpu-far"));
  EXPECT_EQ(findings(hgx)[2].what,
            "GPUs 2, 3 go to mlx5_0 and mlx5_1 over NODE; nearer, but down: mlx5_2 and mlx5_3 (PIX)");
}

TEST(Findings, NameNearerPortsThatTheSiteExcludes) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_2").why_not = port(hgx, "mlx5_3").why_not = "excluded by the site";
  EXPECT_EQ(
      only(hgx, "gpu-far").what,
      "GPUs 2, 3 go to mlx5_0 and mlx5_1 over NODE; nearer, but excluded by the site: mlx5_2 and mlx5_3");
  port(hgx, "mlx5_2").why_not.clear();  // as near as the other
  EXPECT_THAT(codes(hgx), IsEmpty());
}

TEST(Findings, NoteGpusWithoutAPortOnTheirSocket) {
  const Finding finding = only(fixture::machine("pcie-server"), "gpu-remote");
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_EQ(finding.culprit, "GPUs 2, 3");
  EXPECT_EQ(finding.what, "GPUs 2, 3 go to mlx5_0 and mlx5_1 over SYS: their sockets have no fabric port");
}

TEST(Findings, NameAGpuThatItsDriverHasLost) {
  Machine hgx = fixture::machine("hgx");
  hgx.gpus[5].known_to_driver = false;
  EXPECT_EQ(only(hgx, "gpu-lost").what,
            "0000:9d:00.0 is on the bus as GPU 5, and its driver does not know it");
  for (Gpu& gpu : hgx.gpus)
    gpu.known_to_driver.reset();  // no such driver here
  EXPECT_THAT(codes(hgx), IsEmpty());
}

TEST(Findings, NameGpusWithFewerNvlinks) {
  Machine hgx = fixture::machine("hgx");
  hgx.nvlinks[6].count = 17;
  EXPECT_EQ(only(hgx, "nvlink-uneven").what, "GPU 6 has 17 NVLinks, the other 7 18");
  EXPECT_EQ(only(hgx, "nvlink-uneven").severity, Severity::fault);
}

TEST(Findings, NameMissingNvlinksWhereTheModelHasThem) {
  Machine hgx = fixture::machine("hgx");
  hgx.nvlinks.clear();
  EXPECT_THAT(only(hgx, "nvlink-missing").what,
              HasSubstr("GPUs 0-7 (NVIDIA H100 80GB HBM3 SXM5) have no NVLink"));
  hgx.nvlinks_known = false;  // no source tells of them
  EXPECT_THAT(codes(hgx), IsEmpty());
  // PCIe cards have none: the PCIe server shows nothing of it (AreNone… and NoteGpus…).
  EXPECT_THAT(codes(fixture::machine("pcie-server")), ElementsAre("note gpu-remote"));
}

// NVML does not say SXM of an H100; of its PCIe and NVL cards the name does.
TEST(Findings, KnowWhichModelsComeWithNvlinks) {
  Machine hgx = fixture::machine("hgx");
  hgx.nvlinks.clear();
  const auto misses = [&](const char* model) {
    for (Gpu& gpu : hgx.gpus)
      gpu.model = model;
    return !codes(hgx).empty();
  };
  for (const char* made : {"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA H200", "NVIDIA B200"})
    EXPECT_TRUE(misses(made)) << made;
  for (const char* card : {"NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA A100 80GB PCIe", "NVIDIA L40S"})
    EXPECT_FALSE(misses(card)) << card;
}

TEST(Findings, NameGpusWhoseClocksAreHeldDown) {
  Machine hgx = fixture::machine("hgx");
  hgx.gpus[3].slowed = hgx.gpus[4].slowed = "power brake, from the power supply";
  EXPECT_EQ(only(hgx, "gpu-capped").what,
            "the clocks of GPUs 3, 4 are held down: power brake, from the power supply");
  EXPECT_EQ(only(hgx, "gpu-capped").severity, Severity::warning);
  EXPECT_THAT(findings_of(hgx, limits_of(hgx, {0, 1})), IsEmpty());  // not the job's
}

TEST(Findings, NameAPowerLimitThatOtherGpusDoNotHave) {
  Machine hgx = fixture::machine("hgx");
  for (Gpu& gpu : hgx.gpus)
    gpu.power_limit = gpu.power_default = 700;
  EXPECT_THAT(codes(hgx), IsEmpty());
  hgx.gpus[6].power_limit = 400;
  EXPECT_EQ(only(hgx, "gpu-capped").what,
            "GPU 6 may take 400 W of 700; the others of this node may take more");
  EXPECT_EQ(only(hgx, "gpu-capped").severity, Severity::warning);
  for (Gpu& gpu : hgx.gpus)
    gpu.power_limit = 600;  // the site's choice
  EXPECT_THAT(codes(hgx), ElementsAre("note gpu-capped"));
}

TEST(Findings, NameARocePortWithoutAGidThatCanBeUsed) {
  Machine bond = fixture::machine("bond");
  const std::pair<Gids, const char*> kinds[] = {{Gids::none, "fault roce-gid"},
                                                {Gids::version_1, "warning roce-gid"},
                                                {Gids::link_local, "note roce-gid"}};
  for (const auto& [gids, code] : kinds) {
    port(bond, "mlx5_bond_0").gids = gids;
    EXPECT_THAT(codes(bond), ElementsAre(code));
  }
  EXPECT_THAT(only(bond, "roce-gid").what, HasSubstr("mlx5_bond_0 has link-local GIDs alone"));
  port(bond, "mlx5_bond_0").gids = Gids::unknown;
  EXPECT_THAT(codes(bond), IsEmpty());
  port(bond, "mlx5_bond_0").gids = Gids::none;  // of a port that is down: told already
  port(bond, "mlx5_bond_0").state = PortState::down;
  EXPECT_THAT(codes(bond), ElementsAre("fault port-down"));
}

TEST(Findings, MissWhatTheSiteSaysIsThere) {
  const auto missing = [](const Machine& machine, const Expected& expected) {
    std::vector<std::string> all;
    for (const Finding& finding : findings_of(machine, limits_of(machine), expected))
      all.push_back(finding.code + " " + finding.culprit);
    return all;
  };
  Machine hgx = fixture::machine("hgx");
  EXPECT_THAT(missing(hgx, {8, 8}), IsEmpty());
  EXPECT_THAT(missing(hgx, {4, std::nullopt}), IsEmpty());  // more than it says is nothing missing
  hgx.gpus.pop_back();
  hgx.nvlinks.pop_back();
  EXPECT_THAT(missing(hgx, {}), IsEmpty());
  EXPECT_THAT(missing(hgx, {8, 8}), ElementsAre("gpus-missing 7 of 8"));
  EXPECT_THAT(missing(hgx, {std::nullopt, 9}), ElementsAre("ports-missing 8 of 9"));
  Machine bare = fixture::machine("vm");
  bare.pci.clear();
  for (NetworkPort& one : bare.ports)
    one.pci.reset();
  EXPECT_THAT(missing(bare, {8, std::nullopt}), IsEmpty());  // a container that shows no PCI
}

TEST(Findings, NameCardsThatMayNotSendAsTheyLike) {
  Machine hgx = fixture::machine("hgx");
  device(hgx, "0000:18:00.0").relaxed_ordering = true;
  device(hgx, "0000:18:00.0").max_read_request = 512;
  EXPECT_THAT(codes(hgx), IsEmpty());
  device(hgx, "0000:18:00.0").relaxed_ordering = false;
  device(hgx, "0000:18:00.0").max_read_request = 128;
  EXPECT_EQ(only(hgx, "pcie-ordering").what, "mlx5_0 may not send with relaxed ordering");
  EXPECT_EQ(only(hgx, "pcie-reads").what, "mlx5_0 reads memory in pieces of less than 512 bytes");
}

TEST(Findings, NameAMemlockThatIsTooSmallForRdma) {
  Machine cpu = fixture::machine("cpu-hdr");
  cpu.memlock_bytes = 8 << 20;  // systemd's
  EXPECT_EQ(only(cpu, "memlock").what,
            "this process may lock 8MiB in memory: RDMA registers its buffers there, and fails");
  cpu.memlock_bytes.reset();
  EXPECT_THAT(codes(cpu), IsEmpty());
  Machine vm = fixture::machine("vm");  // no RDMA: nothing to register
  vm.memlock_bytes = 8 << 20;
  EXPECT_THAT(codes(vm), IsEmpty());
}

TEST(Findings, NameRailsWhoseMtusDiffer) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_1").mtu = 2044;
  EXPECT_EQ(only(hgx, "mtu-uneven").what,
            "rails differ in their MTU: 2044 on mlx5_1, 4092 on mlx5_0, mlx5_2 and 5 more");
}

TEST(Findings, NoteRoceOverSmallFrames) {
  Machine bond = fixture::machine("bond");
  port(bond, "mlx5_bond_0").mtu = 1500;
  EXPECT_EQ(only(bond, "mtu-small").what,
            "mlx5_bond_0 carries RoCE with an MTU of 1500: its packets then hold 1024 bytes, of 4096");
  Machine vm = fixture::machine("vm");  // Ethernet of 1500 without RDMA is as it should be
  EXPECT_THAT(codes(vm), IsEmpty());
}

TEST(Findings, NameAnIommuThatTranslates) {
  Machine hgx = fixture::machine("hgx");
  device(hgx, "0000:19:00.0").translated = device(hgx, "0000:18:00.0").translated = true;
  EXPECT_EQ(only(hgx, "iommu").what,
            "the IOMMU translates what GPU 0 and mlx5_0 send: between GPU and NIC it goes by the CPU");
  Machine cpu = fixture::machine("cpu-hdr");  // without GPUs there is no way from device to device
  device(cpu, "0000:41:00.0").translated = true;
  EXPECT_THAT(codes(cpu), IsEmpty());
}

TEST(Findings, NameSwitchesWhosePortsRedirect) {
  Machine hgx = fixture::machine("hgx");
  device(hgx, "0000:17:00.0").redirects = device(hgx, "0000:17:01.0").redirects = true;
  EXPECT_THAT(only(hgx, "acs").what,
              HasSubstr("ACS is on at 2 ports of switches (0000:17:00.0 and 0000:17:01.0)"));
  hgx = fixture::machine("hgx");
  device(hgx, "0000:15:01.0").redirects = true;  // a root port: nothing between devices crosses it
  EXPECT_THAT(codes(hgx), IsEmpty());
}

TEST(Findings, AreOfTheJobsGpusOnly) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_3").state = PortState::down;
  EXPECT_THAT(findings_of(hgx, limits_of(hgx, {0, 1})), IsEmpty());
  EXPECT_THAT(findings_of(hgx, limits_of(hgx, {2})), Not(IsEmpty()));
}

TEST(Findings, ComeWorstFirst) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:19:00.0", fixture::kGen1x16);
  hgx.memlock_bytes = 65536;
  port(hgx, "mlx5_6").rate = Rate{200e9};
  EXPECT_THAT(codes(hgx), ElementsAre("fault port-slow", "warning memlock", "note pcie-slow"));
}

}  // namespace
}  // namespace netcheck::judge
