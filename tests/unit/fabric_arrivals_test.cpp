// What no device counted, of a folder in the place of /proc.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fabric/arrivals.h"

namespace netcheck::fabric {
namespace {

class ArrivalsTest : public testing::Test {
 protected:
  ArrivalsTest() { std::filesystem::create_directories(proc_ + "/net"); }
  ~ArrivalsTest() override { std::filesystem::remove_all(proc_); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(proc_ + "/net/" + file) << text;
  }

  std::string proc_ = std::filesystem::temp_directory_path() / ("arrivals-" + std::to_string(::getpid()));
};

TEST_F(ArrivalsTest, AreThoseOfAllDevicesAndOfBothKindsOfIp) {
  write("netstat",
        "TcpExt: InNoECTPkts\nTcpExt: 5\n"
        "IpExt: InOctets InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts\nIpExt: 7 1000 20 300 4\n");
  write("snmp6",
        "Ip6InReceives                   	9\nIp6InNoECTPkts                  	50000\n"
        "Ip6InECT0Pkts                   	6\n");
  write("dev",
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
        "    lo: 100 1 0 0 0 0 0 0 100 1\n  eth0:20000 30 0 0 0 0 0 0 7 7\n");
  EXPECT_EQ(arrivals(proc_), (Arrivals{51'330, 31}));
}

TEST_F(ArrivalsTest, AreUnknownWhereTheKernelSaysNothing) {
  EXPECT_EQ(arrivals(proc_), std::nullopt);
  write("netstat", "IpExt: InNoECTPkts\nIpExt: 1000\n");
  EXPECT_EQ(arrivals(proc_), (Arrivals{1'000, 0}));
  write("dev", "  eth0: many\n");
  EXPECT_EQ(arrivals(proc_), std::nullopt);
}

TEST(Uncounted, AreTheHeadersOfPacketsThatWereCountedAsOne) {
  // Seen on a link of 1 Gb/s that was full of datagrams of one byte, 64 as one, within a second:
  // (2'868'556 - 44'683) × 42 B = 118.6 MB, beside the 4.7 MB that the device counted; the link had carried
  // 124.
  const Arrivals before{569'338'090, 15'389'003}, after{572'206'646, 15'433'686};
  EXPECT_NEAR(static_cast<double>(uncounted_between(before, after)), 118.6e6, 0.1e6);
}

TEST(Uncounted, AreNoneWhereEachPacketWasCounted) {
  EXPECT_EQ(uncounted_between(Arrivals{}, Arrivals{1'000, 1'000}), 0U);
  EXPECT_EQ(uncounted_between(Arrivals{}, Arrivals{10, 1'000}), 0U);  // others than IP
}

TEST(Uncounted, AreNoneWhereACounterFellOrIsUnknown) {
  const Arrivals some{1'000'000, 1};
  EXPECT_EQ(uncounted_between(std::nullopt, some), 0U);
  EXPECT_EQ(uncounted_between(some, std::nullopt), 0U);
  EXPECT_EQ(uncounted_between(Arrivals{5, 2}, some), 0U);
  EXPECT_EQ(uncounted_between(Arrivals{2'000'000, 1}, some), 0U);
}

}  // namespace
}  // namespace netcheck::fabric
