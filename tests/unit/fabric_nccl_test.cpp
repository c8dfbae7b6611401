// The NCCL module over stand-ins: two nodes of two GPUs on this machine. Every operation moves the right
// bytes.
#include "fabric_nccl_stand.h"

namespace netcheck::fabric {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using namespace std::chrono_literals;

TEST_F(FabricNccl, NamesItselfAndItsGpus) {
  const auto events = open({""});
  ASSERT_TRUE(is<Ready>(events[0])) << failure_of(events[0]);
  const auto& ready = std::get<Ready>(*events[0]);
  EXPECT_EQ(ready.module, "nccl");
  EXPECT_EQ(ready.version, "2.28.9");
  EXPECT_THAT(ready.lanes, ElementsAre(kGpus[0], kGpus[1]));
  EXPECT_EQ(ready.max_bytes, std::uint64_t{16} << 20);
  // What the module itself sets; the machine's own plugin and settings are not known here.
  EXPECT_THAT(ready.terms, testing::Contains("NCCL_ALGO=Ring"));
  EXPECT_THAT(ready.terms, testing::Contains(testing::StartsWith("net=")));
}

TEST_F(FabricNccl, NamesGpusThatSlurmNumbered) {
  // Slurm counts as /dev/nvidiaN does: here GPU f0 is /dev/nvidia5, and f1 is /dev/nvidia3.
  nodes_ = std::make_unique<Nodes>(
      std::vector{ChildCommand{own(NETCHECK_TEST_HOST), own(NETCHECK_TEST_NCCL), "nccl"}});
  Options numbered = options(0, "gpus=3\nminors=5,3");
  numbered.devices = {"gpu:3", "gpu:5"};
  const auto event = nodes_->open(numbered)[0];
  ASSERT_TRUE(is<Ready>(event)) << failure_of(event);
  EXPECT_THAT(std::get<Ready>(*event).lanes, ElementsAre(kGpus[1], kGpus[0]));
}

TEST_F(FabricNccl, WhatAJobSeesOfItsGpusIsNothingToTheCheck) {
  // Slurm has it in the prolog's environment, and the stand-in would hide all.
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  const auto events = open({""});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_TRUE(is<Ready>(events[0])) << failure_of(events[0]);
}

TEST_F(FabricNccl, EveryOperationMovesTheRightBytesInEveryType) {
  form();
  std::uint32_t id = 0;
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::alltoall, Op::broadcast,
                      Op::reduce, Op::gather, Op::scatter, Op::transfer})
    for (const Type type : {Type::u8, Type::i32, Type::f32, Type::bf16}) {
      Batch one = batch(op, 0, ++id);
      one.type = type;
      one.root = op == Op::transfer ? 0 : id % 4;
      one.bytes = actual_bytes(op, type, 4, 100'000 + id * 1'000);
      const auto all = samples(nodes_->run(kTeam, one));
      ASSERT_THAT(all, SizeIs(4));
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(all[rank].rank, rank);
        EXPECT_EQ(all[rank].wrong, 0u) << name(op) << " " << name(type) << " rank " << rank;
        EXPECT_EQ(all[rank].done.size(), op == Op::transfer && rank == 1 ? 0u : 3u) << name(op);
        EXPECT_TRUE(std::is_sorted(all[rank].done.begin(), all[rank].done.end()));
      }
    }
}

// What is slow within a node is found so: every rank sends and receives, and no byte leaves a node.
TEST_F(FabricNccl, MovesBytesWithinEachNode) {
  form();
  Batch one = batch(Op::transfer, 1 << 20, 9);
  one.edges = {{0, 1}, {1, 0}, {2, 3}, {3, 2}};
  const auto all = samples(nodes_->run(kTeam, one));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(all[rank].done.size(), 3u) << rank;
    EXPECT_EQ(all[rank].wrong, 0u) << rank;
  }
}

