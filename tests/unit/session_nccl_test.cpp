// A check over GPUs, as leader and follower see it: one communicator over all of them, more patience, and a
// node whose team is not formed in time says nothing about the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "contract/wire.h"
#include "judge/names.h"
#include "session/plan.h"
#include "session_cast.h"

namespace netcheck::session::test {
namespace {

using judge::Trouble;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

Assignment over_gpus(std::uint32_t nodes, std::uint32_t self) {
  Assignment given = assignment(nodes, self);
  given.policy.fabric = "nccl";
  given.gpus = {"gpu:0", "gpu:3"};
  given.agreement = agreement(given.policy);
  return given;
}

TEST(PlanOverGpus, IsOneTeamOverAllLanesAndAllReduce) {
  Assignment given = over_gpus(2, 0);
  given.policy.max_world = 32;
  given.policy.require_transport = "IB";
  const judge::Plan plan = plan_of(given);
  EXPECT_EQ(plan.teaming, judge::Teaming::over_lanes);
  EXPECT_EQ(plan.op, Op::all_reduce);
  EXPECT_EQ(plan.algorithm, "ring");
  EXPECT_EQ(plan.max_world, 32U);
  EXPECT_EQ(plan.thresholds.transport, "IB");
  given.policy.op = "alltoall";
  EXPECT_EQ(plan_of(given).op, Op::alltoall);
  given.policy.fabric = "ucx";
  given.policy.op = "auto";
  EXPECT_EQ(plan_of(given).op, Op::all_gather);
  EXPECT_EQ(plan_of(given).teaming, judge::Teaming::per_lane);
  EXPECT_EQ(plan_of(given).thresholds.transport, "");
}

TEST(GpuOptions, AreTheJobsGpusAndTheSitesSettings) {
  Assignment given = over_gpus(2, 1);
  given.policy.memory = 1u << 20;
  given.policy.nccl_env = {{"NCCL_IB_HCA", "mlx5"}};
  given.policy.nccl_library = "/opt/libnccl.so.2";
  given.policy.busy = OnGpu::measure;
  const fabric::Options options = gpu_options(given);
  EXPECT_THAT(options.devices, ElementsAre("gpu:0", "gpu:3"));
  EXPECT_EQ(options.max_bytes, 1u << 20);
  EXPECT_THAT(options.settings, UnorderedElementsAre(Pair("NCCL_IB_HCA", "mlx5"), Pair("NCCL_ALGO", "Ring"),
                                                     Pair("mig", "refuse"), Pair("busy", "measure"),
                                                     Pair("library", "/opt/libnccl.so.2")));
}

TEST(AssignmentOverGpus, ArrivesAsItWasWritten) {
  Assignment sent = over_gpus(2, 1);
  sent.policy.nccl_env = {{"NCCL_IB_HCA", "mlx5"}};
  sent.policy.nccl_algorithm = "Tree";
  sent.policy.max_world = 8;
  sent.policy.mig = OnGpu::measure;
  sent.policy.require_transport = "RoCE";
  const Assignment got = assignment_from_json(Json::parse(to_json(sent).dump()));
  EXPECT_EQ(got.gpus, sent.gpus);
  EXPECT_EQ(agreement_terms(got.policy), agreement_terms(sent.policy));
  EXPECT_THAT(agreement_terms(got.policy),
              testing::IsSupersetOf({"NCCL_IB_HCA=mlx5", "nccl.algorithm=Tree", "nccl.mig=measure"}));
}

TEST(Present, OfANodeWithoutGpusInAJobWithGpusIsNamed) {
  const Assignment given = over_gpus(3, 0);
  Assignment other = assignment(3, 2);
  other.agreement = agreement(other.policy);
  EXPECT_THAT(*difference(given, 2, present(other)),
              HasSubstr("n3 differs from n1: fabric.fabric is ucx instead of nccl"));
}

class FollowerOverGpus : public testing::Test {
 protected:
  std::vector<FollowerAction> on(FollowerEvent event) { return follower_.on(std::move(event), now_); }
  std::vector<FollowerAction> happens(fabric::Event event) { return on(FollowerEvent(std::move(event))); }
  std::vector<FollowerAction> hear(Message message) { return on(FromLeader{std::move(message)}); }
  std::vector<FollowerAction> tick_at(Time when) {
    now_ = when;
    return on(Tick{});
  }
  void open() {
    on(LeaderFound{});
    on(LanesChosen{gpu_options(assignment_)});
  }
  /// Until a team of both nodes' GPUs is being formed.
  void join() {
    open();
    fabric::Ready opened = ready({"0000:1b:00.0", "0000:43:00.0"});
    opened.module = "nccl";
    happens(opened);
    hear(Invite{.step = 1, .teams = {team_}, .allowance = seconds(1)});
    happens(fabric::Invited{.team = 7, .card = Bytes(2)});
    hear(Connect{.step = 1, .teams = {{7, {Bytes(2), Bytes(2)}}}, .allowance = seconds(2)});
  }

