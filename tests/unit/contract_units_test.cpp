// Rates, times and sizes. Expected values worked out by hand: 1 B = 8 bit, decimal prefixes.
#include <gtest/gtest.h>

#include "contract/units.h"

namespace netcheck {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Rate, IsReadInBitsAndInBytes) {
  const std::pair<const char*, double> cases[] = {{"400Gbps", 400e9}, {"400gbps", 400e9}, {"400GbPS", 400e9},
                                                  {"800Mbps", 800e6}, {"50GB/s", 400e9},  {"62.5MB/s", 500e6},
                                                  {"1bps", 1},        {"8Kbps", 8e3},     {"1kB/s", 8e3},
                                                  {"0.5Tbps", 500e9}, {"1TB/S", 8e12},    {"1000Tbps", 1e15}};
  for (const auto& [text, bits] : cases) {
    const auto rate = parse_rate(text);
    ASSERT_TRUE(rate) << text << ": " << describe(rate.error());
    EXPECT_DOUBLE_EQ(rate->bits_per_second, bits) << text;
  }
}

TEST(Rate, IsRefusedWhenItsMeaningWouldBeAGuess) {
  for (const char* text :
       {"",         "400",       "Gbps",     "-400Gbps", "+400Gbps", "0Gbps",     "0.0Gbps",
        "nan",      "nanGbps",   "inf",      "infGbps",  "1e400",    "1e400Gbps", "1e3Gbps",
        "400GBps",  "400Gb/s",   "400GB",    "400G",     "400 Gbps", "400Gbps ",  "400Gbpsx",
        "4..0Gbps", "4.Gbps",    ".5Gbps",   "0x10Gbps", "0.1bps",   "1001Tbps",  "99999999999999999Tbps",
        "400Pbps",  "400Gbps\n", "400,5Gbps"}) {
    const auto rate = parse_rate(text);
    EXPECT_FALSE(rate) << text;
    if (!rate) {
      EXPECT_NE(describe(rate.error()).find("400Gbps or 50GB/s"), std::string::npos) << text;
    }
  }
  EXPECT_FALSE(parse_rate(std::string(10'000, '9') + "Gbps"));
}

TEST(Duration, IsRead) {
  EXPECT_EQ(parse_duration("8s").value(), seconds(8));
  EXPECT_EQ(parse_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_duration("1.5s").value(), milliseconds(1500));
  EXPECT_EQ(parse_duration("2min").value(), seconds(120));
  EXPECT_EQ(parse_duration("1440min").value(), seconds(86'400));
}

TEST(Duration, IsRefusedWithoutUnitOrOutOfRange) {
  for (const char* text :
       {"", "8", "s", "-8s", "0s", "8S", "8sec", "8h", "1441min", "1e3s", "nan", "0.0000000001s"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Rate, IsPrintedAsInTheLine) {
  EXPECT_EQ(format_rate({96.3e9}), "96.3Gbps");
  EXPECT_EQ(format_rate({2950.4e9}), "2950.4Gbps");
  EXPECT_EQ(format_rate({479e6}), "479.0Mbps");
  EXPECT_EQ(format_rate({1e9}), "1.0Gbps");
  EXPECT_EQ(format_rate({1500}), "1.5Kbps");
  EXPECT_EQ(format_rate({0}), "0.0bps");
  EXPECT_EQ(format_rate({400e9}, true), "400Gbps");
  EXPECT_EQ(format_rate({1.25e9}, true), "1.25Gbps");
  EXPECT_EQ(format_rate({62.5e6}, true), "62.5Mbps");
}

TEST(Rate, OfBytesOverTime) {
  // 125 MB in half a second: 1000 Mbit / 0.5 s = 2 Gb/s.
  EXPECT_DOUBLE_EQ(rate_of(125e6, milliseconds(500)).bits_per_second, 2e9);
}

TEST(Duration, IsPrinted) {
  EXPECT_EQ(format_duration(milliseconds(5'120)), "5.1s");
  EXPECT_EQ(format_duration(milliseconds(120)), "120ms");
  EXPECT_EQ(format_duration(seconds(1)), "1.0s");
  EXPECT_EQ(format_duration(std::chrono::microseconds(350)), "350us");
}

TEST(Size, IsPrintedInBinaryUnitsOnlyWhereExact) {
  EXPECT_EQ(format_bytes(1'048'576), "1MiB");
  EXPECT_EQ(format_bytes(1'000), "1000B");
  EXPECT_EQ(format_bytes(1'536), "1536B");
  EXPECT_EQ(format_bytes(3ull << 30), "3GiB");
  EXPECT_EQ(format_bytes(1'536 * 1'024), "1536KiB");
  EXPECT_EQ(format_bytes(0), "0B");
}

}  // namespace
}  // namespace netcheck
