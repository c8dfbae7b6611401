// What a device carries in all, read from a tree like the kernel's; and what of it was others'.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fabric/meter.h"

namespace netcheck::fabric {
namespace {

namespace fs = std::filesystem;

class MeterTest : public testing::Test {
 protected:
  MeterTest() { fs::create_directories(root_); }
  ~MeterTest() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void interface(const std::string& name, const std::string& in, const std::string& out) const {
    write("class/net/" + name + "/statistics/rx_bytes", in);
    write("class/net/" + name + "/statistics/tx_bytes", out);
  }
  [[nodiscard]] std::optional<Octets> read(const std::string& device) const {
    return Meter(device, root_.string()).read();
  }

  fs::path root_ = fs::path(testing::TempDir()) / ("meter-" + std::to_string(::getpid()));
};

TEST_F(MeterTest, ReadsAnInterface) {
  interface("eth0", "1000\n", "20\n");
  EXPECT_EQ(read("eth0"), (Octets{1000, 20}));
}

TEST_F(MeterTest, ReadsAgainWhatHasChanged) {
  interface("eth0", "1000\n", "20\n");
  const Meter meter("eth0", root_.string());
  interface("eth0", "18446744073709551615\n", "21\n");
  EXPECT_EQ(meter.read(), (Octets{UINT64_MAX, 21}));
}

TEST_F(MeterTest, ReadsAPortOfAnRdmaDeviceInWordsOfFourBytes) {
  write("class/infiniband/mlx5_0/ports/2/counters/port_rcv_data", "250\n");
  write("class/infiniband/mlx5_0/ports/2/counters/port_xmit_data", "5\n");
  EXPECT_EQ(read("mlx5_0:2"), (Octets{1000, 20}));
  EXPECT_EQ(read("mlx5_0:1"), std::nullopt);
}

TEST_F(MeterTest, ReadsWhatLiesBelowAVlanOnABond) {
  interface("vlan7", "1\n", "1\n");
  interface("bond0", "2\n", "2\n");
  interface("eth0", "1000\n", "20\n");
  interface("eth1", "3000\n", "40\n");
  fs::create_directory_symlink("../bond0", root_ / "class/net/vlan7/lower_bond0");
  fs::create_directory_symlink("../eth0", root_ / "class/net/bond0/lower_eth0");
  fs::create_directory_symlink("../eth1", root_ / "class/net/bond0/lower_eth1");
  EXPECT_EQ(read("vlan7"), (Octets{4000, 60}));
}

TEST_F(MeterTest, ReadsABridgeItself) {
  interface("br0", "1000\n", "20\n");
  interface("eth0", "9\n", "9\n");
  fs::create_directories(root_ / "class/net/br0/bridge");
  fs::create_directory_symlink("../eth0", root_ / "class/net/br0/lower_eth0");
  EXPECT_EQ(read("br0"), (Octets{1000, 20}));
}

TEST_F(MeterTest, GoesRoundNoCircle) {
  interface("eth0", "1\n", "1\n");
  fs::create_directory_symlink(".", root_ / "class/net/eth0/lower_eth0");
  static_cast<void>(read("eth0"));
}

TEST_F(MeterTest, WhatIsNotThereOrNoNumberIsUnknown) {
  EXPECT_EQ(read("eth0"), std::nullopt);
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read("../eth0"), std::nullopt);
  interface("eth0", "many\n", "20\n");
  EXPECT_EQ(read("eth0"), std::nullopt);
  interface("eth1", "-1\n", "20\n");
  EXPECT_EQ(read("eth1"), std::nullopt);
  interface("eth2", "", "20\n");
  EXPECT_EQ(read("eth2"), std::nullopt);
}

TEST(OthersBetween, IsWhatTheCheckDidNotMoveItself) {
  // 100 MB in, of which 40 are the check's: 60 less 8 % of the 40 for headers.
  const Octets others =
      others_between({Octets{5, 5}, {}, {0, 0}}, {Octets{100'000'005, 5}, {}, {40'000'000, 0}});
  EXPECT_EQ(others.in, 56'800'000U);
  EXPECT_EQ(others.out, 0U);
}

TEST(OthersBetween, HeadersAndAcknowledgementsAreNobodyElses) {
  // 1,448 bytes of payload are 1,514 on the wire, and 66 go back for every other one.
  const std::uint64_t segments = 100'000;
  const Octets others = others_between(
      {Octets{0, 0}, {}, {0, 0}}, {Octets{segments * 1'514, segments / 2 * 66}, {}, {segments * 1'448, 0}});
  EXPECT_EQ(others, (Octets{0, 0}));
}

TEST(OthersBetween, WhatWasPutTogetherCountsAsTheQueueAndIpHaveIt) {
  // Datagrams of one byte, 64 as one: the device counts 106 bytes of 2,752.
  const Octets out =
      others_between({Octets{0, 0}, 1'000'000, {0, 0}}, {Octets{0, 106'000}, 3'752'000, {0, 0}});
  EXPECT_EQ(out, (Octets{0, 2'752'000}));
  const Octets in = others_between({Octets{0, 0}, {}, {0, 0}}, {Octets{106'000, 0}, {}, {0, 0}}, 2'646'000);
  EXPECT_EQ(in, (Octets{2'752'000, 0}));
  // A queue that was set up anew says nothing.
  EXPECT_EQ(others_between({Octets{0, 0}, 5, {0, 0}}, {Octets{0, 7}, 4, {0, 0}}).out, 7U);
}

TEST(OthersBetween, LargeSegmentsOfTheChecksOwnAreNobodyElses) {
  // 64 KiB as one packet of 45 segments: 44 headers of 42 bytes that the device did not count.
  const Octets others =
      others_between({Octets{0, 0}, {}, {0, 0}}, {Octets{65'602, 0}, {}, {65'536, 0}}, 44 * 42);
  EXPECT_EQ(others, (Octets{0, 0}));
}

TEST(OthersBetween, WhatIsNotKnownIsNothing) {
  EXPECT_EQ(others_between({std::nullopt, {}, {0, 0}}, {Octets{9, 9}, {}, {0, 0}}), (Octets{0, 0}));
  EXPECT_EQ(others_between({Octets{9, 9}, {}, {0, 0}}, {std::nullopt, {}, {0, 0}}), (Octets{0, 0}));
  EXPECT_EQ(others_between({Octets{9, 9}, {}, {0, 0}}, {Octets{8, 99}, {}, {0, 0}}),
            (Octets{0, 0}));  // it fell
}

}  // namespace
}  // namespace netcheck::fabric
