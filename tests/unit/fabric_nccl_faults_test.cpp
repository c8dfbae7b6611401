// What the NCCL module refuses, and what breaks and hangs under it: it says so, in words. And the real NCCL.
#include "fabric_nccl_stand.h"

namespace netcheck::fabric {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using namespace std::chrono_literals;

// --- what is refused --------------------------------------------------------------------------------------

TEST_F(FabricNccl, ANodeWithoutGpusIsToldSoAtOnce) {
  Options none = options(0);
  none.settings["driver"] = folder_ + "/nowhere.so.1";
  const Time begin = system::now();
  EXPECT_THAT(refusal(none), AllOf(HasSubstr("nowhere.so.1: no driver for GPUs on this node ("),
                                   HasSubstr("No such file"), Not(HasSubstr("node without"))));
  EXPECT_LT(system::now() - begin, 1s);  // with the start of a process, on a busy machine
  for (const std::string result : {"34", "35", "100"})
    EXPECT_THAT(refusal(options(0, "cuinit=" + result)), HasSubstr("a node without GPUs")) << result;
  EXPECT_THAT(refusal(options(0, "cuinit=3")), AllOf(HasSubstr("open CUDA"), Not(HasSubstr("without GPUs"))));
}

TEST_F(FabricNccl, WhatIsNoNcclIsRefusedInWords) {
  Options other = options(0);
  other.settings["library"] = "libnccl.so.2";
  EXPECT_THAT(refusal(other), HasSubstr("'libnccl.so.2' is no absolute path"));
  other.settings["library"] = folder_ + "/0/libcuda.so.1";
  EXPECT_THAT(refusal(other), HasSubstr("it is no NCCL"));
  other.settings["library"] = folder_ + "/gone.so";
  EXPECT_THAT(refusal(other), HasSubstr("No such file"));
  EXPECT_THAT(refusal(options(0, "version=21705")),
              AllOf(HasSubstr("NCCL 2.17.5"), HasSubstr("2.18 or later is needed")));
  EXPECT_THAT(refusal(options(0, "version=2708")), HasSubstr("NCCL 2.7.8"));
}

TEST_F(FabricNccl, AnotherMachinesLibraryIsRefusedInWords) {
  // An ELF header alone, of a 64-bit ARM shared object: e_machine, at 18, is 183.
  std::ifstream source(own(NETCHECK_TEST_GPU) + "/libnccl.so.2", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(source)), {});
  bytes.at(18) = static_cast<char>(183);
  Options other = options(0);
  other.settings["library"] = folder_ + "/0/arm.so";
  std::ofstream(folder_ + "/0/arm.so", std::ios::binary) << bytes;
  EXPECT_THAT(refusal(other), HasSubstr("arm.so: "));
  // And what is no library at all.
  std::ofstream(folder_ + "/0/arm.so", std::ios::binary) << "hello";
  EXPECT_THAT(refusal(other), HasSubstr("arm.so: "));
}

TEST_F(FabricNccl, ALibraryThatLacksACallIsRefusedWithItsName) {
  std::ifstream source(own(NETCHECK_TEST_GPU) + "/libnccl.so.2", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(source)), {});
  const std::string call = "ncclReduceScatter";
  for (auto at = bytes.find(call); at != std::string::npos; at = bytes.find(call, at + 1))
    bytes[at] = 'x';
  Options other = options(0);
  other.settings["library"] = folder_ + "/0/less.so";
  std::ofstream(folder_ + "/0/less.so", std::ios::binary) << bytes;
  EXPECT_THAT(refusal(other), HasSubstr("less.so: it has no ncclReduceScatter"));
}

TEST_F(FabricNccl, AGpuThatIsNotThereIsNamed) {
  Options other = options(0);
  for (const std::string device : {"0000:f2:00.0", "cuda:0", ""}) {
    other.devices[1] = device;
    EXPECT_THAT(refusal(other), HasSubstr("GPU " + device + ": the driver knows no such GPU"));
  }
  other.devices.clear();
  EXPECT_THAT(refusal(other), HasSubstr("no GPU was given"));
}

TEST_F(FabricNccl, ANumberThatNoGpuHasIsNamed) {
  Options other = options(0, "gpus=2\nminors=0,2");
  other.devices = {"gpu:0", "gpu:1"};
  EXPECT_THAT(refusal(other),
              AllOf(HasSubstr("GPU 1: there is no /dev/nvidia1, but 0, 2"), HasSubstr("gres.conf")));
  other.devices = {"gpu:2", kGpus[1]};
  EXPECT_THAT(refusal(other), HasSubstr("it was given twice"));
  other.devices = {"gpu:0"};
  other.settings["watcher"] = folder_ + "/gone.so.1";
  EXPECT_THAT(refusal(other),
              HasSubstr("GPU 0: neither NVML nor /proc/driver/nvidia/gpus tells which one it is"));
}

