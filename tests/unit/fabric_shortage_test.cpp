// What a node's kernel has run out of: its texts, and a folder in the place of /proc.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fabric/shortage.h"

namespace netcheck::fabric {
namespace {

// Of Linux 6.1, cut.
constexpr const char* kHead = "protocol  size sockets  memory press maxhdr  slab module     cl co\n";
constexpr const char* kCalm =
    "TCPv6     2432      1     108   no     192   yes  kernel      y  y\n"
    "TCP       2304      3     108   no     192   yes  kernel      y  y\n";
constexpr const char* kPressed =
    "UDP       1152      3       0   NI       0   yes  kernel      y  y\n"
    "TCP       2304   2003  575790   yes    192   yes  kernel      y  y\n";
constexpr const char* kNeighbours =
    "entries  allocs   destroys table_fulls\n"
    "00000027 000013ed 000013d2 000061f6\n"
    "00000027 00000000 00000000 00000003\n";

class ShortageTest : public testing::Test {
 protected:
  ShortageTest() {
    std::filesystem::create_directories(proc_ + "/net/stat");
    std::filesystem::create_directories(proc_ + "/sys/net/netfilter");
    write("/net/protocols", std::string(kHead) + kCalm);
    write("/net/stat/arp_cache", kNeighbours);
    write("/sys/net/netfilter/nf_conntrack_max", "262144\n");
    write("/sys/net/netfilter/nf_conntrack_count", "17\n");
  }
  ~ShortageTest() override { std::filesystem::remove_all(proc_); }
  void write(const std::string& file, const std::string& text) const { std::ofstream(proc_ + file) << text; }

  std::string proc_ = std::filesystem::temp_directory_path() / ("proc-" + std::to_string(::getpid()));
};

TEST_F(ShortageTest, IsNotSeenWhereThereIsNone) {
  Shortage shortage(proc_);
  shortage.look();
  EXPECT_EQ(shortage.seen(), Lack::nothing);
}

TEST_F(ShortageTest, OfMemoryForTcpIsRememberedOnceSeen) {
  Shortage shortage(proc_);
  write("/net/protocols", std::string(kHead) + kPressed);
  shortage.look();
  write("/net/protocols", std::string(kHead) + kCalm);
  shortage.look();
  EXPECT_EQ(shortage.seen(), Lack::tcp_memory);
}

TEST_F(ShortageTest, OfMemoryForTcpCountsWhereItWasThereBefore) {
  write("/net/protocols", std::string(kHead) + kPressed);
  EXPECT_EQ(Shortage(proc_).seen(), Lack::tcp_memory);
}

TEST_F(ShortageTest, OfRoomForNeighboursIsOneThatCameMeanwhile) {
  Shortage shortage(proc_);  // full 0x61f9 times before
  EXPECT_EQ(shortage.seen(), Lack::nothing);
  write("/net/stat/arp_cache",
        "entries  allocs   destroys table_fulls\n"
        "00000027 000013ed 000013d2 000061f6\n"
        "00000027 00000000 00000000 00000004\n");
  shortage.look();
  EXPECT_EQ(shortage.seen(), Lack::neighbours);
}

TEST_F(ShortageTest, OfRoomForConnectionsIsATableThatIsFull) {
  write("/sys/net/netfilter/nf_conntrack_count", "262143\n");
  Shortage shortage(proc_);
  EXPECT_EQ(shortage.seen(), Lack::nothing);
  write("/sys/net/netfilter/nf_conntrack_count", "262144\n");
  shortage.look();
  EXPECT_EQ(shortage.seen(), Lack::connections);
}

TEST_F(ShortageTest, IsUnknownWhereTheKernelSaysNothing) {
  Shortage shortage(proc_ + "/nowhere");
  shortage.look();
  EXPECT_EQ(shortage.seen(), Lack::nothing);
  for (const char* text : {"", "protocol memory\nTCP 5\n", kHead}) {
    EXPECT_EQ(tcp_is_pressed(text), std::nullopt) << text;
    EXPECT_EQ(times_full(text), std::nullopt) << text;
  }
  EXPECT_EQ(times_full("entries table_fulls\n1 many\n"), std::nullopt);
  EXPECT_EQ(times_full(kNeighbours), 0x61f9U);
  write("/sys/net/netfilter/nf_conntrack_max", "0\n");  // no limit
  EXPECT_EQ(Shortage(proc_).seen(), Lack::nothing);
}

TEST(MayNeedTcp, AllButRdmaAlone) {
  for (const char* tcp : {"tcp/eth0", "tcp/eth0,tcp/eth1", "Socket/eth0,P2P/CUMEM", "rdma/mlx5_0:1,tcp/eth0",
                          "", "P2P/CUMEM", "AWS Libfabric/2"})
    EXPECT_TRUE(may_need_tcp(tcp)) << tcp;
  for (const char* rdma :
       {"rdma/mlx5_0:1", "IB/mlx5_0+GDR,P2P/CUMEM", "RoCE/mlx5_1", "rdma/mlx5_0:1,rdma/mlx5_2:1"})
    EXPECT_FALSE(may_need_tcp(rdma)) << rdma;
}

}  // namespace
}  // namespace netcheck::fabric
