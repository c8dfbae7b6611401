// Recorded machines: hwloc's XML, NCCL's, our own, and what is none of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/wire.h"
#include "machines.h"
#include "measure/locality.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {
namespace {

using fixture::device;
using fixture::port;
using testing::AllOf;
using testing::HasSubstr;

Machine parse(const std::string& text) {
  auto machine = parse_recording(text, "a file");
  if (!machine) {
    ADD_FAILURE() << describe(machine.error());
    return {};
  }
  return *machine;
}

std::string refusal(std::string_view text) {
  const auto machine = parse_recording(text, "a file");
  if (machine) return "accepted";
  const std::string line = describe(machine.error());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_THAT(line, testing::StartsWith("read a file: "));
  return line;
}

std::string distance(const Machine& machine, const std::string& from, const std::string& to) {
  return name_of(distance_between(machine, fixture::index_of(machine, from), fixture::index_of(machine, to)));
}

TEST(HwlocXml, IsReadWithItsGpusPortsAndNvLinks) {
  Machine machine = parse(fixture::text_of("two-sockets.hwloc.xml"));
  EXPECT_EQ(machine.node, "two1");
  EXPECT_EQ(machine.product, "two sockets");
  ASSERT_EQ(machine.numa.size(), 2u);
  EXPECT_EQ(machine.numa[1].socket, 1);
  EXPECT_EQ(machine.numa[1].cores, 1u);
  EXPECT_EQ(machine.numa[1].memory_bytes, 16ULL << 30);
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.gpus[0].model, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(machine.gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000000");
  ASSERT_EQ(machine.ports.size(), 1u);
  EXPECT_EQ(machine.ports[0].name, "mlx5_0");
  EXPECT_EQ(machine.ports[0].interface, "ib0");
  EXPECT_EQ(machine.ports[0].link_layer, "InfiniBand");
  EXPECT_EQ(machine.ports[0].state, PortState::up);
  EXPECT_EQ(nvlinks_between(machine, 0, 1), 12u);  // 300000 MB/s of 25000 each
  EXPECT_EQ(distance(machine, "0000:13:00.0", "0000:14:00.0"), "PIX");
  EXPECT_EQ(distance(machine, "0000:13:00.0", "0000:81:00.0"), "SYS");
}

TEST(HwlocXml, KeepsTheRateWhereSpeedAndWidthAreOne) {
  const Machine machine = parse(fixture::text_of("two-sockets.hwloc.xml"));
  const auto hop = link_above(machine, fixture::index_of(machine, "0000:13:00.0"));
  ASSERT_TRUE(hop && hop->now && hop->most);
  EXPECT_NEAR(hop->now->bits_per_second / 1e9, 252.06, 0.01);  // 31.507692 GB/s × 8
}

TEST(HwlocXml, OfAPortThatIsDown) {
  std::string text = fixture::text_of("two-sockets.hwloc.xml");
  const std::string active = R"(name="Port1State" value="4")";
  text.replace(text.find(active), active.size(), R"(name="Port1State" value="1")");
  Machine machine = parse(text);
  EXPECT_EQ(port(machine, "mlx5_0").state, PortState::down);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  EXPECT_NE(text.find(what), std::string::npos) << what;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// As on POWER8 and 9: each GPU has 40 GB/s to its own processor, and that is no switch that others are
// behind.
TEST(HwlocXml, TakesNoProcessorForAnNvSwitch) {
  std::string text = fixture::text_of("two-sockets.hwloc.xml");
  const std::size_t start = text.find("<distances2hetero");
  text.replace(start, text.find("</distances2hetero>") - start,
               R"(<distances2hetero nbobjs="4" kind="25" name="NVLinkBandwidth">
    <indexes length="38">OSDev:15 OSDev:23 Package:2 Package:6 </indexes>
    <u64values length="48">0 0 50000 0 0 0 0 50000 50000 0 0 0 0 50000 0 0 </u64values>
  )");
  const Machine machine = parse(text);
  EXPECT_TRUE(machine.nvlinks_known);
  EXPECT_EQ(nvlinks_between(machine, 0, 1), 0u);
  EXPECT_TRUE(machine.nvlinks.empty());
}

// As with sub-NUMA clusters, where a node, a cache and a host bridge belong to the same processors.
TEST(HwlocXml, KnowsTheProcessorsOfNodesThatHangAtCaches) {
  const std::string cache = R"(type="L3Cache" cache_size="1048576" depth="3" cache_linesize="64" )"
                            R"(cache_associativity="16" cache_type="0")";
  std::string text = fixture::text_of("two-sockets.hwloc.xml");
  for (const char* package : {R"(type="Package" os_index="0")", R"(type="Package" os_index="1")"})
    text = replaced(text, package, cache);
  const Machine machine = parse(text);
  ASSERT_EQ(machine.numa.size(), 2u);
  EXPECT_EQ(machine.numa[0].cores, 1u);
  EXPECT_EQ(machine.numa[1].cores, 1u);
  EXPECT_EQ(host_bridge_of(machine, machine.gpus[0].pci).numa, 0);
  EXPECT_EQ(host_bridge_of(machine, machine.gpus[1].pci).numa, 1);
}

// HBM beside the DDR of a processor: hwloc gives both nodes the same processors, Linux the first alone.
TEST(HwlocXml, LeavesOutNodesOfMemoryAlone) {
  std::string text =
      replaced(fixture::text_of("two-sockets.hwloc.xml"), "nodeset=\"0x00000001\"", "nodeset=\"0x00000005\"");
  text = replaced(text, "nodeset=\"0x00000003\"", "nodeset=\"0x00000007\"");
  const std::size_t start = text.find("<object type=\"NUMANode\" os_index=\"0\""),
                    end = text.find("/>", start) + 2;
  const std::string own = replaced(text.substr(start, end - start), "0x00000005", "0x00000001");
  std::string memory = replaced(own, "nodeset=\"0x00000001\"", "nodeset=\"0x00000004\"");
  memory =
      replaced(replaced(memory, "os_index=\"0\"", "os_index=\"2\""), "gp_index=\"3\"", "gp_index=\"99\"");
  text.replace(start, end - start, memory + own);
  const Machine machine = parse(text);
  ASSERT_EQ(machine.numa.size(), 2u);
  EXPECT_EQ(machine.numa[0].index, 0);
  EXPECT_EQ(machine.numa[0].cores, 1u);
  EXPECT_EQ(machine.numa[1].index, 1);
  EXPECT_EQ(host_bridge_of(machine, machine.gpus[0].pci).numa, 0);
}

TEST(HwlocXml, OfAnOldHwlocHasAPortForEachLid) {
  std::string text =
      replaced(fixture::text_of("two-sockets.hwloc.xml"), R"(<info name="Port1State" value="4"/>)",
               R"(<info name="Port1LID" value="0x3"/><info name="Port2LID" value="0x0"/>)");
  text = replaced(text, R"(<object type="OSDev" gp_index="19")",
                  R"(<object type="OSDev" gp_index="98" name="ib1" osdev_type="2">
      <info name="Port" value="2"/></object><object type="OSDev" gp_index="19")");
  Machine machine = parse(text);
  ASSERT_EQ(machine.ports.size(), 2u);
  EXPECT_EQ(port(machine, "mlx5_0").interface, "ib0");
  EXPECT_EQ(port(machine, "mlx5_0:2").interface, "ib1");
  EXPECT_EQ(port(machine, "mlx5_0:2").state, PortState::unknown);
}

// A card with a port of each kind, of a recording that numbers neither.
TEST(HwlocXml, GivesAnRdmaPortTheInfiniBandInterfaceOfItsCard) {
  std::string text =
      replaced(fixture::text_of("two-sockets.hwloc.xml"), R"(<info name="Port1State" value="4"/>)", "");
  text = replaced(text, R"(<object type="OSDev" gp_index="18")",
                  R"(<object type="OSDev" gp_index="98" name="eth2" osdev_type="2">
      <info name="Address" value="02:00:00:00:00:01"/></object><object type="OSDev" gp_index="18")");
  Machine machine = parse(text);
  EXPECT_EQ(port(machine, "mlx5_0").interface, "ib0");
  EXPECT_EQ(port(machine, "eth2").rdma_device, "");
}

// hwloc 1 has another root and PCI below NUMA nodes.
TEST(HwlocXml, OfHwloc1IsReadWithANote) {
  const Machine machine = parse(R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc.dtd">
<topology>
  <object type="Machine" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" online_cpuset="0x00000001" allowed_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" allowed_nodeset="0x00000001">
    <object type="NUMANode" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" online_cpuset="0x00000001" allowed_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" allowed_nodeset="0x00000001" local_memory="1073741824">
      <object type="Socket" os_index="3" cpuset="0x00000001" complete_cpuset="0x00000001" online_cpuset="0x00000001" allowed_cpuset="0x00000001">
        <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" online_cpuset="0x00000001" allowed_cpuset="0x00000001"/>
      </object>
      <object type="Bridge" os_index="0" bridge_type="0-1" depth="0" bridge_pci="0000:[00-01]">
        <object type="PCIDev" os_index="4096" pci_busid="0000:01:00.0" pci_type="0302 [10de:1db1] [10de:1212] a1" pci_link_speed="0.000000"/>
      </object>
    </object>
  </object>
</topology>
)");
  ASSERT_EQ(machine.gpus.size(), 1u);
  EXPECT_EQ(host_bridge_of(machine, machine.gpus[0].pci).numa, 0);
  ASSERT_EQ(machine.numa.size(), 1u);
  EXPECT_EQ(machine.numa[0].socket, 3);
  ASSERT_EQ(machine.notes.size(), 1u);
  EXPECT_THAT(machine.notes[0], HasSubstr("hwloc 1"));
}

TEST(HwlocXml, OfANewerFormatSaysWhatReadsIt) {
  std::string text = fixture::text_of("two-sockets.hwloc.xml");
  text.replace(text.find("version=\"2.0\""), 13, "version=\"3.0\"");
  EXPECT_THAT(refusal(text),
              AllOf(HasSubstr("format 3.0"), HasSubstr("has hwloc 2"), HasSubstr("hwloc 3 or newer")));
  text.replace(text.find("version=\"3.0\""), 13, "version=\"x.y\"");
  EXPECT_THAT(refusal(text), HasSubstr("'x.y'"));
}

// At whatever byte it ends: one line, and never a crash.
TEST(HwlocXml, CutOffAnywhereIsRefusedInOneLine) {
  const std::string text = fixture::text_of("two-sockets.hwloc.xml");
  const std::size_t end = text.rfind("</topology>");
  for (std::size_t length = 1; length < end; length += 7)
    EXPECT_NE(refusal(std::string_view(text).substr(0, length)), "accepted") << length;
  EXPECT_THAT(refusal(std::string_view(text).substr(0, 4000)), HasSubstr("cut off: it ends in line"));
}

TEST(HwlocXml, WithANonsenseInItIsRefused) {
  std::string text = fixture::text_of("two-sockets.hwloc.xml");
  const std::string type = R"(type="Package")";
  text.replace(text.find(type), type.size(), R"(type="Parcel!!")");
  EXPECT_THAT(refusal(text), HasSubstr("hwloc does not accept it"));
}

// hwloc itself would end the process there.
TEST(HwlocXml, WithObjectsThatLackTheirSetsIsRefused) {
  const std::string good = fixture::text_of("two-sockets.hwloc.xml");
  for (const char* set : {" cpuset=", " complete_cpuset=", " nodeset=", " complete_nodeset="}) {
    for (std::size_t at = 0; (at = good.find(set, at)) != std::string::npos; ++at) {
      std::string text = good;
      text[at + 1] = 'x';
      EXPECT_THAT(refusal(text), HasSubstr(" has no "));
    }
  }
  std::string text = good;
  text.replace(text.find("0x00000001"), 10, "nonsense!!");
  EXPECT_NE(refusal(text), "accepted");
}

TEST(HwlocXml, NestedTooDeepIsRefusedBeforeHwlocSeesIt) {
  std::string text = "<topology version=\"2.0\">";
  for (int i = 0; i < 200'000; ++i)
    text += "<object type=\"Group\">";
  for (int i = 0; i < 200'000; ++i)
    text += "</object>";
  EXPECT_THAT(refusal(text + "</topology>"), HasSubstr("deeper than"));
}

TEST(NcclXml, IsReadWithSwitchesGpusPortsAndNvLinks) {
  Machine machine = parse(fixture::text_of("cloud.nccl.xml"));
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.pci[machine.gpus[0].pci].address, "0001:00:00.0");  // dev="0", though second in the file
  EXPECT_EQ(distance(machine, "0001:00:00.0", "0101:00:00.0"), "PIX");
  EXPECT_EQ(nvlinks_between(machine, 0, 1), 12u);
  EXPECT_EQ(nvlinks_of(machine, 0).count, 12u);  // those to a GPU that the file does not have are no one's
  EXPECT_EQ(port(machine, "mlx5_0").rate, Rate{200e9});
  EXPECT_EQ(device(machine, "0101:00:00.0").link.most, (PciSpeed{16, 8}));
  EXPECT_FALSE(device(machine, "0102:00:00.0").link.most);  // "Unknown"
  EXPECT_FALSE(port(machine, "0102:00:00.0").rate);
}

// RCCL's: another version, xGMI for NVLink, and the number of compute units for sm.
TEST(NcclXml, OfRcclIsReadWithoutItsXgmi) {
  const Machine machine = parse(R"(<system version="2"><cpu numaid="0">
<pci busid="0000:05:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="32.0 GT/s PCIe" link_width="16">
<pci busid="0000:0c:00.0" class="0x120000" vendor="0x1002" device="0x74a1" link_speed="32.0 GT/s PCIe" link_width="16">
<gpu dev="0" sm="304" gcn="gfx942" rank="0" gdr="1"><xgmi target="0000:15:00.0" count="1" tclass="0x120000"/></gpu></pci>
<pci busid="0000:07:00.0" class="0x020700" vendor="0x15b3" device="0x1021" link_speed="32.0 GT/s PCIe" link_width="16">
<nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" gdr="1"/></nic></pci></pci></cpu></system>)");
  ASSERT_EQ(machine.gpus.size(), 1u);
  EXPECT_EQ(distance(machine, "0000:0c:00.0", "0000:07:00.0"), "PIX");
  EXPECT_FALSE(machine.nvlinks_known);
  ASSERT_EQ(machine.notes.size(), 2u);
  EXPECT_THAT(machine.notes[1], HasSubstr("AMD"));
}

// As a cloud ships it: NCCL finds out on the machine itself what hangs there.
TEST(NcclXml, KeepsDevicesOfWhichItDoesNotSayWhatTheyAre) {
  const Machine machine = parse(R"(<system version="1"><cpu numaid="0"><pci busid="0000:00:16.0"/></cpu>
<cpu numaid="1"><pci busid="ffff:ff:01.0"><pci busid="0000:00:1A.0"/><pci busid="0000:00:1b.0"/></pci></cpu></system>)");
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_EQ(distance(machine, "0000:00:1a.0", "0000:00:1b.0"), "PIX");
  EXPECT_EQ(distance(machine, "0000:00:1a.0", "0000:00:16.0"), "SYS");
  ASSERT_EQ(machine.notes.size(), 2u);
  EXPECT_THAT(machine.notes[1], HasSubstr("what 3 of the file's devices are"));
}

TEST(NcclXml, LinksOfAGpuToItselfSayNothing) {
  const std::string text = fixture::text_of("cloud.nccl.xml");
  const Machine machine =
      parse(replaced(replaced(replaced(text, "target=\"0001:00:00.0\"", "target=\"swap\""),
                              "target=\"0002:00:00.0\"", "target=\"0001:00:00.0\""),
                     "target=\"swap\"", "target=\"0002:00:00.0\""));
  EXPECT_TRUE(machine.nvlinks.empty());
}

TEST(NcclXml, OfSocketsHasInterfacesWithoutRdma) {
  Machine machine = parse(R"(<system version="1"><cpu numaid="0">
<nic><net name="eth0" dev="0" speed="100000" port="0" guid="0x0" gdr="0"/></nic></cpu></system>)");
  EXPECT_EQ(port(machine, "eth0").interface, "eth0");
  EXPECT_EQ(port(machine, "eth0").rdma_device, "");
}

// On Grace a GPU's PCI link is for its registers; its data go by 8 links of 43125 MB/s here: 2760 Gb/s.
TEST(NcclXml, OfGraceHasItsGpusAtTheirC2c) {
  const Machine machine = parse(R"(<system version="1"><cpu numaid="0" arch="arm64">
<pci busid="000f:01:00.0" class="0x030200" link_speed="2.5 GT/s PCIe" link_width="16">
<gpu dev="0" sm="121" gdr="0"><c2c bw="43125" count="8"/></gpu></pci></cpu></system>)");
  const auto hop = link_above(machine, machine.gpus.at(0).pci);
  ASSERT_TRUE(hop && hop->most);
  EXPECT_NEAR(hop->most->bits_per_second / 1e9, 2760, 1e-6);
}

// A virtual machine whose bridges are QEMU's: what they say of their links is of no link.
TEST(NcclXml, OfAGuestKnowsNoLinkOfAnEmulatedSwitch) {
  const Machine machine = parse(R"(<system version="1"><cpu numaid="0">
<pci busid="0000:a1:00.0" class="0x060400" vendor="0x104c" device="0x8232" link_speed="2.5 GT/s PCIe" link_width="1">
<pci busid="0000:a4:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"/>
</pci></cpu></system>)");
  EXPECT_FALSE(link_above(machine, fixture::index_of(machine, "0000:a1:00.0")));
  EXPECT_TRUE(link_above(machine, fixture::index_of(machine, "0000:a4:00.0")));
}

TEST(NcclXml, TakesNoNumberThatMeansNothing) {
  Machine machine = parse(R"(<system version="1"><cpu numaid="4294967295">
<pci busid="0000:07:00.0" class="0x020700"><nic><net name="mlx5_0" speed="4294967295" port="1"/></nic></pci></cpu>
<cpu numaid="1"/><cpu numaid="1"/></system>)");
  EXPECT_FALSE(port(machine, "mlx5_0").rate);
  EXPECT_FALSE(machine.pci[0].numa);
  EXPECT_EQ(machine.numa.size(), 1u);
}

// One file of all hosts whose GPUs share NVLinks; their addresses are the same.
TEST(NcclXml, OfSeveralHostsIsTheFirst) {
  const auto host = [](const std::string& hash) {
    return "<cpu host_hash=\"" + hash +
           R"(" numaid="0"><pci busid="0008:01:00.0" class="0x030200" )"
           R"(vendor="0x10de" device="0x2941"><gpu dev="0" sm="100"><nvlink target="ffff:ff:ff" count="18" )"
           R"(tclass="0x068000"/></gpu></pci></cpu>)";
  };
  const Machine machine = parse("<system version=\"1\">" + host("0xa") + host("0xb") + "</system>");
  ASSERT_EQ(machine.gpus.size(), 1u);
  EXPECT_EQ(nvlinks_of(machine, 0).count, 18u);
  EXPECT_THAT(machine.notes.back(), HasSubstr("2 hosts"));
}

// NVIDIA's data sheets, both ways: A40 and RTX A6000 112.5 GB/s of four links; A100 600 of twelve.
TEST(NvlinkRate, OfGa102IsLess) {
  EXPECT_EQ(nvlink_rate(0x2235), Rate{112.5e9});
  EXPECT_EQ(nvlink_rate(0x20b0), Rate{200e9});
  const Machine machine = parse(replaced(
      replaced(fixture::text_of("cloud.nccl.xml"), "sm=\"80\"", "sm=\"86\""), "count=\"12\"", "count=\"4\""));
  EXPECT_EQ(nvlinks_of(machine, 0).rate, Rate{450e9});  // 56.25 GB/s one way
}

// hwloc reckons with 25 GB/s of every link: 100000 MB/s are four.
TEST(NvlinkRate, OfHwlocsMatrixIsThatOfItsLinks) {
  std::string text = replaced(fixture::text_of("two-sockets.hwloc.xml"), "[10de:20b2]", "[10de:2235]");
  const Machine machine = parse(replaced(text, "0 300000 300000 0", "0 100000 100000 0"));
  EXPECT_EQ(nvlinks_between(machine, 0, 1), 4u);
  EXPECT_EQ(nvlinks_of(machine, 0).rate, Rate{450e9});
}

TEST(NcclXml, OfAnotherVersionIsRefused) {
  std::string text = fixture::text_of("cloud.nccl.xml");
  text.replace(text.find("version=\"1\""), 11, "version=\"7\"");
  EXPECT_THAT(refusal(text), HasSubstr("version '7'"));
  EXPECT_THAT(refusal("<system version=\"1\"></system>"), HasSubstr("no <cpu>"));
}

TEST(Saved, IsReadBack) {
  const Machine machine = fixture::recorded("hgx");
  Machine found = parse(to_json(machine).dump());
  EXPECT_EQ(found.source, "a file");
  found.source = machine.source;
  EXPECT_EQ(found, machine);
}

TEST(Recording, OfNoKnownKindSaysWhatIsWanted) {
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("it is empty"), HasSubstr("lstopo")));
  EXPECT_THAT(refusal("#!/bin/sh\n"), HasSubstr("neither XML nor JSON"));
  EXPECT_THAT(refusal("<html><body>404</body></html>"), HasSubstr("XML of another kind: <html>"));
  EXPECT_THAT(refusal("<a><b></a></b>\n<c/>"), HasSubstr("no XML"));
  EXPECT_THAT(refusal("{\"a\": 1}"), HasSubstr("no recording of netcheck topo --save"));
  EXPECT_THAT(refusal("{\"netcheck_machine\": 9}"), HasSubstr("format 9"));
  EXPECT_THAT(refusal("{\"netcheck_machine\": 1, \"numa\": ["), HasSubstr("no JSON"));
  EXPECT_THAT(refusal(std::string("<\0\0\0", 4)), HasSubstr("read a file"));
}

TEST(Recording, LargerThanAnyMachineIsNotRead) {
  const std::string path = testing::TempDir() + "large.xml";
  std::ofstream(path) << "<topology version=\"2.0\">" << std::string(50U << 20, ' ');
  const auto machine = read_recording(path);
  ASSERT_FALSE(machine);
  EXPECT_THAT(describe(machine.error()), HasSubstr("larger than 16 MiB"));
  std::filesystem::remove(path);
}

TEST(Recording, MustBeARegularFile) {
  EXPECT_THAT(describe(read_recording("/dev/zero").error()), HasSubstr("no regular file"));
  EXPECT_THAT(describe(read_recording("/").error()), HasSubstr("no regular file"));
  EXPECT_THAT(describe(read_recording("/nonexistent.xml").error()), HasSubstr("No such file"));
}

TEST(ParsePciSpeed, TakesOnlyWhatPciExpressHas) {
  EXPECT_EQ(parse_pci_speed("16.0 GT/s PCIe", "8"), (PciSpeed{16, 8}));
  EXPECT_EQ(parse_pci_speed("2.5 GT/s", "1"), (PciSpeed{2.5, 1}));
  for (const char* speed :
       {"Unknown", "Unknown speed", "", "0 GT/s", "-8 GT/s", "1e9 GT/s", "16", "nan GT/s"})
    EXPECT_FALSE(parse_pci_speed(speed, "8")) << speed;
  for (const char* width : {"0", "255", "63", "", "x8", "-1"})
    EXPECT_FALSE(parse_pci_speed("8 GT/s", width)) << width;
}

TEST(IsGpu, GoesByClassAndVendor) {
  EXPECT_TRUE(is_gpu(0x10de, 0x0302));
  EXPECT_TRUE(is_gpu(0x10de, 0x0300));
  EXPECT_TRUE(is_gpu(0x1002, 0x0380));
  EXPECT_TRUE(is_gpu(0x1002, 0x1200));
  EXPECT_FALSE(is_gpu(0x1002, 0x0300));  // a console's
  EXPECT_FALSE(is_gpu(0x1a03, 0x0300));
  EXPECT_FALSE(is_gpu(0x10de, 0x0403));  // the audio function of one
}

}  // namespace
}  // namespace netcheck::topology
