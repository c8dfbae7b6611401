// What leader and follower say, through the codec and back; and frames that a hostile peer might send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/wire.h"
#include "session/messages.h"
#include "session_cast.h"

namespace netcheck::session::test {
namespace {

using testing::HasSubstr;

template <typename Kind>
Kind round_trip(const Kind& message) {
  const auto decoded = decode(encode(message), "n2");
  if (!decoded) throw std::runtime_error(describe(decoded.error()));
  return std::get<Kind>(*decoded);
}

TEST(Messages, PresentArrivesAsItWasSent) {
  Present sent = present(assignment(2, 1));
  sent.inventory.nics.push_back({.name = "eth0", .ucx_device = "eth0", .address = "10.0.0.2", .up = true});
  sent.declined = "busy";
  const Present got = round_trip(sent);
  EXPECT_EQ(got.declined, "busy");
  EXPECT_EQ(got.inventory.node, "n");
  EXPECT_EQ(got.inventory.nics.at(0).address, "10.0.0.2");
  EXPECT_EQ(got.agreement, sent.agreement);
  EXPECT_EQ(got.terms, sent.terms);
  EXPECT_EQ(got.remaining, seconds(8));
}

TEST(Messages, OpenedAndBrokenArriveAsTheyWereSent) {
  Opened sent{.ready = ready({"eth0", "eth1"}), .took = Ns{7}};
  sent.ready.terms = {"net=Socket", "NCCL_IB_HCA=mlx5_0,mlx5_1"};
  const Opened opened = round_trip(sent);
  EXPECT_EQ(opened.ready.terms, sent.ready.terms);
  EXPECT_EQ(opened.ready.module, "ucx");
  EXPECT_EQ(opened.ready.version, "1.13.1");
  EXPECT_EQ(opened.ready.lanes, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(opened.ready.max_bytes, 1u << 20);
  EXPECT_EQ(opened.took, Ns{7});
  EXPECT_FALSE(opened.hardware);
  const judge::NodeHardware hardware{.traits = {{"MTU", "2 × 9000", false}},
                                     .flaws = {{Flaw::port_down, "mlx5_0", "it is down"}},
                                     .rails = {{"mlx5_0:1", true, Rate{400e9}}, {"eth0", false, {}}}};
  EXPECT_EQ(round_trip(Opened{.ready = ready(), .hardware = hardware}).hardware, hardware);
  const Broken broken = round_trip(Broken{.trouble = judge::Trouble::child_died, .detail = "signal 11"});
  EXPECT_EQ(broken.trouble, judge::Trouble::child_died);
  EXPECT_EQ(broken.detail, "signal 11");
}

TEST(Messages, CardsArriveAsTheyWereSent) {
  const Bytes card = {std::byte{0}, std::byte{255}, std::byte{7}};
  const Cards cards = round_trip(Cards{.step = 4, .cards = {{7, card}, {8, {}}}});
  EXPECT_EQ(cards.step, 4U);
  EXPECT_EQ(cards.cards, (std::vector<TeamCard>{{7, card}, {8, {}}}));
  const Connect connect = round_trip(Connect{.step = 4, .teams = {{7, {card, {}}}}, .allowance = seconds(1)});
  EXPECT_EQ(connect.teams, (std::vector<TeamCards>{{7, {card, {}}}}));
  EXPECT_EQ(connect.allowance, seconds(1));
}

TEST(Messages, OrdersArriveAsTheyWereSent) {
  const Team team{.id = 7, .ranks = {{0, 0}, {1, 1}}};
  EXPECT_EQ(round_trip(Invite{.step = 1, .teams = {team}, .allowance = Ns{5}}).teams, std::vector{team});
  const Batch batch{.id = 9,
                    .team = 7,
                    .root = 1,
                    .op = Op::transfer,
                    .type = Type::bf16,
                    .bytes = 4'096,
                    .warmup = 1,
                    .iterations = 3,
                    .edges = {{0, 1}},
                    .algorithm = "direct",
                    .seed = UINT64_MAX,
                    .verify = false};
  EXPECT_EQ(round_trip(session::Run{.step = 2, .batches = {batch}, .allowance = Ns{6}}).batches,
            std::vector{batch});
  const Close close = round_trip(Close{.verdict = "fail", .line = "netcheck=fail"});
  EXPECT_EQ(close.verdict, "fail");
  EXPECT_EQ(close.line, "netcheck=fail");
}

TEST(Messages, AnswersArriveAsTheyWereSent) {
  const Sample sample{.rank = 1, .done = {Ns{5}, Ns{9}}, .received = 8'192, .wrong = 2, .kept = Ns{3}};
  const Answer sent{.step = 3,
                    .outcome = {.node = 1,
                                .samples = {sample},
                                .batch = {9},
                                .trouble = judge::Trouble::no_bytes,
                                .detail = "in vain",
                                .took = Ns{11}},
                    .transport = "tcp/eth0"};
  const Answer got = round_trip(sent);
  EXPECT_EQ(got.step, 3U);
  EXPECT_EQ(got.outcome.node, 1U);
  EXPECT_EQ(got.outcome.samples, std::vector{sample});
  EXPECT_EQ(got.outcome.batch, std::vector<std::uint32_t>{9});
  EXPECT_EQ(got.outcome.trouble, judge::Trouble::no_bytes);
  EXPECT_EQ(got.outcome.detail, "in vain");
  EXPECT_EQ(got.outcome.took, Ns{11});
  EXPECT_EQ(got.transport, "tcp/eth0");
  EXPECT_FALSE(round_trip(Answer{}).outcome.trouble);
}

// --- hostile frames ---------------------------------------------------------------------------------------

std::string refusal(const Json& value) {
  const auto decoded = decode(to_cbor(value), "n2");
  return decoded ? "" : describe(decoded.error());
}

Json answer_json() {
  return {{"kind", "answer"},
          {"step", 1},
          {"outcome",
           {{"node", 0}, {"samples", Json::array()}, {"batch", Json::array()}, {"detail", ""}, {"took", 0}}},
          {"transport", ""}};
}

TEST(HostileFrames, TheAnswerThatTheyAreMadeFromIsFine) {
  EXPECT_EQ(refusal(answer_json()), "");
}

TEST(HostileFrames, NameTheirSender) {
  EXPECT_THAT(refusal(Json::object()), HasSubstr("n2"));
}

TEST(HostileFrames, OfUnknownKindAreRefused) {
  EXPECT_THAT(refusal({{"kind", "shutdown\n"}}), HasSubstr("no such message: shutdown"));
  EXPECT_NE(refusal({{"kind", 7}}), "");
  EXPECT_NE(refusal(Json::array({1, 2})), "");
}

TEST(HostileFrames, WithNumbersOutOfRangeAreRefused) {
  for (const Json& bad : {Json(-1), Json(1.5), Json("1"), Json(std::uint64_t{UINT32_MAX} + 1), Json()}) {
    Json value = answer_json();
    value["step"] = bad;
    EXPECT_NE(refusal(value), "") << bad;
  }
  Json value = answer_json();
  value["outcome"]["took"] = -1;
  EXPECT_NE(refusal(value), "");
}

TEST(HostileFrames, WithSamplesOfNoBatchAreRefused) {
  Json value = answer_json();
  value["outcome"]["batch"] = {9};
  EXPECT_THAT(refusal(value), HasSubstr("samples without their batch"));
}

TEST(HostileFrames, WithInventedTroublesAreRefused) {
  Json value = answer_json();
  value["outcome"]["trouble"] = "laziness";
  EXPECT_THAT(refusal(value), HasSubstr("no such trouble"));
}

TEST(HostileFrames, WithEndlessTextsAreRefused) {
  Json value = answer_json();
  value["transport"] = std::string(1u << 20, 'x');
  EXPECT_NE(refusal(value), "");
}

TEST(HostileFrames, WithCardsThatAreNoBytesOrTooManyAreRefused) {
  Json value = {{"kind", "connect"}, {"step", 1}, {"allowance", 1}, {"teams", Json::array()}};
  EXPECT_EQ(refusal(value), "");
  value["teams"] = {{{"team", 1}, {"cards", {"text"}}}};
  EXPECT_NE(refusal(value), "");
  value["teams"] = Json::array();
  for (int i = 0; i < 1'000; ++i)
    value["teams"].push_back({{"team", i}, {"cards", Json::array()}});
  EXPECT_NE(refusal(value), "");
}

TEST(HostileFrames, CutOffAnywhereAreRefused) {
  const Bytes whole = encode(present(assignment(2, 1)));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), "n2"))
        << size;
}

TEST(HostileFrames, WithAnyByteChangedNeverCrash) {
  const Bytes whole = encode(Answer{.step = 3, .outcome = {.node = 1, .samples = {Sample{}}, .batch = {9}}});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      Bytes changed = whole;
      changed[at] = static_cast<std::byte>(value);
      static_cast<void>(decode(changed, "n2"));
    }
  }
}

}  // namespace
}  // namespace netcheck::session::test
