// What `netcheck topo` prints of the fixtures' machines, as an administrator reads it.
#include "picture/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"

namespace netcheck::picture {
namespace {

using fixture::port;
using testing::HasSubstr;
using testing::Not;

TEST(Heading, SaysWhatItIsAndWhereThatWasRead) {
  Machine machine = fixture::machine("pcie-server");
  machine.libraries = {{"UCX", "1.13.1"}, {"NCCL", "2.21.5"}};
  machine.notes = {"a note"};
  EXPECT_EQ(heading(machine),
            "pcie1, PCIe server: 2 sockets, 2 NUMA nodes, 16 cores, 4 GPUs, 2 fabric ports\n"
            "read from tests/fixtures/topology\n"
            "kernel 6.8.0-45-generic, firmware 28.39.1002, UCX 1.13.1, NCCL 2.21.5\n"
            "note: a note\n");
}

TEST(Tree, HasSocketsNumaNodesAndWhatHangsThere) {
  EXPECT_EQ(tree(fixture::machine("cpu-hdr")), R"(socket 0
└─ NUMA 0  8 cores, 256 GiB
   ├─ mlx5_0 (ib0)  0000:41:00.0  Gen4 x16 = 252 Gb/s  InfiniBand 200 Gb/s up MTU 4092
   └─ slot  0000:01:01.0
      ├─ eno1  0000:02:00.0  Gen2 x4 = 16 Gb/s  Ethernet 1 Gb/s up MTU 1500  [not fabric: no fabric port]
      └─ eno2  0000:02:00.1  Gen2 x4 = 16 Gb/s  Ethernet down MTU 1500  [not fabric: no fabric port]
socket 1
└─ NUMA 1  8 cores, 256 GiB
without a card
└─ lo  MTU 65536  [not fabric: no fabric port]
)");
}

TEST(Tree, MarksWhatIsWorseThanItCouldBe) {
  Machine hgx = fixture::machine("hgx");
  fixture::train(hgx, "0000:9a:00.0", fixture::kGen4x8);
  port(hgx, "mlx5_3").state = PortState::down;
  port(hgx, "mlx5_3").state_text = "1: DOWN";
  const std::string text = tree(hgx);
  EXPECT_THAT(text, HasSubstr("mlx5_4 (ib4)  0000:9a:00.0  Gen4 x8 of Gen5 x16"));
  EXPECT_THAT(text, HasSubstr("InfiniBand 400 Gb/s down (1: DOWN) MTU 4092  !\n"));
  EXPECT_THAT(text, HasSubstr("├─ switch  0000:16:00.0  Gen5 x16 = 504 Gb/s\n"));
  EXPECT_THAT(tree(fixture::machine("hgx")), Not(HasSubstr("!")));
}

TEST(Tree, ShowsADeviceOfWhichItIsNotToldWhatItIs) {
  Machine vm = fixture::machine("vm");
  vm.ports.clear();
  fixture::device(vm, "0000:00:03.0").kind = PciKind::other;
  EXPECT_THAT(tree(vm), HasSubstr("└─ device  0000:00:03.0  [of a kind that is not told]\n"));
}

TEST(Tree, ShowsWhatHasNoKnownPlace) {
  Machine vm = fixture::machine("vm");
  vm.pci[0].numa = vm.pci[0].socket = std::nullopt;
  EXPECT_THAT(tree(vm), HasSubstr("near no known NUMA node\n└─ eth0  0000:00:03.0"));
  vm.pci.clear();
  port(vm, "eth0").pci.reset();
  EXPECT_THAT(tree(vm), HasSubstr("without a card\n├─ eth0  Ethernet up MTU 1500\n"));
}

TEST(Tree, ShowsABondWithItsMembers) {
  Machine bond = fixture::machine("bond");
  port(bond, "mlx5_bond_0").pci.reset();
  EXPECT_THAT(tree(bond),
              HasSubstr("mlx5_bond_0 (bond0) = ens1f0np0 + ens1f1np1  Ethernet 200 Gb/s up MTU 9000"));
}

TEST(Tree, SaysWhatTheDriverSaysOfAGpu) {
  Machine hgx = fixture::machine("hgx");
  hgx.gpus[2].mig = true;
  hgx.gpus[2].power_limit = 400;
  hgx.gpus[2].power_default = 700;
  hgx.gpus[5].slowed = "too hot";
  EXPECT_THAT(tree(hgx), HasSubstr("NVIDIA H100 80GB HBM3 SXM5 MIG 400 W\n"));
  EXPECT_THAT(tree(hgx), HasSubstr("NVIDIA H100 80GB HBM3 SXM5 [too hot]  !\n"));
}

TEST(Tree, ShowsACardWithoutAPort) {
  Machine cpu = fixture::machine("cpu-hdr");
  std::erase_if(cpu.ports, [](const NetworkPort& one) { return one.name == "mlx5_0"; });
  fixture::device(cpu, "0000:41:00.0").driver = "vfio-pci";
  EXPECT_THAT(tree(cpu), HasSubstr("NIC  0000:41:00.0  Gen4 x16 = 252 Gb/s  [no port, driver vfio-pci]"));
}

// 64 of them are not 64 lines, nor 64 columns; one that carries the fabric is a port like any other.
TEST(Tree, FoldsFunctionsIntoTheirCard) {
  Machine cpu = fixture::machine("cpu-hdr");
  const std::string before = tree(cpu), matrix_before = matrix(cpu);
  fixture::add_functions(cpu, "0000:41:00.0", 64);
  for (NetworkPort& one : cpu.ports)
    if (one.virtual_function) one.why_not = "SR-IOV function";
  std::string text = tree(cpu);
  const std::string told = " + 64 SR-IOV functions";
  ASSERT_THAT(text, HasSubstr("InfiniBand 200 Gb/s up MTU 4092" + told + "\n"));
  text.erase(text.find(told), told.size());
  EXPECT_EQ(text, before);
  EXPECT_EQ(matrix(cpu), matrix_before);
  port(cpu, "mlx5_100").why_not.clear();
  EXPECT_THAT(tree(cpu), HasSubstr("mlx5_100 (ib100)  0000:41:01.0  Gen4 x16 = 252 Gb/s  InfiniBand"));
}

TEST(Matrix, IsThatOfNvidiaSmi) {
  EXPECT_EQ(matrix(fixture::machine("pcie-server")), R"(          GPU0  GPU1  GPU2  GPU3  mlx5_0  mlx5_1  NUMA
  GPU0    X     NODE  SYS   SYS   NODE    NODE    0
  GPU1    NODE  X     SYS   SYS   NODE    NODE    0
  GPU2    SYS   SYS   X     NODE  SYS     SYS     1
  GPU3    SYS   SYS   NODE  X     SYS     SYS     1
  mlx5_0  NODE  NODE  SYS   SYS   X       NODE    0
  mlx5_1  NODE  NODE  SYS   SYS   NODE    X       0
  NODE two host bridges of one NUMA node; SYS between NUMA nodes or sockets
)");
}

TEST(Matrix, CountsNvlinksAndShortensLongNames) {
  Machine hgx = fixture::machine("hgx");
  for (NetworkPort& one : hgx.ports)
    if (one.name.rfind("mlx5_", 0) == 0) one.name = "a_long_name_of_" + one.name;
  const std::string text = matrix(hgx);
  EXPECT_THAT(text, HasSubstr("  GPU0  X     NV18  NV18"));
  EXPECT_THAT(text, HasSubstr("NIC0 a_long_name_of_mlx5_0; NIC1"));
  EXPECT_THAT(text, HasSubstr("PIX at most one PCIe switch;"));
  EXPECT_EQ(matrix(fixture::machine("vm")), "");  // one entry: nothing to compare
}

TEST(LimitsText, HasRailsDerivationAndOperations) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_3").state = PortState::down;
  const std::string text = limits(hgx, limits_of(hgx));
  EXPECT_THAT(text, HasSubstr("  mlx5_2 (ib2)  400 Gb/s  serves GPU 2, 3\n"));
  EXPECT_THAT(text, HasSubstr("  mlx5_3 (ib3)  400 Gb/s  at present 0 Gb/s  serves GPU 2, 3\n"));
  EXPECT_THAT(text, HasSubstr("  node: 8 rails × 400 Gb/s = 3200 Gb/s\n  at present: 2800 Gb/s\n"));
  // By hand in measure_limits_test.cpp: 750 Gb/s = 93.75 GB/s.
  EXPECT_THAT(text, HasSubstr("alltoall        3600 = 450.0      750 = 93.8"));
  const Machine vm = fixture::machine("vm");
  EXPECT_EQ(limits(vm, limits_of(vm)), "  eth0  unknown\n  node: unknown: nothing says how fast eth0 is\n");
}

TEST(FindingsText, HasSeverityCodeAndRemedy) {
  EXPECT_EQ(findings({}), "  none\n");
  EXPECT_EQ(
      findings({{judge::Severity::fault, "port-down", "mlx5_3", "mlx5_3 is down", "look at its cable"}}),
      "  fault    port-down: mlx5_3 is down\n           → look at its cable\n");
}

TEST(Svg, DrawsEveryGpuAndPort) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_3").state = PortState::down;
  const Limits limits = limits_of(hgx);
  const std::string drawing = svg(hgx, limits, judge::findings_of(hgx, limits));
  for (const char* what : {"GPU 7", "mlx5_0 (ib0)", "switch  0000:16:00.0", "socket 1", "8 rails × 400 Gb/s",
                           "fault: mlx5_3 is down", "Gen5 x16 = 504 Gb/s"})
    EXPECT_THAT(drawing, HasSubstr(what));
  EXPECT_THAT(drawing, testing::StartsWith("<svg "));
  EXPECT_THAT(drawing, testing::EndsWith("</svg>\n"));
}