TEST_F(FabricNccl, CountsWhatOperationsBring) {
  form();
  // 4 operations with the warm-up. all_reduce: 2 · 3/4 of S each; a transfer: S each, to who has an edge in.
  for (const auto& sample : samples(nodes_->run(kTeam, batch(Op::all_reduce, 1 << 20))))
    EXPECT_EQ(sample.received, 4u * 2 * 3 * (1 << 18));
  const auto all = samples(nodes_->run(kTeam, batch(Op::transfer, 1 << 20, 2)));
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_EQ(all[0].received, 4u << 20);
  EXPECT_EQ(all[1].received, 0u);
  EXPECT_EQ(all[3].received, 4u << 20);
}

TEST_F(FabricNccl, SaysWhichWayTheBytesGo) {
  open({"", ""});
  for (const auto& event : nodes_->form(kTeam)) {
    ASSERT_TRUE(is<Joined>(event)) << failure_of(event);
    // One ring leaves the node from one GPU, another from the other: each has a way out and one inside.
    EXPECT_THAT(std::get<Joined>(*event).transport,
                testing::AllOf(testing::HasSubstr("Socket/"), testing::HasSubstr("P2P/fake")));
    EXPECT_GT(std::get<Joined>(*event).took, 0ns);
  }
}

TEST_F(FabricNccl, OneGpuAlone) {
  open({""});
  const Team alone{1, {{0, 1}}};
  ASSERT_TRUE(is<Joined>(nodes_->form(alone)[0]));
  const auto all = samples(nodes_->run(alone, batch(Op::all_reduce, 1 << 20)));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].wrong, 0u);
  EXPECT_EQ(all[0].received, 0u);
}

TEST_F(FabricNccl, TeamsSideBySideAndOneAfterTheOtherOnTheSameGpus) {
  form();
  const Team first{2, {{0, 0}, {1, 0}}}, second{3, {{0, 1}, {1, 1}}}, uneven{4, {{0, 0}, {0, 1}, {1, 1}}};
  for (const Team& team : {first, second, uneven})
    for (const auto& event : nodes_->form(team))
      ASSERT_TRUE(is<Joined>(event)) << failure_of(event);
  for (const std::uint32_t team : {2u, 3u}) {
    Batch one = batch(Op::all_reduce, 1 << 20, team);
    one.team = team;
    for (const std::size_t node : {0u, 1u})
      nodes_->fabric(node).run(one);
  }
  for (int i = 0; i < 2; ++i)
    for (const auto& sample : samples(nodes_->gather({0, 1}, 10s)))
      EXPECT_EQ(sample.wrong, 0u);
  Batch one = batch(Op::reduce_scatter, actual_bytes(Op::reduce_scatter, Type::f32, 3, 1 << 20), 4);
  one.team = 4;
  const auto all = samples(nodes_->run(uneven, one));
  ASSERT_THAT(all, SizeIs(3));
  for (const auto& sample : all)
    EXPECT_EQ(sample.wrong, 0u);
}

TEST_F(FabricNccl, FindsOneWrongElement) {
  form({"", "wrong_element=7"});
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::transfer}) {
    const auto all = samples(nodes_->run(kTeam, batch(op, 1 << 20, static_cast<std::uint32_t>(op) + 1)));
    ASSERT_THAT(all, SizeIs(4));
    EXPECT_EQ(all[0].wrong, 0u);
    EXPECT_EQ(all[2].wrong, 1u) << name(op);
  }
}

TEST_F(FabricNccl, ASlowLinkShowsInTheTimes) {
  // A transfer of 1 MiB at 20 MB/s takes 52 ms; three take 157 ms.
  form({"slow=20000000", ""});
  Batch one = batch(Op::transfer, 1 << 20);
  one.edges = {{0, 2}};
  const auto all = samples(nodes_->run(kTeam, one));
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_GT(all[2].done.back(), 150ms);
}

}  // namespace
}  // namespace netcheck::fabric