TEST_F(FabricNccl, SettingsThatAreNotASitesAreRefused) {
  for (const auto& [name, words] :
       {std::pair("NCCL_COMM_ID", "netcheck sets it itself"),
        std::pair("NCCL_DEBUG_FILE", "netcheck sets it itself"), std::pair("LD_PRELOAD", "busy and NCCL_*"),
        std::pair("NCCL_x y", "none of NCCL's variables")}) {
    Options other = options(0);
    other.settings[name] = "1";
    EXPECT_THAT(refusal(other), HasSubstr(words)) << name;
  }
}

TEST_F(FabricNccl, AGpuThatIsNotFitIsNamedWithItsReason) {
  EXPECT_THAT(refusal(options(0, "mig=1")), AllOf(HasSubstr(kGpus[0]), HasSubstr("MIG mode")));
  EXPECT_THAT(refusal(options(0, "process=4711")),
              AllOf(HasSubstr(kGpus[0]), HasSubstr("process 4711 computes")));
  EXPECT_THAT(refusal(options(0, "remap_failed=1")), HasSubstr("could not be remapped"));
  Options forced = options(0, "mig=1\nprocess=4711");
  forced.settings["mig"] = forced.settings["busy"] = "measure";
  EXPECT_EQ(refusal(forced), "opened");
  forced.settings["mig"] = "maybe";
  EXPECT_THAT(refusal(forced), HasSubstr("neither refuse nor measure"));
  // Without NVML nobody knows, and nobody is refused.
  Options unwatched = options(0);
  unwatched.settings["watcher"] = folder_ + "/gone.so.1";
  EXPECT_EQ(refusal(unwatched), "opened");
}

TEST_F(FabricNccl, LittleMemoryMeansSmallMessages) {
  // 64 MiB free: a quarter of it for one buffer, and no more.
  const auto events = open({"memory=67108864"});
  ASSERT_TRUE(is<Ready>(events[0])) << failure_of(events[0]);
  EXPECT_EQ(std::get<Ready>(*events[0]).max_bytes, std::uint64_t{16} << 20);
  EXPECT_THAT(refusal(options(0, "memory=33554432")), "opened");
  EXPECT_THAT(refusal(options(0, "memory=1048576")), HasSubstr("only 1MiB of its memory are free"));
}

TEST_F(FabricNccl, TwoVersionsAreNamedBeforeTheyWaitForEachOther) {
  for (const auto& event : open({"version=22809", "version=22106"}))
    ASSERT_TRUE(is<Ready>(event)) << failure_of(event);
  const auto events = nodes_->form(kTeam);
  EXPECT_THAT(failure_of(events[0]), HasSubstr("node 1: NCCL 2.21.6 there and 2.28.9 here"));
  EXPECT_THAT(failure_of(events[1]), HasSubstr("node 0: NCCL 2.28.9 there and 2.21.6 here"));
}

TEST_F(FabricNccl, ABootstrapOnLoopbackIsRefusedBetweenNodes) {
  open({"advertise=127.0.0.1", ""});
  nodes_->fabric(0).invite(kTeam, 0);
  EXPECT_THAT(failure_of(nodes_->gather({0}, 5s)[0]),
              AllOf(HasSubstr("looked for at 127.0.0.1:"), HasSubstr("NCCL_SOCKET_IFNAME")));
  nodes_->fabric(0).invite({2, {{0, 0}, {0, 1}}}, 0);
  EXPECT_TRUE(is<Invited>(nodes_->gather({0}, 5s)[0])) << "inside a node it serves";
}

TEST_F(FabricNccl, RefusesWhatItCannotRun) {
  form();
  const auto refused = [this](auto change) {
    Batch one = batch(Op::all_reduce, 4096, 5);
    change(one);
    nodes_->fabric(0).run(one);
    return failure_of(nodes_->gather({0}, 5s)[0]);
  };
  EXPECT_THAT(refused([](Batch& one) { one.team = 9; }), HasSubstr("team 9 was not joined"));
  EXPECT_THAT(refused([](Batch& one) { one.bytes = 1 << 30; }), HasSubstr("above the cap"));
  EXPECT_THAT(refused([](Batch& one) { one.algorithm = "tree"; }), HasSubstr("'ring' is in force"));
  EXPECT_THAT(refused([](Batch& one) { one.root = 4; }), HasSubstr("root 4"));
  EXPECT_THAT(refused([](Batch& one) { one.bytes = 4098; }), HasSubstr("no multiple of 4"));
  EXPECT_THAT(refused([](Batch& one) {
                one.op = Op::transfer;
                one.edges = {{0, 7}};
              }),
              HasSubstr("edge 0 to 7"));
  nodes_->fabric(0).join({{2, {{0, 0}}}, {}, 0});
  EXPECT_THAT(failure_of(nodes_->gather({0}, 5s)[0]), HasSubstr("0 cards for 1 nodes"));
}