  Assignment assignment_ = over_gpus(2, 1);
  Follower follower_{assignment_, inventory("n2"), kStart};
  Time now_ = kStart;
  Team team_{.id = 7, .ranks = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}};
};

TEST_F(FollowerOverGpus, LeavesTheLeaderTimeToHearThatNothingOpened) {
  open();
  // 8 s less two closings for the leader and one more here, of 150 ms, and 400 ms for the answer.
  const Time last = kStart + milliseconds(8'000 - 150 - 150 - 400);
  EXPECT_EQ(follower_.wake(), last);
  EXPECT_THAT(all_of<AbandonFabric>(tick_at(last)), SizeIs(1));
  const auto broken = said<Broken>(happens(fabric::Failed{.id = 0, .trouble = Trouble::no_bytes}));
  ASSERT_THAT(broken, SizeIs(1));
  EXPECT_EQ(broken.front().trouble, Trouble::late);
}

TEST_F(FollowerOverGpus, TakesATeamThatIsNotFormedInTimeForNoEvidenceAndOpensAfresh) {
  join();
  tick_at(kStart + seconds(2));
  const auto actions = happens(fabric::Failed{.id = 7, .trouble = Trouble::no_bytes, .detail = "given up"});
  ASSERT_THAT(said<Answer>(actions), SizeIs(1));
  EXPECT_EQ(said<Answer>(actions).front().outcome.trouble, Trouble::late);
  EXPECT_THAT(all_of<OpenFabric>(actions), SizeIs(1));
}

TEST_F(FollowerOverGpus, OpensAFreshFabricAfterOneThatFailedBeforeItTakesAnInvitation) {
  join();
  happens(fabric::Joined{.team = 7, .took = {}, .transport = "IB/mlx5_0+GDR,P2P/CUMEM"});
  const Batch batch{.id = 9, .team = 7, .bytes = 64, .iterations = 1};
  hear(session::Run{.step = 2, .batches = {batch}, .allowance = seconds(1)});
  const auto failed = happens(fabric::Failed{.id = 9, .trouble = Trouble::refused, .detail = "async error"});
  EXPECT_THAT(all_of<AbandonFabric>(failed), SizeIs(1));
  EXPECT_THAT(all_of<OpenFabric>(failed), SizeIs(1));
  EXPECT_THAT(all_of<InviteFabric>(hear(Invite{.step = 3, .teams = {team_}, .allowance = seconds(1)})),
              SizeIs(0));
  EXPECT_THAT(all_of<InviteFabric>(happens(ready({"a", "b"}))), SizeIs(1));
}

TEST_F(FollowerOverGpus, TellsWhatCarriesItsBytesInWholeWords) {
  join();
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += (i == 0 ? "IB/mlx5_" : ",IB/mlx5_") + std::to_string(i);
  const auto answers = said<Answer>(happens(fabric::Joined{.team = 7, .took = {}, .transport = many}));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_LE(answers.front().transport.size(), kMaxTransport);
  EXPECT_EQ(many.substr(0, answers.front().transport.size()), answers.front().transport);
  EXPECT_EQ(many[answers.front().transport.size()], ',');
  EXPECT_TRUE(decode(encode(answers.front()), "n2"));
}

class LeaderOverGpus : public testing::Test {
 protected:
  std::vector<LeaderAction> say(std::uint32_t node, Message message) {
    return leader_->on(FromNode{node, std::move(message)}, kStart);
  }
  /// Until all three nodes join one team. Returns its orders to connect.
  std::vector<LeaderAction> connect() {
    fabric::Ready opened = ready({"0000:1b:00.0", "0000:43:00.0"});
    opened.module = "nccl";
    for (std::uint32_t node = 0; node < 3; ++node)
      say(node, present(assignment_));
    std::vector<LeaderAction> actions;
    for (std::uint32_t node = 0; node < 3; ++node)
      actions = say(node, Opened{.ready = opened});
    EXPECT_EQ(told<Invite>(actions).at(2).teams.front().ranks.size(), 6U) << "all GPUs of all nodes";
    const std::uint32_t team = told<Invite>(actions).at(2).teams.front().id;
    for (std::uint32_t node = 0; node < 3; ++node)
      actions = say(node, Cards{.step = 1, .cards = {{team, Bytes(2)}}});
    return actions;
  }
  static Answer answer(std::uint32_t node, std::optional<Trouble> trouble,
                       const std::string& transport = "") {
    Answer said{.step = 1, .outcome = {.node = node}, .transport = transport};
    said.outcome.trouble = trouble;
    said.outcome.detail = trouble ? "no way" : "";
    return said;
  }

  Assignment assignment_ = over_gpus(3, 0);
  std::optional<Leader> leader_{std::in_place, assignment_, kStart};
};

TEST_F(LeaderOverGpus, GivesATeamWhatIsLeftOfTheCheckToForm) {
  const auto orders = told<Connect>(connect());
  ASSERT_THAT(orders, SizeIs(3));
  // 8 s less two closings of 150 ms; each node's own 8 s less one; and 400 ms for the answers.
  EXPECT_EQ(orders.at(1).allowance, milliseconds(8'000 - 300 - 400));
}

TEST_F(LeaderOverGpus, DoesNotWaitForThoseThatWaitForOneWhoseFabricRefused) {
  connect();
  const auto actions = say(2, answer(2, Trouble::refused));
  ASSERT_THAT(told<Close>(actions), SizeIs(3));
  EXPECT_THAT(told<Close>(actions).at(0).line, HasSubstr("phase=connect"));
  EXPECT_THAT(told<Close>(actions).at(0).line, HasSubstr("n3: fabric refused: no way"));
}

TEST_F(LeaderOverGpus, HearsAllThatWereLate) {
  connect();
  EXPECT_THAT(told<Close>(say(2, answer(2, Trouble::late))), SizeIs(0));
  EXPECT_THAT(told<Close>(say(0, answer(0, Trouble::late))), SizeIs(0));
  EXPECT_THAT(told<Close>(say(1, answer(1, Trouble::late))).at(0).line,
              HasSubstr("n[1-3], one of them or the way between: did not end in time"));
}

TEST_F(LeaderOverGpus, KeepsWhatOneNodesBytesGoOverWhereItIsAnother) {
  assignment_.policy.require_transport = "IB";
  leader_.emplace(assignment_, kStart);
  connect();
  say(0, answer(0, std::nullopt, "IB/mlx5_0+GDR,P2P/CUMEM"));
  say(1, answer(1, std::nullopt, "IB/mlx5_0+GDR,P2P/CUMEM"));
  const auto closed = told<Close>(say(2, answer(2, std::nullopt, "Socket/eth0,P2P/CUMEM")));
  ASSERT_THAT(closed, SizeIs(3));
  EXPECT_THAT(closed.at(1).line, HasSubstr("netcheck=fail "));
  EXPECT_THAT(closed.at(1).line, HasSubstr(" transport=Socket/eth0 required=IB"));
}

}  // namespace
}  // namespace netcheck::session::test
