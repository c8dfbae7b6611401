// Names and the strict JSON of batches: what another process says is either exact or refused.
#include <gmock/gmock.h>

#include "contract/wire.h"
#include "measure/batch.h"

namespace netcheck {
namespace {

using testing::HasSubstr;

Team team() {
  return {.id = 3, .ranks = {{0, 0}, {2, 1}, {5, 0}}};
}

Batch transfer() {
  return {.id = 9,
          .team = 3,
          .root = 1,
          .op = Op::transfer,
          .type = Type::bf16,
          .bytes = 1 << 20,
          .warmup = 2,
          .iterations = 15,
          .edges = {{0, 1}, {1, 2}, {2, 0}},
          .algorithm = "direct",
          .seed = UINT64_MAX,
          .verify = false};
}

Sample sample() {
  return {.rank = 2,
          .done = {Ns{5}, Ns{5}, Ns{1'000'000'007}},
          .received = 77,
          .wrong = 1,
          .kept = Ns{9},
          .lack = Lack::tcp_memory};
}

/// As it travels: through CBOR and the one place that catches.
template <typename Read>
auto travelled(const Json& value, Read read) {
  return read_frame(to_cbor(value), "n1", read);
}

template <typename Read>
std::string refusal(const Json& value, Read read) {
  const auto result = travelled(value, read);
  return result ? std::string("accepted") : describe(result.error());
}

TEST(BatchJson, ComesBackAsItWas) {
  EXPECT_EQ(*travelled(to_json(team()), team_from_json), team());
  EXPECT_EQ(*travelled(to_json(transfer()), batch_from_json), transfer());
  EXPECT_EQ(*travelled(to_json(sample()), sample_from_json), sample());
}

TEST(BatchJson, ReadsWhatWasNeverSerialised) {
  EXPECT_EQ(sample_from_json(to_json(sample())), sample());
}

TEST(BatchJson, RefusesARankTwiceInATeam) {
  Team twice = team();
  twice.ranks.push_back({2, 1});
  EXPECT_THAT(refusal(to_json(twice), team_from_json), HasSubstr("twice"));
}

TEST(BatchJson, RefusesRanksThatAreNoPairsOfNumbersInRange) {
  for (const auto& bad : {Json(7), Json({1}), Json({1, 2, 3}), Json({-1, 0}), Json({0, 65'536}),
                          Json({16'384, 0}), Json({0.0, 0}), Json({"0", 0})}) {
    Json value = to_json(team());
    value["ranks"][0] = bad;
    EXPECT_NE(refusal(value, team_from_json), "accepted") << bad;
  }
}

TEST(BatchJson, RefusesBatchesOutOfBounds) {
  for (const auto& [key, bad] : std::vector<std::pair<std::string, Json>>{{"bytes", (1ULL << 40U) + 1},
                                                                          {"bytes", -1},
                                                                          {"iterations", 4'097},
                                                                          {"warmup", 4'097},
                                                                          {"root", 65'536},
                                                                          {"op", "all_reduse"},
                                                                          {"type", "f64"},
                                                                          {"algorithm", std::string(33, 'x')},
                                                                          {"verify", 1}}) {
    Json value = to_json(transfer());
    value[key] = bad;
    EXPECT_NE(refusal(value, batch_from_json), "accepted") << key << " " << bad;
  }
}

TEST(BatchJson, RefusesTwoEdgesOutOfOrIntoARankAndARankToItself) {
  for (const auto& bad :
       {Json({{0, 1}, {0, 2}}), Json({{0, 2}, {1, 2}}), Json({{1, 1}}), Json({{0, 65'536}})}) {
    Json value = to_json(transfer());
    value["edges"] = bad;
    EXPECT_NE(refusal(value, batch_from_json), "accepted") << bad;
  }
}

TEST(BatchJson, RefusesEdgesOfACollective) {
  Json value = to_json(transfer());
  value["op"] = "all_gather";
  EXPECT_THAT(refusal(value, batch_from_json), HasSubstr("edges belong to transfer"));
}

TEST(BatchJson, RefusesSamplesThatFallOrAreTooMany) {
  Json falling = to_json(sample());
  falling["done"] = {5, 4};
  EXPECT_THAT(refusal(falling, sample_from_json), HasSubstr("fall"));
  Json many = to_json(sample());
  many["done"] = std::vector<int>(4'097, 1);
  EXPECT_NE(refusal(many, sample_from_json), "accepted");
  Json negative = to_json(sample());
  negative["done"] = {-5};
  EXPECT_NE(refusal(negative, sample_from_json), "accepted");
  Json lacking = to_json(sample());
  lacking["lack"] = "sleep";
  EXPECT_THAT(refusal(lacking, sample_from_json), HasSubstr("no such lack"));
}

TEST(Names, AreReadBackAndAStrangerIsNamedWithTheChoices) {
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::alltoall, Op::broadcast,
                      Op::reduce, Op::gather, Op::scatter, Op::transfer})
    EXPECT_EQ(*parse_op(name(op)), op);
  for (const Type type : {Type::u8, Type::i32, Type::f32, Type::bf16})
    EXPECT_EQ(*parse_type(name(type)), type);
  EXPECT_EQ(name(Op::all_gather), "all_gather");
  const auto stranger = parse_op("allgather");
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().subject, "allgather");
  EXPECT_THAT(stranger.error().remedy, HasSubstr("all_gather"));
}

TEST(SizeOf, IsBytesPerElement) {
  EXPECT_EQ(size_of(Type::u8), 1U);
  EXPECT_EQ(size_of(Type::i32), 4U);
  EXPECT_EQ(size_of(Type::f32), 4U);
  EXPECT_EQ(size_of(Type::bf16), 2U);
}

}  // namespace
}  // namespace netcheck