// --- what breaks and hangs --------------------------------------------------------------------------------

TEST_F(FabricNccl, AnInitThatFailsSaysWhy) {
  open({"", "init=error"});
  const auto events = nodes_->form(kTeam, 1500ms);
  EXPECT_FALSE(events[0]) << "the other goes on waiting";
  ASSERT_TRUE(is<Failed>(events[1]));
  EXPECT_EQ(std::get<Failed>(*events[1]).trouble, judge::Trouble::refused);
  EXPECT_EQ(failure_of(events[1]), "NCCL: unhandled system error: Call to connect returned No route to host");
}

TEST_F(FabricNccl, ARankThatNeverJoinsIsWaitedForUntilGivenUp) {
  open({"", ""});
  for (const std::uint32_t node : {0u, 1u})
    nodes_->fabric(node).invite(kTeam, node);
  const auto invited = nodes_->gather({0, 1}, 5s);
  ASSERT_TRUE(is<Invited>(invited[0]) && is<Invited>(invited[1]));
  nodes_->fabric(1).join(
      {kTeam, {std::get<Invited>(*invited[0]).card, std::get<Invited>(*invited[1]).card}, 1});
  EXPECT_FALSE(nodes_->gather({1}, 300ms)[1]);
  nodes_->fabric(1).abandon();
  EXPECT_TRUE(is<Failed>(nodes_->gather({1}, 1s)[1]));
}

TEST_F(FabricNccl, AnInitThatHangsIsGivenUp) {
  open({"", "init=hang"});
  const auto events = nodes_->form(kTeam, 500ms);
  EXPECT_FALSE(events[0]);
  EXPECT_FALSE(events[1]);
  for (const std::size_t node : {0u, 1u})
    nodes_->fabric(node).abandon();
  for (const auto& event : nodes_->gather({0, 1}, 2s)) {
    ASSERT_TRUE(is<Failed>(event));
    EXPECT_EQ(std::get<Failed>(*event).trouble, judge::Trouble::no_bytes) << "the child was alive";
  }
  // A fresh child is as good as new.
  for (const std::size_t node : {0u, 1u})
    nodes_->fabric(node).open(options(node));
  for (const auto& event : nodes_->gather({0, 1}, 10s))
    ASSERT_TRUE(is<Ready>(event)) << failure_of(event);
  for (const auto& event : nodes_->form(kTeam))
    EXPECT_TRUE(is<Joined>(event)) << failure_of(event);
}

TEST_F(FabricNccl, ATeamThatIsLeftWhileItFormsIsAnswered) {
  open({"", "init=hang"});
  nodes_->form(kTeam, 300ms);
  nodes_->fabric(1).leave(1);
  EXPECT_THAT(failure_of(nodes_->gather({1}, 5s)[1]), HasSubstr("the team was left"));
  nodes_->fabric(1).join({{2, {{1, 0}}}, {Bytes()}, 1});
  EXPECT_THAT(failure_of(nodes_->gather({1}, 5s)[1]), HasSubstr("a fresh child is needed"));
}

TEST_F(FabricNccl, AnAsynchronousErrorFailsTheBatchInWords) {
  // The first operation only connects; then the warm-up, the barrier: the fourth is the first timed one.
  form({"", "async_error=4"});
  const auto events = nodes_->run(kTeam, batch(Op::all_reduce, 1 << 20), 2s);
  ASSERT_TRUE(is<Failed>(events[1]));
  const auto& failed = std::get<Failed>(*events[1]);
  EXPECT_EQ(failed.trouble, judge::Trouble::no_bytes);
  EXPECT_THAT(failed.detail, AllOf(HasSubstr("remote process exited or there was a network error"),
                                   HasSubstr("Got completion from peer 10.0.0.2")));
  ASSERT_THAT(failed.partial, SizeIs(2));
  EXPECT_TRUE(failed.partial[0].done.empty());
  nodes_->fabric(1).run(batch(Op::all_reduce, 1 << 20, 2));
  EXPECT_THAT(failure_of(nodes_->gather({1}, 5s)[1]), HasSubstr("a fresh child is needed"));
}

