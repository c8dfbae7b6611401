// The UCX module for real, several nodes on the loopback device: every operation moves the right bytes, and
// what fails says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "../fabric/nodes.h"
#include "contract/wire.h"
#include "measure/collective.h"
#include "own_tree.h"

namespace netcheck::fabric {
namespace {

using testing::HasSubstr;

#ifndef NETCHECK_TEST_UCX
#define NETCHECK_TEST_UCX ""
#endif

std::vector<ChildCommand> commands(std::size_t nodes) {
  return std::vector<ChildCommand>(nodes,
                                   ChildCommand{own(NETCHECK_TEST_HOST), own(NETCHECK_TEST_UCX), "ucx"});
}

Team team_of(std::uint32_t nodes, std::uint32_t id = 1) {
  Team team{id, {}};
  for (std::uint32_t node = 0; node < nodes; ++node)
    team.ranks.push_back({node, 0});
  return team;
}

template <typename T>
std::string problem(const std::optional<Event>& event) {
  if (!event) return "no event";
  if (std::holds_alternative<T>(*event)) return "";
  const auto* failed = std::get_if<Failed>(&*event);
  return failed == nullptr ? "another event" : failed->detail;
}
template <typename T>
void expect_all(const std::vector<std::optional<Event>>& events) {
  for (std::size_t node = 0; node < events.size(); ++node)
    EXPECT_EQ(problem<T>(events[node]), "") << "node " << node;
}

class FabricUcx : public testing::TestWithParam<std::tuple<Op, std::string, int, Type>> {
 protected:
  void SetUp() override {
    if (std::string(NETCHECK_TEST_UCX).empty()) GTEST_SKIP() << "built without UCX";
  }
  /// `count` nodes, open and in team 1.
  static std::unique_ptr<Nodes> nodes_in_a_team(std::uint32_t count) {
    auto nodes = std::make_unique<Nodes>(commands(count));
    expect_all<Ready>(nodes->open({{"lo"}, 0}));
    expect_all<Joined>(nodes->form(team_of(count)));
    return nodes;
  }
};

TEST_F(FabricUcx, NamesItselfAndItsLanes) {
  Nodes nodes(commands(1));
  const auto events = nodes.open({{"lo"}, 0});
  ASSERT_EQ(problem<Ready>(events[0]), "");
  const auto& ready = std::get<Ready>(*events[0]);
  EXPECT_EQ(ready.module, "ucx");
  EXPECT_THAT(ready.version, testing::StartsWith("1."));
  EXPECT_EQ(ready.lanes, std::vector<std::string>{"lo"});
  EXPECT_EQ(ready.max_bytes, std::uint64_t{256} << 20);
}

TEST_F(FabricUcx, NamesADeviceThatIsNotThere) {
  for (const std::string device : {"eth99", "mlx5_9:1", "all", "lo,eth0", ""}) {
    Nodes nodes(commands(1));
    const auto events = nodes.open({{device}, 0});
    ASSERT_TRUE(events[0] && std::holds_alternative<Failed>(*events[0])) << device;
    EXPECT_EQ(std::get<Failed>(*events[0]).trouble, judge::Trouble::refused);
    EXPECT_THAT(std::get<Failed>(*events[0]).detail, HasSubstr(device));
  }
}

TEST_P(FabricUcx, MovesTheRightBytes) {
  const auto [op, algorithm, ranks, type] = GetParam();
  const auto count = static_cast<std::uint32_t>(ranks);
  const auto nodes = nodes_in_a_team(count);
  std::uint32_t id = 0;
  // One message per piece, several, and sizes that no piece divides.
  for (const std::uint64_t wanted :
       {std::uint64_t{48} << 10, std::uint64_t{3} << 20, std::uint64_t{1'400'000}}) {
    Batch batch;
    batch.id = ++id;
    batch.team = 1;
    batch.root = count - 1;
    batch.op = op;
    batch.type = type;
    batch.algorithm = algorithm;
    batch.bytes = actual_bytes(op, type, count, wanted);
    batch.warmup = id % 2;
    batch.iterations = 4;
    batch.seed = 1000 + id;
    const auto events = nodes->run(team_of(count), batch);
    for (std::uint32_t node = 0; node < count; ++node) {
      ASSERT_EQ(problem<Measured>(events[node]), "") << "node " << node;
      const auto& measured = std::get<Measured>(*events[node]);
      ASSERT_EQ(measured.local.size(), 1u);
      EXPECT_EQ(measured.local[0].rank, node);
      EXPECT_EQ(measured.local[0].wrong, 0u);
      EXPECT_EQ(measured.local[0].done.size(), 4u);
      EXPECT_TRUE(std::is_sorted(measured.local[0].done.begin(), measured.local[0].done.end()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operations, FabricUcx,
    testing::Values(
        std::tuple(Op::all_gather, "", 4, Type::f32), std::tuple(Op::all_gather, "", 3, Type::u8),
        std::tuple(Op::all_gather, "doubling", 4, Type::i32), std::tuple(Op::all_reduce, "", 4, Type::f32),
        std::tuple(Op::all_reduce, "", 3, Type::bf16), std::tuple(Op::all_reduce, "doubling", 4, Type::i32),
        std::tuple(Op::reduce_scatter, "", 4, Type::f32), std::tuple(Op::alltoall, "", 4, Type::f32),
        std::tuple(Op::broadcast, "", 4, Type::f32), std::tuple(Op::reduce, "", 3, Type::i32),
        std::tuple(Op::gather, "", 4, Type::f32), std::tuple(Op::scatter, "", 4, Type::f32)));

TEST_F(FabricUcx, CountsWhatARankReceives) {
  // A ring all_gather of 4: each rank receives 3 of 4 blocks, in one warm-up and three timed operations.
  const auto nodes = nodes_in_a_team(4);
  Batch batch;
  batch.id = 1;
  batch.team = 1;
  batch.bytes = 1 << 20;
  batch.warmup = 1;
  batch.iterations = 3;
  for (const auto& event : nodes->run(team_of(4), batch))
    EXPECT_EQ(std::get<Measured>(*event).local[0].received, 4u * 3 * (1 << 18));
}

TEST_F(FabricUcx, TransfersBothWaysBetweenPairs) {
  const auto nodes = nodes_in_a_team(4);
  Batch batch;
  batch.id = 1;
  batch.team = 1;
  batch.op = Op::transfer;
  batch.bytes = 1 << 20;
  batch.warmup = 1;
  batch.iterations = 5;
  batch.edges = {{0, 1}, {1, 0}, {2, 3}};
  const auto events = nodes->run(team_of(4), batch);
  expect_all<Measured>(events);
  const auto sample = [&events](std::size_t node) { return std::get<Measured>(*events[node]).local.at(0); };
  for (const std::size_t receiver : {0u, 1u, 3u}) {
    EXPECT_EQ(sample(receiver).done.size(), 5u);
    EXPECT_EQ(sample(receiver).received, 6u << 20);
    EXPECT_EQ(sample(receiver).wrong, 0u);
  }
  EXPECT_TRUE(sample(2).done.empty()) << "a sender is timed at its receiver";
  EXPECT_EQ(sample(2).received, 0u);
}

TEST_F(FabricUcx, RunsTeamsSideBySide) {
  Nodes nodes(commands(2));
  expect_all<Ready>(nodes.open({{"lo", "lo"}, 0}));
  const Team one{1, {{0, 0}, {1, 0}}}, two{2, {{0, 1}, {1, 1}}};
  expect_all<Joined>(nodes.form(one));
  expect_all<Joined>(nodes.form(two));
  for (const std::uint32_t node : {0u, 1u})
    for (const std::uint32_t team : {1u, 2u}) {
      Batch batch;
      batch.id = team;
      batch.team = team;
      batch.bytes = 4 << 20;
      batch.iterations = 4;
      nodes.fabric(node).run(batch);
    }
  std::set<std::uint32_t> answered;
  for (int i = 0; i < 2; ++i)
    for (const auto& event : nodes.gather({0, 1}, std::chrono::seconds(20))) {
      ASSERT_EQ(problem<Measured>(event), "");
      answered.insert(std::get<Measured>(*event).batch);
    }
  EXPECT_EQ(answered, (std::set<std::uint32_t>{1, 2}));
}

TEST_F(FabricUcx, RefusesWhatItCannotRun) {
  const auto nodes = nodes_in_a_team(2);
  const auto refusal = [&nodes](auto change) {
    Batch batch;
    batch.id = 5;
    batch.team = 1;
    batch.bytes = 4096;
    batch.iterations = 1;
    change(batch);
    nodes->fabric(0).run(batch);
    const auto event = nodes->gather({0}, std::chrono::seconds(5))[0];
    if (!event || !std::holds_alternative<Failed>(*event)) return std::string("accepted");
    EXPECT_EQ(std::get<Failed>(*event).trouble, judge::Trouble::refused);
    return std::get<Failed>(*event).detail;
  };
  EXPECT_THAT(refusal([](Batch& batch) { batch.team = 9; }), HasSubstr("team 9 was not joined"));
  EXPECT_THAT(refusal([](Batch& batch) { batch.bytes = std::uint64_t{1} << 40; }),
              HasSubstr("above the cap"));
  EXPECT_THAT(refusal([](Batch& batch) { batch.algorithm = "tree"; }), HasSubstr("no such algorithm"));
  EXPECT_THAT(refusal([](Batch& batch) { batch.root = 2; }), HasSubstr("root 2"));
  EXPECT_THAT(refusal([](Batch& batch) { batch.id = 1 << 20; }), HasSubstr("ids go to"));
  EXPECT_THAT(refusal([](Batch& batch) {
                batch.op = Op::transfer;
                batch.edges = {{0, 7}};
              }),
              HasSubstr("edge 0 to 7"));
}

TEST_F(FabricUcx, ADeadPeerFailsTheBatchButNotTheFabric) {
  const auto nodes = nodes_in_a_team(3);
  Batch batch;
  batch.id = 1;
  batch.team = 1;
  batch.bytes = 3 << 20;
  batch.iterations = 2;
  expect_all<Measured>(nodes->run(team_of(3), batch));
  nodes->fabric(2).abandon();
  batch.id = 2;
  nodes->fabric(0).run(batch);
  nodes->fabric(1).run(batch);
  const auto events = nodes->gather({0, 1}, std::chrono::seconds(10));
  for (const std::size_t node : {0u, 1u}) {
    ASSERT_TRUE(events[node] && std::holds_alternative<Failed>(*events[node])) << node;
    EXPECT_EQ(std::get<Failed>(*events[node]).trouble, judge::Trouble::no_bytes);
    EXPECT_THAT(std::get<Failed>(*events[node]).detail, HasSubstr("node 2: "));
    EXPECT_EQ(std::get<Failed>(*events[node]).partial.size(), 1u);
  }
  nodes->fabric(0).leave(1);
  nodes->fabric(1).leave(1);
  // The same fabrics go on, with the third one's new child in its place.
  nodes->fabric(2).open({{"lo"}, 0});
  expect_all<Ready>({nodes->gather({2}, std::chrono::seconds(5))[2]});
  expect_all<Joined>(nodes->form(team_of(3, 2)));
  batch.id = 3;
  batch.team = 2;
  expect_all<Measured>(nodes->run(team_of(3, 2), batch));
}

TEST_F(FabricUcx, AStoppedPeerIsWaitedForUntilGivenUp) {
  const auto nodes = nodes_in_a_team(2);
  Batch batch;
  batch.id = 1;
  batch.team = 1;
  batch.op = Op::transfer;
  batch.bytes = 1 << 20;
  batch.iterations = 2;
  batch.edges = {{0, 1}};
  expect_all<Measured>(nodes->run(team_of(2), batch));
  batch.id = 2;
  nodes->fabric(1).run(batch);  // and node 0 never does
  EXPECT_FALSE(nodes->gather({1}, std::chrono::seconds(1))[1]);
  nodes->fabric(1).abandon();
  const auto event = nodes->gather({1}, std::chrono::seconds(1))[1];
  ASSERT_TRUE(event);
  EXPECT_EQ(std::get<Failed>(*event).trouble, judge::Trouble::no_bytes);
  ASSERT_EQ(std::get<Failed>(*event).partial.size(), 1u);
  EXPECT_EQ(std::get<Failed>(*event).partial[0].received, 0u);
}

TEST_F(FabricUcx, ACardOfAnotherVersionIsRefusedByName) {
  Nodes nodes(commands(1));
  expect_all<Ready>(nodes.open({{"lo"}, 0}));
  const Json card{{"version", "1.9.0"},
                  {"addresses", Json::array({bytes_to_json(Bytes(8))})},
                  {"key", Json::binary(std::vector<std::uint8_t>(32))}};
  nodes.fabric(0).invite(team_of(2), 0);
  const auto invited = nodes.gather({0}, std::chrono::seconds(5))[0];
  nodes.fabric(0).join({team_of(2), {std::get<Invited>(*invited).card, to_cbor(card)}, 0});
  const auto event = nodes.gather({0}, std::chrono::seconds(5))[0];
  ASSERT_TRUE(event && std::holds_alternative<Failed>(*event));
  EXPECT_THAT(std::get<Failed>(*event).detail, HasSubstr("node 1: UCX 1.9.0 there"));
}

}  // namespace
}  // namespace netcheck::fabric
