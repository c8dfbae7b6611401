// Strict reading. CBOR bytes are written by hand after RFC 8949.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <initializer_list>

#include "contract/inventory.h"
#include "contract/wire.h"

namespace netcheck {
namespace {

Bytes bytes(std::initializer_list<int> values) {
  Bytes out;
  for (int value : values)
    out.push_back(static_cast<std::byte>(value));
  return out;
}

std::string refusal(const Bytes& frame) {
  const auto value = from_cbor(frame, "n2");
  return value ? "" : value.error().reason;
}

TEST(Cbor, IsReadWhenWellFormed) {
  EXPECT_EQ(from_cbor(bytes({0xA1, 0x61, 'a', 0x18, 0xFF}), "n2").value(), Json({{"a", 255}}));
  EXPECT_EQ(from_cbor(bytes({0x83, 0x01, 0x20, 0xF5}), "n2").value(), Json({1, -1, true}));
}

TEST(Cbor, IsRefusedWhenNotExactlyOneDefiniteValue) {
  EXPECT_EQ(refusal({}), "it is cut off");
  EXPECT_EQ(refusal(bytes({0x82, 0x01})), "it is cut off");
  EXPECT_EQ(refusal(bytes({0x01, 0x01})), "bytes after the message");
  EXPECT_EQ(refusal(bytes({0x9F, 0x01, 0xFF})), "an indefinite length");       // [_ 1]
  EXPECT_EQ(refusal(bytes({0x7F, 0x61, 'a', 0xFF})), "an indefinite length");  // (_ "a")
  EXPECT_EQ(refusal(bytes({0xBF, 0xFF})), "an indefinite length");             // {_ }
  EXPECT_EQ(refusal(bytes({0xC0, 0x01})), "a tag");                            // 0(1)
  EXPECT_EQ(refusal(bytes({0xF7})), "a value of an unknown kind");             // undefined
  EXPECT_EQ(refusal(bytes({0x1C})), "it is cut off");                          // reserved length
  EXPECT_EQ(refusal(bytes({0x62, 0xC3, 0x28})), "text that is no UTF-8");
  EXPECT_EQ(refusal(bytes({0x3B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})), "a number out of range");
}

TEST(Cbor, LengthBeyondTheFrameIsRefusedBeforeAnythingIsAllocated) {
  for (int major : {0x5B, 0x7B, 0x9B, 0xBB})  // bytes, text, list, map of 2^63 and more
    EXPECT_EQ(refusal(bytes({major, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1})), "it is cut off");
}

TEST(Cbor, RepeatedKeyIsRefused) {
  EXPECT_EQ(refusal(bytes({0xA2, 0x61, 'a', 0x01, 0x61, 'a', 0x02})), "a repeated key");
}

TEST(Cbor, NestingIsBounded) {
  Bytes sixteen(16, std::byte{0x81});
  sixteen.push_back(std::byte{0x01});
  EXPECT_EQ(refusal(sixteen), "");
  sixteen.insert(sixteen.begin(), std::byte{0x81});
  EXPECT_EQ(refusal(sixteen), "it is nested too deep");
  EXPECT_EQ(refusal(Bytes(1'000'000, std::byte{0x81})), "it is nested too deep");
}

TEST(Cbor, MapWithKeysThatAreNoTextIsRefused) {
  EXPECT_NE(refusal(bytes({0xA1, 0x01, 0x02})), "");
}

TEST(Cbor, CarriesBytesAsBytes) {
  const Bytes card = bytes({0, 1, 0xFF});
  const auto back = read_frame(to_cbor({{"card", bytes_to_json(card)}}), "n2",
                               [](const Json& value) { return Fields(value, "m").bytes("card", 3); });
  EXPECT_EQ(back.value(), card);
}

TEST(JsonText, IsRefusedWhenHostile) {
  EXPECT_TRUE(from_json_text(R"({"a":[1,{"b":2}]})", "f", 100));
  EXPECT_FALSE(from_json_text("{", "f", 100));
  EXPECT_FALSE(from_json_text("", "f", 100));
  EXPECT_FALSE(from_json_text("1 2", "f", 100));
  EXPECT_FALSE(from_json_text(R"({"a":1,"a":2})", "f", 100));
  EXPECT_TRUE(from_json_text(R"([{"a":1},{"a":2}])", "f", 100));
  EXPECT_FALSE(from_json_text("\"\xff\"", "f", 100));
  EXPECT_FALSE(from_json_text(std::string(101, ' '), "f", 100));
  EXPECT_FALSE(from_json_text(std::string(100'000, '['), "f", 1 << 20));
  EXPECT_FALSE(from_json_text(std::string(17, '[') + std::string(17, ']'), "f", 100));
  EXPECT_TRUE(from_json_text(std::string(16, '[') + std::string(16, ']'), "f", 100));
}

template <typename Read>
bool refused(const char* json, Read read) {
  return !read_frame(to_cbor(Json::parse(json)), "n2",
                     [&](const Json& value) { return read(Fields(value, "m")); });
}

TEST(Fields, RefuseWhatIsNotExactlyTheType) {
  const auto count = [](const Fields& fields) { return fields.count("x", 10); };
  EXPECT_FALSE(refused(R"({"x":10})", count));
  for (const char* json : {R"({"x":11})", R"({"x":-1})", R"({"x":3.7})", R"({"x":3.0})", R"({"x":"3"})",
                           R"({"x":true})", R"({"x":null})", R"({})", R"([])", R"(3)"})
    EXPECT_TRUE(refused(json, count)) << json;

  const auto finite = [](const Fields& fields) { return fields.finite("x"); };
  EXPECT_FALSE(refused(R"({"x":-2.5})", finite));
  EXPECT_TRUE(refused(R"({"x":"1"})", finite));

  const auto flag = [](const Fields& fields) { return fields.flag("x"); };
  EXPECT_FALSE(refused(R"({"x":false})", flag));
  EXPECT_TRUE(refused(R"({"x":0})", flag));

  const auto text = [](const Fields& fields) { return fields.text("x", 3); };
  EXPECT_FALSE(refused(R"({"x":"abc"})", text));
  EXPECT_TRUE(refused(R"({"x":"abcd"})", text));

  const auto duration = [](const Fields& fields) { return fields.duration("x"); };
  // A quarter of what 64 bits hold: 2^61 - 1 ns.
  EXPECT_FALSE(refused(R"({"x":2305843009213693951})", duration));
  EXPECT_TRUE(refused(R"({"x":2305843009213693952})", duration));
  EXPECT_TRUE(refused(R"({"x":-1})", duration));

  const auto array = [](const Fields& fields) { return fields.array("x", 2).size(); };
  EXPECT_FALSE(refused(R"({"x":[1,2]})", array));
  EXPECT_TRUE(refused(R"({"x":[1,2,3]})", array));
  EXPECT_TRUE(refused(R"({"x":{}})", array));
}

TEST(Fields, RefuseNumbersThatAreNotFinite) {
  // {"x": NaN} and {"x": Infinity} as half floats.
  const auto finite = [](const Json& value) { return Fields(value, "m").finite("x"); };
  EXPECT_FALSE(read_frame(bytes({0xA1, 0x61, 'x', 0xF9, 0x7E, 0x00}), "n2", finite));
  EXPECT_FALSE(read_frame(bytes({0xA1, 0x61, 'x', 0xF9, 0x7C, 0x00}), "n2", finite));
  EXPECT_TRUE(read_frame(bytes({0xA1, 0x61, 'x', 0xF9, 0x3C, 0x00}), "n2", finite));  // 1.0
}

TEST(Error, IsOneLineNamingWhatToDo) {
  EXPECT_EQ(
      describe({"read the configuration", "/etc/x:3", "unknown key 'treshold'", "did you mean 'threshold'?"}),
      "read the configuration /etc/x:3: unknown key 'treshold' (did you mean 'threshold'?)");
  EXPECT_EQ(describe({"read", "a\nb", "c\x1b[31m", ""}), "read a b: c [31m");
}

TEST(Printable, LeavesNothingATerminalObeysOrJsonRefuses) {
  EXPECT_EQ(printable("a\r\n\tb\x7f"), "a   b ");
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            " 31m");                                                   // C1 CSI
  EXPECT_EQ(printable("a\u202Eb\u2066c\u200Fd\u2028e"), "a b c d e");  // U+202E writes from right to left
  EXPECT_EQ(printable("n1…(+2)", 4), "n1");  // cut between characters: … takes three bytes
  EXPECT_EQ(printable(std::string(300, 'x')).size(), 256u);
  EXPECT_TRUE(is_utf8("é…😀"));
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
}

TEST(Inventory, SurvivesTheWire) {
  Inventory inventory;
  inventory.node = "n1";
  inventory.kernel = "6.1.0";
  inventory.version = "0.1.0";
  inventory.cores = 64;
  inventory.machine = "Model X";
  Nic fabric_nic;
  fabric_nic.name = "mlx5_0";
  fabric_nic.ucx_device = "mlx5_0:1";
  fabric_nic.rdma = fabric_nic.up = true;
  fabric_nic.speed = Rate{400e9};
  fabric_nic.mtu = 4'096;
  fabric_nic.numa = 1;
  Nic loopback;
  loopback.name = "lo";
  loopback.why_not = "loopback";
  loopback.numa = -1;
  inventory.nics = {fabric_nic, loopback};
  const auto back = read_frame(to_cbor(to_json(inventory)), "n1", inventory_from_json);
  ASSERT_TRUE(back) << describe(back.error());
  ASSERT_EQ(back->nics.size(), 2u);
  EXPECT_EQ(back->node, "n1");
  EXPECT_EQ(back->cores, 64u);
  EXPECT_EQ(back->nics[0].speed, Rate{400e9});
  EXPECT_EQ(back->nics[0].numa, 1);
  EXPECT_EQ(back->nics[1].why_not, "loopback");
  EXPECT_FALSE(back->nics[1].speed);
  EXPECT_FALSE(back->nics[1].numa);
}

// A report may have 16 MiB, and who reads it is root: a hundred bytes for each bracket would be 1.6 GB.
TEST(JsonText, OfBracketsAloneCostsNoMemory) {
  const std::string brackets(16u << 20, '[');
  const auto most = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;  // KiB
  };
  const long before = most();
  EXPECT_FALSE(from_json_text(brackets, "f", brackets.size()));
  EXPECT_LT(most() - before, 100 * 1024);
}

// The parser's own callback takes the square of it: of this 25 s, of a report's 16 MiB an hour and a half.
TEST(JsonText, OfManyObjectsTakesNoLongerThanItIsLong) {
  std::string objects = "[{}";
  while (objects.size() < (1u << 20))
    objects += ",{}";
  const auto list = from_json_text(objects + "]", "f", 2u << 20);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), objects.size() / 3);
}

}  // namespace
}  // namespace netcheck
