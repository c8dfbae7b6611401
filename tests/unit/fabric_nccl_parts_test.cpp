// Parts of the NCCL module by themselves: what it reads from NCCL's log and unique id, cards, versions, the
// kernels' text.
#ifdef NETCHECK_TEST_NCCL  // built with the NCCL module
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "contract/nccl_version.h"
#include "contract/wire.h"
#include "fabric/nccl/card.h"
#include "fabric/nccl/gpu_names.h"
#include "fabric/nccl/kernels.h"
#include "fabric/nccl/library.h"
#include "fabric/nccl/terms.h"
#include "fabric/nccl/transports.h"
#include "own_tree.h"
#include "ptx.h"

namespace netcheck::fabric::nccl {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NcclInit, SaysWhatItWasSpentOn) {
  const std::string one =
      "a:1:9 [0] NCCL INFO Init timings - ncclCommInitRankConfig: rank 0 nranks 8 total 1.35 (kernels 0.90, "
      "alloc "
      "0.05, bootstrap 0.02, allgathers 0.01, topo 0.03, graphs 0.00, connections 0.30, rest 0.04)\n";
  const std::string other =
      "a:1:9 [1] NCCL INFO Init timings - ncclCommInitRankConfig: rank 1 nranks 8 total 1.20 (kernels 0.95, "
      "rest "
      "0.25)\n";
  const auto parts = init_parts_in(one + other);
  EXPECT_EQ(parts.size(), 9U);
  EXPECT_EQ(parts.at("total"), milliseconds(1'350));
  EXPECT_EQ(parts.at("kernels"), milliseconds(950));  // the longest of any rank
  EXPECT_EQ(parts.at("rest"), milliseconds(250));
  EXPECT_EQ(init_parts_in(one + other, one.size()).at("total"), milliseconds(1'200));
  EXPECT_THAT(init_parts_in(
                  "a:1:9 [0] NCCL INFO Init timings - x: rank 0 nranks 2 total nan (kernels -1, a/b 1, c)\n"),
              IsEmpty());
  EXPECT_THAT(init_parts_in(""), IsEmpty());
}

// --- the log: lines as NCCL 2.18 to 2.28 write them -------------------------------------------------------

TEST(NcclTransports, InfinibandWithGpuDirect) {
  EXPECT_THAT(
      transports_in("a:1:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB "
                    "eth0:10.1.0.7<0>\n"
                    "a:1:9 [0] NCCL INFO Using network IB\n"
                    "a:1:9 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [receive] via NET/IB/0/GDRDMA\n"
                    "a:1:9 [0] NCCL INFO Channel 01/0 : 7[7] -> 8[0] [receive] via NET/IB/0/GDRDMA\n"
                    "a:1:9 [1] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [send] via NET/IB/1(9)/GDRDMA/Shared\n"
                    "a:1:9 [1] NCCL INFO Channel 00/0 : 8[0] -> 9[1] via P2P/CUMEM/read\n"),
      ElementsAre("IB/mlx5_0+GDR", "IB/mlx5_1+GDR", "P2P/CUMEM"));
}

TEST(NcclTransports, RoceWithoutGpuDirect) {
  EXPECT_THAT(transports_in("a:1:9 [0] NCCL INFO NET/IB : Using [0]mlx5_2:1/RoCE [RO]; OOB eth0:10.1.0.7<0>\n"
                            "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"),
              ElementsAre("RoCE/mlx5_2"));
}

TEST(NcclTransports, MergedPortsAndSwitchesThatReduce) {
  EXPECT_THAT(transports_in("a:1:9 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} "
                            "[1]mlx5_4:1/IB/SHARP [RO]; OOB eth0:10.1.0.7<0>\n"
                            "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
                            "a:1:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/1/GDRDMA\n"
                            "a:1:9 [0] NCCL INFO CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA\n"),
              ElementsAre("IB/mlx5_0+mlx5_1+GDR", "IB/mlx5_4+GDR", "CollNet"));
}

TEST(NcclTransports, Sockets) {
  EXPECT_THAT(transports_in("a:1:9 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.7<0> [1]eth1:10.2.0.7<0>\n"
                            "a:1:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/1\n"),
              ElementsAre("Socket/eth1"));
}

TEST(NcclTransports, Plugins) {
  EXPECT_THAT(
      transports_in("a:1:9 [3] NCCL INFO Channel 03 : 7[a01d0] -> 14[a01c0] [receive] via NET/AWS "
                    "Libfabric/3/GDRDMA\n"
                    "a:1:9 [6] NCCL INFO Channel 00/0 : 6[6] -> 38[6] [receive] via NET/IBext_v8/1\n"),
      ElementsAre("AWS Libfabric/3+GDR", "IBext_v8/1"));
}

TEST(NcclTransports, InsideANode) {
  EXPECT_THAT(transports_in(
                  "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n"
                  "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[2] via P2P/indirect/1[1]\n"
                  "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 3[3] via P2P/IPC/read\n"
                  "a:1:9 [0] NCCL INFO Channel 00 : 0[0] -> 4[4] via SHM/direct/direct\n"
                  "a:1:9 [0] NCCL INFO NVLS comm 0x55d0 headRank 0 nHeads 8 nvlsRanks 8 buffSize 1048576\n"),
              ElementsAre("P2P/direct", "P2P/indirect", "P2P/IPC", "SHM", "NVLS"));
}

TEST(NcclTransports, OnlyWhatCameSince) {
  const std::string before =
      "a:1:9 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.7<0>\n"
      "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n";
  const std::string since = "a:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] [send] via NET/Socket/0\n";
  EXPECT_THAT(transports_in(before + since, before.size()), ElementsAre("Socket/eth0"));
}

TEST(NcclTransports, OddLinesAreNoWays) {
  for (const std::string line :
       {"", "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via ", "NCCL INFO Channel via NET/",
        "NCCL INFO NET/ : Using [", "NCCL INFO NET/IB : Using [0]={", "NCCL INFO Channel 00/02 : 0 1 2 3",
        "NCCL WARN x via P2P/IPC", "NCCL INFO Connected all rings, use ring PXN 0 GDR 1"})
    EXPECT_THAT(transports_in(line + "\n" + line), testing::AnyOf(IsEmpty(), ElementsAre("NET"))) << line;
  EXPECT_THAT(transports_in("x NCCL INFO Channel 0 : 0[0] -> 1[0] [send] via NET/IB/99999999999999999999\n"),
              ElementsAre("IB/9999"));
}

// --- the unique id and cards ------------------------------------------------------------------------------

template <typename Address>
NcclId id_with(const Address& address) {
  NcclId id{};
  std::memcpy(&id.bytes[8], &address, sizeof address);
  return id;
}

TEST(NcclBootstrap, IsReadFromTheUniqueId) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(34567);
  ::inet_pton(AF_INET, "10.1.0.7", &four.sin_addr);
  EXPECT_EQ(bootstrap_of(id_with(four)).address, "10.1.0.7:34567");
  EXPECT_FALSE(bootstrap_of(id_with(four)).loopback);
  ::inet_pton(AF_INET, "127.3.0.1", &four.sin_addr);
  EXPECT_TRUE(bootstrap_of(id_with(four)).loopback);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(1);
  six.sin6_addr = in6addr_loopback;
  EXPECT_EQ(bootstrap_of(id_with(six)).address, "[::1]:1");
  EXPECT_TRUE(bootstrap_of(id_with(six)).loopback);
  EXPECT_EQ(bootstrap_of(NcclId{}).address, "") << "kept in another way";
}

TEST(NcclCard, ComesBackAsItWent) {
  Card card{"2.28.9", NcclId{}, {Address{1, 2, 3}}};
  card.id->bytes[5] = 'x';
  const auto first = decode_card(encode(card), "node 0");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->version, "2.28.9");
  ASSERT_TRUE(first->id);
  EXPECT_EQ(first->id->bytes, card.id->bytes);
  EXPECT_EQ(first->sources, card.sources);
  card.id.reset();
  const auto other = decode_card(encode(card), "node 1");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->id);
}

TEST(NcclCard, AnythingElseIsRefused) {
  for (const Json& card :
       {Json(1), Json{{"version", "2"}}, Json{{"version", "2"}, {"id", "x"}, {"sources", Json::array()}},
        Json{{"version", "2"}, {"id", Json::binary({1, 2})}, {"sources", Json::array()}},
        Json{{"version", "2"}, {"id", Json::binary({})}, {"sources", Json::array({Json::binary({1})})}}}) {
    const auto decoded = decode_card(to_cbor(card), "node 3");
    ASSERT_FALSE(decoded) << card.dump();
    EXPECT_THAT(describe(decoded.error()), HasSubstr("node 3"));
  }
}

TEST(NcclGpuNames, AreReadAsSlurmAndNvmlWriteThem) {
  EXPECT_EQ(number_of("gpu:0"), 0u);
  EXPECT_EQ(number_of("gpu:15"), 15u);
  for (const char* other :
       {"gpu:", "gpu:x", "gpu:1x", "gpu:-1", "gpu: 1", "gpu:99999999999", "0000:1b:00.0", ""})
    EXPECT_EQ(number_of(other), std::nullopt) << other;
  EXPECT_EQ(short_bus_id("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(short_bus_id("00010000:C1:00.0"), "10000:c1:00.0");  // a domain that needs five
  EXPECT_EQ(short_bus_id("0000:1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(short_bus_id("000000001b"), "000000001b");
}

TEST(NcclGpuNames, AreFoundWithTheDriverWhereNvmlIsNot) {
  EXPECT_EQ(minor_in("Model: \t\t NVIDIA H200\nIRQ:   \t\t 70\nDevice Minor: \t 12\n"), 12u);
  EXPECT_EQ(minor_in("Model: \t\t NVIDIA H200\n"), std::nullopt);
  EXPECT_EQ(minor_in("Device Minor: none"), std::nullopt);
  std::string pattern = (std::filesystem::temp_directory_path() / "gpus-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  for (const auto& [bus, minor] : {std::pair("0000:1b:00.0", "1"), std::pair("0000:C1:00.0", "0")}) {
    std::filesystem::create_directory(folder / bus);
    std::ofstream(folder / bus / "information")
        << "Model: \t\t NVIDIA H200\nDevice Minor: \t " << minor << "\n";
  }
  Settings settings;
  settings.watcher = "/nowhere/libnvidia-ml.so.1";
  EXPECT_THAT(bus_ids_of({"gpu:1", "gpu:0"}, settings, folder).value(),
              testing::ElementsAre("0000:1b:00.0", "0000:c1:00.0"));
  EXPECT_FALSE(bus_ids_of({"gpu:2"}, settings, folder));
  std::filesystem::remove_all(folder);
}

// --- what must be alike on all nodes ---------------------------------------------------------------------

TEST(NcclTerms, AreReadFromNcclsFileAsNcclReadsIt) {
  // NCCL's setEnvFile: no space is taken off, the first of a name stays (setenv without overwriting).
  EXPECT_THAT(settings_in("#NCCL_A=1\nNCCL_IB_HCA=mlx5_0,mlx5_1\n NCCL_B=1\nNCCL_C = 2\nNCCL_IB_HCA=mlx5_2\n"
                          "NCCL_D\nPATH=/tmp\nNCCL_E=a=b #c\n\nNCCL_F="),
              ElementsAre(testing::Pair("NCCL_C ", " 2"), testing::Pair("NCCL_E", "a=b #c"),
                          testing::Pair("NCCL_F", ""), testing::Pair("NCCL_IB_HCA", "mlx5_0,mlx5_1")));
  EXPECT_THAT(settings_in(""), IsEmpty());
}

TEST(NcclTerms, PluginIsLookedForUnderNcclsNames) {
  EXPECT_THAT(plugin_names(""), ElementsAre("libnccl-net.so"));
  EXPECT_THAT(plugin_names("none"), IsEmpty());
  EXPECT_THAT(plugin_names("aws"), ElementsAre("aws", "libnccl-net-aws.so", "libnccl-net.so"));
}

TEST(NcclTerms, AreTheSitesThenTheFilesAndThePlugin) {
  std::string pattern = (std::filesystem::temp_directory_path() / "terms-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::string file = folder / "nccl.conf", other = folder / "other.conf";
  const std::string plugin = own(NETCHECK_TEST_GPU) + "/libnccl.so.2";  // any library
  std::ofstream(file) << "NCCL_IB_HCA=mlx5_9\nNCCL_NET=IB\nNCCL_DEBUG=WARN\n";
  std::ofstream(other) << "NCCL_NET=Socket\nNCCL_NET_PLUGIN=" << plugin << "\n";
  EXPECT_THAT(terms_of({{"NCCL_IB_HCA", "mlx5_0"}, {"NCCL_NET_PLUGIN", "none"}}, file).value(),
              ElementsAre("net=none", "NCCL_IB_HCA=mlx5_0", "NCCL_NET=IB", "NCCL_NET_PLUGIN=none"));
  EXPECT_THAT(
      terms_of({{"NCCL_CONF_FILE", other}}, file).value(),
      ElementsAre("net=" + plugin, "NCCL_IB_HCA=mlx5_9", "NCCL_NET=Socket", "NCCL_NET_PLUGIN=" + plugin));
  EXPECT_THAT(terms_of({{"NCCL_NET_PLUGIN", "none"}}, folder / "gone").value(),
              ElementsAre("net=none", "NCCL_NET_PLUGIN=none"));
  std::ofstream(file) << "NCCL_COMM_ID=10.0.0.1:4711\n";
  const auto refused = terms_of({}, file);
  ASSERT_FALSE(refused);
  EXPECT_THAT(describe(refused.error()), testing::AllOf(HasSubstr(file), HasSubstr("NCCL_COMM_ID in it")));
  std::filesystem::remove_all(folder);
}

TEST(NcclVersion, IsReadAsNcclCountsIt) {
  EXPECT_EQ(nccl_version(22809), "2.28.9");
  EXPECT_EQ(nccl_version(21803), "2.18.3");
  EXPECT_EQ(nccl_version(2708), "2.7.8");
  EXPECT_TRUE(check_nccl_version(21800));
  EXPECT_FALSE(check_nccl_version(21705));
  EXPECT_FALSE(check_nccl_version(2708));
}

// --- the kernels ------------------------------------------------------------------------------------------

TEST(NcclKernels, AreAllThere) {
  const std::string text = kernels_ptx();
  for (const std::size_t width : kWidths)
    for (const char* kernel : {kFillKernel, kCountKernel})
      EXPECT_THAT(text, HasSubstr(".entry " + kernel_name(kernel, width) + "("));
  EXPECT_THAT(text, Not(HasSubstr("WIDTH")));
  EXPECT_THAT(text, Not(HasSubstr("BITS")));
}

/// What a buffer of `elements` should hold, worked out without the kernels.
std::vector<std::uint8_t> repeated(const std::vector<std::uint8_t>& table, std::size_t bytes) {
  std::vector<std::uint8_t> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    all[i] = table[i % table.size()];
  return all;
}
std::uint64_t address_of(const void* data) {
  return reinterpret_cast<std::uint64_t>(data);
}

TEST(NcclKernels, FillAndCountAsTheirNamesSay) {
  const std::string text = kernels_ptx();
  // More elements than threads, fewer, a period longer than the grid, one that is shorter, one of one
  // element.
  struct Case {
    std::size_t elements, period;
    unsigned blocks, threads;
  };
  for (const std::size_t width : kWidths)
    for (const auto& [elements, period, blocks, threads] :
         {Case{1'000, 41, 3, 8}, Case{5, 41, 3, 8}, Case{1'000, 41, 1, 96}, Case{500, 1, 2, 4},
          Case{0, 7, 1, 4}}) {
      std::vector<std::uint8_t> table(period * width);
      for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<std::uint8_t>(i * 37 + 11);
      const auto wanted = repeated(table, elements * width);
      // Four bytes more than it may write.
      std::vector<std::uint8_t> buffer(elements * width + 4, 0xA5);
      std::uint64_t counter = 0;
      const testing_ptx::Values parameters{{"buffer", address_of(buffer.data())},
                                           {"elements", elements},
                                           {"table", address_of(table.data())},
                                           {"period", period},
                                           {"counter", address_of(&counter)}};
      testing_ptx::Kernel(text, kernel_name(kFillKernel, width)).run(blocks, threads, parameters);
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), buffer.begin())) << elements << " of " << width;
      EXPECT_TRUE(std::all_of(buffer.end() - 4, buffer.end(), [](auto byte) { return byte == 0xA5; }));
      const testing_ptx::Kernel count(text, kernel_name(kCountKernel, width));
      count.run(blocks, threads, parameters);
      EXPECT_EQ(counter, 0u);
      if (elements == 0) continue;
      buffer[0] ^= 0x80;                     // the first element's lowest byte
      buffer[elements * width - 1] ^= 0x01;  // the last one's highest
      count.run(blocks, threads, parameters);
      EXPECT_EQ(counter, 2u) << elements << " of " << width;
    }
}

TEST(NcclKernels, AreAssembledByARealAssembler) {
#ifndef NETCHECK_TEST_PTXAS
  GTEST_SKIP() << "no ptxas was found";
#else
  const auto file =
      std::filesystem::temp_directory_path() / ("netcheck-" + std::to_string(::getpid()) + ".ptx");
  std::ofstream(file) << kernels_ptx();
  for (const std::string machine : {"sm_80", "sm_90", "sm_100"})
    EXPECT_EQ(
        std::system(
            (NETCHECK_TEST_PTXAS " -Werror -arch=" + machine + " -o /dev/null " + file.string()).c_str()),
        0)
        << machine;
  std::filesystem::remove(file);
#endif
}

}  // namespace
}  // namespace netcheck::fabric::nccl
#endif