TEST_F(FabricNccl, ADeadPeerIsNoticedByTheOthers) {
  form();
  samples(nodes_->run(kTeam, batch(Op::all_reduce, 1 << 20)));
  nodes_->fabric(1).abandon();
  nodes_->fabric(0).run(batch(Op::all_reduce, 1 << 20, 2));
  const auto event = nodes_->gather({0}, 5s)[0];
  ASSERT_TRUE(is<Failed>(event));
  EXPECT_EQ(std::get<Failed>(*event).trouble, judge::Trouble::no_bytes);
}

TEST_F(FabricNccl, AHangKeepsWhatWasMeasuredBefore) {
  // Connect, warm-up, barrier, one timed operation; the fifth never ends.
  form({"", "stall=5"});
  const auto events = nodes_->run(kTeam, batch(Op::all_reduce, 1 << 20), 1s);
  EXPECT_FALSE(events[0]);
  EXPECT_FALSE(events[1]);
  nodes_->fabric(1).abandon();
  const auto event = nodes_->gather({1}, 2s)[1];
  ASSERT_TRUE(is<Failed>(event));
  EXPECT_EQ(std::get<Failed>(*event).trouble, judge::Trouble::no_bytes);
  ASSERT_THAT(std::get<Failed>(*event).partial, SizeIs(2));
  for (const auto& sample : std::get<Failed>(*event).partial)
    EXPECT_LE(sample.done.size(), 1u);
}

TEST_F(FabricNccl, ADeadEdgeStallsNoOther) {
  // Rank 2 takes its token (connect, warm-up, barrier) and then stalls; 1 → 3 goes on.
  form({"", ""});
  Batch one = batch(Op::transfer, 1 << 20);
  one.edges = {{0, 2}, {1, 3}};
  nodes_->fabric(1).run(one);
  one.edges = {{1, 3}};  // node 0 does not send on the other edge
  nodes_->fabric(0).run(one);
  const auto sender = nodes_->gather({0}, 5s)[0];
  EXPECT_TRUE(is<Measured>(sender)) << failure_of(sender);
  EXPECT_FALSE(nodes_->gather({1}, 1s)[1]);
  nodes_->fabric(1).abandon();
  const auto event = nodes_->gather({1}, 2s)[1];
  ASSERT_TRUE(is<Failed>(event));
  ASSERT_THAT(std::get<Failed>(*event).partial, SizeIs(2));
  EXPECT_EQ(std::get<Failed>(*event).partial[0].received, 0u);
  EXPECT_EQ(std::get<Failed>(*event).partial[1].received, 4u << 20);
}

TEST_F(FabricNccl, ABatchThatIsLeftIsAnswered) {
  form({"", "stall=2"});
  nodes_->run(kTeam, batch(Op::all_reduce, 1 << 20), 300ms);
  nodes_->fabric(1).leave(1);
  EXPECT_THAT(failure_of(nodes_->gather({1}, 5s)[1]), HasSubstr("the team was left"));
}

// --- the real NCCL ----------------------------------------------------------------------------------------

/// NETCHECK_REAL_NCCL, or the one that was found when this was built. On a machine without a GPU: a driver
/// that NCCL does not find stands in for the module's own, so that it gets as far as NCCL's own refusal.
std::string real_nccl() {
  const char* path = std::getenv("NETCHECK_REAL_NCCL");
#ifdef NETCHECK_TEST_REAL_NCCL
  if (path == nullptr) path = NETCHECK_TEST_REAL_NCCL;
#endif
  return path == nullptr ? "" : path;
}

TEST_F(FabricNccl, TheRealOneIsOpenedGivesAnIdAndRefusesWithoutAGpu) {
  if (real_nccl().empty()) GTEST_SKIP() << "no libnccl.so.2 was found";
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU here";
  Options real = options(0);
  real.settings = {{"driver", own(NETCHECK_TEST_GPU) + "/libdriver_fake.so"}, {"library", real_nccl()}};
  nodes_ = std::make_unique<Nodes>(
      std::vector{ChildCommand{own(NETCHECK_TEST_HOST), own(NETCHECK_TEST_NCCL), "nccl"}});
  const auto opened = nodes_->open(real)[0];
  ASSERT_TRUE(is<Ready>(opened)) << failure_of(opened);
  std::printf("NCCL %s\n", std::get<Ready>(*opened).version.c_str());
  const Team team{1, {{0, 0}}};
  nodes_->fabric(0).invite(team, 0);
  const auto invited = nodes_->gather({0}, 5s)[0];
  ASSERT_TRUE(is<Invited>(invited)) << failure_of(invited);
  nodes_->fabric(0).join({team, {std::get<Invited>(*invited).card}, 0});
  const std::string refusal = failure_of(nodes_->gather({0}, 5s)[0]);
  std::printf("%s\n", refusal.c_str());
  EXPECT_THAT(refusal, testing::StartsWith("NCCL: unhandled cuda error"));
}

}  // namespace
}  // namespace netcheck::fabric
