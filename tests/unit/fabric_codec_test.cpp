// Frames between the probe and the fabric child: what is written is read back; what does not fit is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/wire.h"
#include "fabric/codec.h"

namespace netcheck::fabric {
namespace {

template <typename T>
T again(const Request& request) {
  const auto decoded = decode_request(encode(request));
  EXPECT_TRUE(decoded) << (decoded ? "" : describe(decoded.error()));
  return decoded ? std::get<T>(*decoded) : T{};
}
template <typename T>
T again(const Event& event) {
  const auto decoded = decode_reply(encode(Reply(event)));
  EXPECT_TRUE(decoded) << (decoded ? "" : describe(decoded.error()));
  return decoded ? std::get<T>(std::get<Event>(*decoded)) : T{};
}

const Team kTeam{5, {{0, 0}, {0, 1}, {3, 0}}};
const Sample kSample{2, {Ns(10), Ns(25)}, 1 << 20, 3, Ns(7)};

TEST(FabricCodec, KeepsRequests) {
  const auto open = again<Open>(Open{{{"eth0", "mlx5_0:1"}, 1 << 28, {{"NCCL_ALGO", "Ring"}}}});
  EXPECT_EQ(open.options.devices, (std::vector<std::string>{"eth0", "mlx5_0:1"}));
  EXPECT_EQ(open.options.max_bytes, std::uint64_t{1} << 28);
  EXPECT_EQ(open.options.settings, (std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}}));
  const auto invite = again<Invite>(Invite{kTeam, 3});
  EXPECT_EQ(invite.team, kTeam);
  EXPECT_EQ(invite.self, 3u);
  const auto join = again<Join>(Join{kTeam, {Bytes(2, std::byte{0xff}), Bytes()}, 3});
  EXPECT_EQ(join.team, kTeam);
  EXPECT_EQ(join.cards, (std::vector<Bytes>{Bytes(2, std::byte{0xff}), Bytes()}));
  Batch batch{9, 5, 1, Op::transfer, Type::bf16, 1 << 16, 1, 2, {{0, 2}, {2, 0}}, "direct", 77, false};
  EXPECT_EQ(again<fabric::Run>(fabric::Run{batch}).batch, batch);
  EXPECT_EQ(again<Leave>(Leave{5}).team, 5u);
}

TEST(FabricCodec, KeepsEvents) {
  const auto ready = again<Ready>(Ready{"ucx", "1.13.1", {"eth0"}, 12, {"net=Socket", "NCCL_ALGO="}});
  EXPECT_EQ(ready.version, "1.13.1");
  EXPECT_EQ(ready.lanes, std::vector<std::string>{"eth0"});
  EXPECT_EQ(ready.max_bytes, 12u);
  EXPECT_EQ(ready.terms, (std::vector<std::string>{"net=Socket", "NCCL_ALGO="}));
  EXPECT_EQ(again<Invited>(Invited{5, Bytes(3, std::byte{7})}).card, Bytes(3, std::byte{7}));
  EXPECT_EQ(again<Joined>(Joined{5, Ns(123), "tcp/eth0"}).took, Ns(123));
  const auto measured = again<Measured>(Measured{9, "ring", {kSample}});
  EXPECT_EQ(measured.algorithm, "ring");
  EXPECT_EQ(measured.local, std::vector<Sample>{kSample});
  const auto failed = again<Failed>(Failed{9, judge::Trouble::no_bytes, "node 2: reset", {kSample}});
  EXPECT_EQ(failed.trouble, judge::Trouble::no_bytes);
  EXPECT_EQ(failed.detail, "node 2: reset");
  EXPECT_EQ(failed.partial, std::vector<Sample>{kSample});
}

TEST(FabricCodec, KeepsSignsOfLife) {
  const auto decoded = decode_reply(encode(Reply(Alive{{{9, kSample}}})));
  ASSERT_TRUE(decoded);
  const auto& partial = std::get<Alive>(*decoded).partial;
  ASSERT_EQ(partial.size(), 1u);
  EXPECT_EQ(partial[0].first, 9u);
  EXPECT_EQ(partial[0].second, kSample);
}

TEST(FabricCodec, CutsAndCleansWhatALibrarySaid) {
  const std::string wild = std::string(10'000, 'x') + "\n\x1b[31m\xff";
  EXPECT_LE(again<Failed>(Failed{1, judge::Trouble::refused, wild, {}}).detail.size(), kMaxDetail);
  EXPECT_EQ(again<Failed>(Failed{1, judge::Trouble::refused, "a\n\xff", {}}).detail, "a ?");
}

std::string refusal(const Json& value) {
  const auto reply = decode_reply(to_cbor(value));
  const auto request = decode_request(to_cbor(value));
  EXPECT_FALSE(reply);
  EXPECT_FALSE(request);
  return reply ? "" : describe(reply.error());
}

TEST(FabricCodec, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal({{"kind", "surprise"}}), testing::HasSubstr("unknown kind"));
  refusal(Json::array());
  refusal({{"kind", "joined"}, {"team", -1}, {"took", 1}, {"transport", ""}});
  refusal({{"kind", "joined"}, {"team", 1}, {"took", 1.5}, {"transport", ""}});
  refusal(
      {{"kind", "failed"}, {"id", 1}, {"trouble", "bad_luck"}, {"detail", ""}, {"partial", Json::array()}});
  refusal({{"kind", "alive"}, {"partial", Json::array({Json{{"batch", 1}}})}});
  refusal({{"kind", "ready"},
           {"module", std::string(1000, 'm')},
           {"version", ""},
           {"lanes", Json::array()},
           {"max_bytes", 0},
           {"terms", Json::array()}});
  for (const Json& terms : {Json(1), Json::array({1}), Json::array({std::string(kMaxTerm + 1, 't')}),
                            Json(std::vector<std::string>(kMaxTerms + 1, "a=b"))})
    refusal({{"kind", "ready"},
             {"module", "nccl"},
             {"version", ""},
             {"lanes", Json::array()},
             {"max_bytes", 0},
             {"terms", terms}});
  refusal({{"kind", "open"}, {"devices", Json::array({1})}, {"max_bytes", 0}});
  for (const Json& settings :
       {Json(1), Json::array(), Json{{"library", 1}}, Json{{"x", std::string(5000, 'x')}}})
    refusal({{"kind", "open"}, {"devices", Json::array()}, {"max_bytes", 0}, {"settings", settings}});
  refusal({{"kind", "join"}, {"team", to_json(kTeam)}, {"cards", Json::array({"text"})}, {"self", 0}});
}

TEST(FabricCodec, RefusesACutFrame) {
  Bytes frame = encode(Request(fabric::Run{}));
  frame.pop_back();
  EXPECT_FALSE(decode_request(frame));
  EXPECT_FALSE(decode_reply(Bytes()));
}

}  // namespace
}  // namespace netcheck::fabric