// Names come from whoever made the recording.
TEST(Svg, EscapesNames) {
  Machine hgx = fixture::machine("hgx");
  hgx.gpus[0].model = "<script>alert(\"&\")</script>";
  const Limits limits = limits_of(hgx);
  const std::string drawing = svg(hgx, limits, {});
  EXPECT_THAT(drawing, Not(HasSubstr("<script")));
  EXPECT_THAT(drawing, HasSubstr("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"));
}

TEST(JsonOfAll, HasMachineMatrixLimitsAndFindings) {
  Machine hgx = fixture::machine("hgx");
  port(hgx, "mlx5_3").state = PortState::down;
  const Limits limits = limits_of(hgx);
  const Json json = as_json(hgx, limits, judge::findings_of(hgx, limits));
  EXPECT_EQ(machine_from_json(json["machine"]), hgx);
  EXPECT_EQ(json["matrix"][0]["gpus"][1], "NV18");
  EXPECT_EQ(json["matrix"][0]["ports"]["mlx5_4"], "SYS");
  EXPECT_EQ(json["limits"]["nominal_bits_per_second"], 3.2e12);
  EXPECT_EQ(json["limits"]["present_bits_per_second"], 2.8e12);
  EXPECT_EQ(json["findings"][0]["code"], "port-down");
}

}  // namespace
}  // namespace netcheck::picture
