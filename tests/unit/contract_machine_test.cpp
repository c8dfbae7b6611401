// PCIe rates and how they are written; machines in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/machine.h"
#include "contract/wire.h"
#include "machines.h"

namespace netcheck {
namespace {

double gigabits(PciSpeed speed) {
  return rate_of(speed).bits_per_second / 1e9;
}

// GT/s × lanes × line code, by hand.
TEST(PciSpeed, IsTransfersTimesLanesLessTheLineCode) {
  EXPECT_DOUBLE_EQ(gigabits({2.5, 16}), 32);        // 2.5 × 16 × 8/10
  EXPECT_DOUBLE_EQ(gigabits({5, 8}), 32);           // 5 × 8 × 8/10
  EXPECT_NEAR(gigabits({8, 16}), 126.0308, 1e-4);   // 8 × 16 × 128/130; hwloc: 15.753846 GB/s × 8
  EXPECT_NEAR(gigabits({16, 8}), 126.0308, 1e-4);   // 16 × 8 × 128/130
  EXPECT_NEAR(gigabits({16, 16}), 252.0615, 1e-4);  // 16 × 16 × 128/130
  EXPECT_NEAR(gigabits({32, 16}), 504.1231, 1e-4);  // 32 × 16 × 128/130
  EXPECT_NEAR(gigabits({64, 16}), 968.0, 1e-9);     // 64 × 16 × 242/256
}

TEST(PciSpeed, IsWrittenAsPeopleSayIt) {
  EXPECT_EQ(format_speed({2.5, 1}), "Gen1 x1");
  EXPECT_EQ(format_speed({16, 8}), "Gen4 x8");
  EXPECT_EQ(format_speed({64, 16}), "Gen6 x16");
  EXPECT_EQ(format_speed({12, 8}), "12 GT/s x8");
}

TEST(InWords, RoundsToWhatPeopleSay) {
  EXPECT_EQ(in_words(Rate{400e9}), "400 Gb/s");
  EXPECT_EQ(in_words(rate_of({16, 8})), "126 Gb/s");
  EXPECT_EQ(in_words(rate_of({8, 4})), "31.5 Gb/s");  // 8 × 4 × 128/130 = 31.508
  EXPECT_EQ(in_words(Rate{1e9}), "1 Gb/s");
  EXPECT_EQ(in_words(Rate{100e6}), "100 Mb/s");
  EXPECT_EQ(in_words(Rate{2926.03e9}), "2926 Gb/s");
}

TEST(MachineJson, KeepsEverything) {
  for (const char* name : {"hgx", "pcie-server", "cpu-hdr", "bond", "vm"}) {
    const Machine machine = fixture::recorded(name);
    EXPECT_EQ(machine_from_json(to_json(machine)), machine) << name;
  }
}

TEST(MachineJson, KeepsWhatTheFixturesDoNotHave) {
  Machine machine = fixture::recorded("hgx");
  machine.pci[1].link.rate = Rate{1e9};
  machine.pci[1].redirects = true;
  machine.pci[2].translated = true;
  machine.gpus[0].known_to_driver = false;
  machine.ports[0].rated = Rate{4e11};
  machine.ports[0].port = 2;
  machine.ports[0].virtual_function = true;
  machine.ports[0].why_not = "excluded by the site";
  machine.nvlinks[0].peer = 3;
  machine.notes = {"a note"};
  EXPECT_EQ(machine_from_json(to_json(machine)), machine);
}

// 1,000 nodes send theirs to one leader.
TEST(MachineJson, IsSmallOnTheWire) {
  EXPECT_LT(to_cbor(to_json(fixture::recorded("hgx"))).size(), 16'384U);
}

void refuse(const Json& value, const std::string& reason) {
  try {
    (void)machine_from_json(value);
    ADD_FAILURE() << "accepted, should say: " << reason;
  } catch (const Malformed& malformed) {
    EXPECT_THAT(malformed.reason, testing::HasSubstr(reason));
  }
}

TEST(MachineJson, RefusesWhatPointsNowhere) {
  const Json good = to_json(fixture::recorded("hgx"));
  const auto with = [&](const char* path, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(path)] = value;
    return bad;
  };
  refuse(with("/pci/3/parent", 3), "parent");  // itself: the tree would have a ring
  refuse(with("/pci/0/parent", 0), "parent");
  refuse(with("/gpus/0/pci", 9999), "pci");
  refuse(with("/ports/0/pci", -1), "pci");
  refuse(with("/nvlinks/0/gpu", 8), "gpu");
  refuse(with("/nvlinks/0/peer", 8), "peer");
  refuse(with("/pci/0/kind", "toaster"), "toaster");
  refuse(with("/pci/1/now/gts", -8), "range");
  refuse(with("/pci/1/ids", {1, 2, 3}), "ids");
  refuse(with("/pci/1/ids", {1, 2, 3, 70000}), "id");
  refuse(with("/ports/0/rate", -1), "rate");
  refuse(with("/netcheck_machine", 2), "format 2");
  refuse(Json::array(), "machine");
}

}  // namespace
}  // namespace netcheck
