// A follower, fed by hand: what it asks of its fabric, what it answers, when it gives up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/follower.h"
#include "session_cast.h"

namespace netcheck::session::test {
namespace {

using judge::Trouble;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// n2 of n1 … n3.
class FollowerTest : public testing::Test {
 protected:
  using Actions = std::vector<FollowerAction>;
  Actions on(FollowerEvent event) { return follower_.on(std::move(event), now_); }
  Actions hear(Message message) { return on(FromLeader{std::move(message)}); }
  Actions happens(fabric::Event event) { return on(std::move(event)); }
  Actions tick_at(Time when) {
    now_ = when;
    return on(Tick{});
  }
  void open() {
    on(LeaderFound{});
    on(LanesChosen{fabric::Options{.devices = {"eth0"}, .max_bytes = 0}});
    happens(ready());
  }
  void join() {
    open();
    hear(Invite{.step = 1, .teams = {team_}, .allowance = seconds(1)});
    happens(fabric::Invited{.team = 7, .card = Bytes(2)});
    hear(Connect{.step = 1, .teams = {{7, {Bytes(1), Bytes(2), Bytes(3)}}}, .allowance = seconds(1)});
    happens(fabric::Joined{.team = 7, .took = {}, .transport = "tcp/eth0"});
  }
  Actions run() { return hear(session::Run{.step = 2, .batches = {batch_}, .allowance = milliseconds(500)}); }
  static Report report(const Actions& actions) {
    const auto ends = all_of<Finish>(actions);
    if (ends.empty()) throw std::runtime_error("the follower has not finished");
    return ends.front().report;
  }

  Assignment assignment_ = assignment(3, 1);
  Follower follower_{assignment_, inventory("n2"), kStart};
  Time now_ = kStart;
  Team team_{.id = 7, .ranks = {{0, 0}, {1, 0}, {2, 0}}};
  Batch batch_{.id = 9, .team = 7, .bytes = 4'096, .warmup = 1, .iterations = 3};
};

TEST_F(FollowerTest, SaysWhyItTakesNoPartAndWaitsForTheVerdict) {
  assignment_.declined = "another check is running on n2";
  Follower declining(assignment_, inventory("n2"), kStart);
  const auto said_first = said<Present>(declining.on(LeaderFound{}, now_));
  ASSERT_THAT(said_first, SizeIs(1));
  EXPECT_EQ(said_first.front().declined, "another check is running on n2");
  EXPECT_THAT(declining.on(LanesChosen{fabric::Options{.devices = {"eth0"}}}, now_), IsEmpty());
  EXPECT_THAT(declining.on(LanesChosen{fail("find", "eth9", "no such device")}, now_), IsEmpty());
  const Close close{.verdict = "inconclusive", .line = "netcheck=inconclusive"};
  EXPECT_EQ(report(declining.on(FromLeader{close}, now_)).line, close.line);
}

TEST_F(FollowerTest, PresentsItselfBeforeItOpensItsFabric) {
  const auto said_first = said<Present>(on(LeaderFound{}));
  ASSERT_THAT(said_first, SizeIs(1));
  EXPECT_EQ(said_first.front().agreement, assignment_.agreement);
  EXPECT_EQ(said_first.front().remaining, seconds(8) - kClosing);
  EXPECT_THAT(all_of<OpenFabric>(on(LanesChosen{fabric::Options{.devices = {"eth0"}}})), SizeIs(1));
}

// --- the hardware ------------------------------------------------------------------------------------------

judge::NodeHardware eight_gpus() {
  return {.traits = {{"GPUs", "8", true}}, .flaws = {}, .rails = {}};
}

TEST_F(FollowerTest, SaysWhatItsHardwareIsWithItsOpenFabric) {
  on(LeaderFound{});
  on(LanesChosen{fabric::Options{.devices = {"eth0"}}, kStart + seconds(1)});
  EXPECT_THAT(said<Opened>(happens(ready())), IsEmpty());
  EXPECT_EQ(follower_.wake(), kStart + seconds(1));
  const auto opened = said<Opened>(on(HardwareSeen{eight_gpus(), {}}));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened.front().hardware, eight_gpus());
}

TEST_F(FollowerTest, DoesNotWaitForHardwareThatItHasSeen) {
  on(LeaderFound{});
  on(LanesChosen{fabric::Options{.devices = {"eth0"}}, kStart + seconds(1)});
  EXPECT_THAT(on(HardwareSeen{eight_gpus(), {}}), IsEmpty());
  EXPECT_THAT(said<Opened>(happens(ready())), SizeIs(1));
}

TEST_F(FollowerTest, GoesOnWithoutHardwareThatCannotBeLookedAt) {
  on(LeaderFound{});
  on(LanesChosen{fabric::Options{.devices = {"eth0"}}, kStart + seconds(1)});
  happens(ready());
  const auto opened = said<Opened>(on(HardwareSeen{std::nullopt, "signal 11"}));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_FALSE(opened.front().hardware);
  const auto end = report(hear(Close{.verdict = "pass", .line = "netcheck=pass"}));
  EXPECT_THAT(end.log, ElementsAre("the hardware was not looked at: signal 11"));
}

TEST_F(FollowerTest, GoesOnWithoutHardwareThatIsNeverSeen) {
  on(LeaderFound{});
  on(LanesChosen{fabric::Options{.devices = {"eth0"}}, kStart + seconds(1)});
  happens(ready());
  EXPECT_THAT(tick_at(kStart + seconds(1) - Ns{1}), IsEmpty());
  EXPECT_THAT(said<Opened>(tick_at(kStart + seconds(1))), SizeIs(1));
}

TEST_F(FollowerTest, WaitsForNoHardwareOnceItIsOver) {
  on(LeaderFound{});
  on(LanesChosen{fabric::Options{.devices = {"eth0"}}, kStart + seconds(1)});
  happens(ready());
  hear(Close{.verdict = "inconclusive", .line = "netcheck=inconclusive"});
  EXPECT_GT(follower_.wake(),
            kStart + seconds(1));  // the driver of a leader goes on, and would not come to rest
}

TEST_F(FollowerTest, TellsWhyNoLaneCanBeOpened) {
  on(LeaderFound{});
  const auto actions = on(LanesChosen{fail("use the device", "eth9", "there is none")});
  ASSERT_THAT(said<Broken>(actions), SizeIs(1));
  EXPECT_THAT(said<Broken>(actions).front().detail, HasSubstr("eth9"));
}

TEST_F(FollowerTest, GivesUpOnAFabricThatDoesNotOpen) {
  on(LeaderFound{});
  on(LanesChosen{fabric::Options{.devices = {"eth0"}}});
  EXPECT_THAT(all_of<AbandonFabric>(tick_at(kStart + patience_with("ucx").open)), SizeIs(1));
  // A library that waits for nothing on the network has the network to blame for nothing.
  const auto actions = happens(fabric::Failed{.id = 0, .trouble = Trouble::no_bytes, .detail = "gave up"});
  ASSERT_THAT(said<Broken>(actions), SizeIs(1));
  EXPECT_EQ(said<Broken>(actions).front().trouble, Trouble::child_silent);
}

TEST_F(FollowerTest, AnswersAnInvitationWithOneCardForEachTeam) {
  open();
  Team second = team_;
  second.id = 8;
  const auto actions = hear(Invite{.step = 1, .teams = {team_, second}, .allowance = seconds(1)});
  EXPECT_THAT(all_of<InviteFabric>(actions), SizeIs(2));
  EXPECT_THAT(happens(fabric::Invited{.team = 8, .card = Bytes(1)}), IsEmpty());
  const auto cards = said<Cards>(happens(fabric::Invited{.team = 7, .card = Bytes(2)}));
  ASSERT_THAT(cards, SizeIs(1));
  EXPECT_THAT(cards.front().cards, ElementsAre(TeamCard{7, Bytes(2)}, TeamCard{8, Bytes(1)}));
}

TEST_F(FollowerTest, AnswersARunWithTheSamplesOfItsBatches) {
  join();
  ASSERT_THAT(all_of<RunFabric>(run()), SizeIs(1));
  const Sample sample{.rank = 1, .done = {Ns{5}, Ns{9}, Ns{14}}, .received = 8'192};
  const auto answers =
      said<Answer>(happens(fabric::Measured{.batch = 9, .algorithm = "ring", .local = {sample}}));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers.front().step, 2U);
  EXPECT_EQ(answers.front().outcome.node, 1U);
  EXPECT_THAT(answers.front().outcome.samples, ElementsAre(sample));
  EXPECT_THAT(answers.front().outcome.batch, ElementsAre(9U));
  EXPECT_FALSE(answers.front().outcome.trouble);
}

TEST_F(FollowerTest, AbandonsAndReopensWhenABatchOverrunsItsAllowance) {
  join();
  run();
  EXPECT_EQ(follower_.wake(), kStart + milliseconds(500));
  EXPECT_THAT(all_of<AbandonFabric>(tick_at(kStart + milliseconds(500))), SizeIs(1));
  const Sample partial{.rank = 1, .done = {Ns{5}}, .received = 4'096};
  const auto actions =
      happens(fabric::Failed{.id = 9, .trouble = Trouble::no_bytes, .detail = "", .partial = {partial}});
  ASSERT_THAT(said<Answer>(actions), SizeIs(1));
  EXPECT_EQ(said<Answer>(actions).front().outcome.trouble, Trouble::no_bytes);
  EXPECT_THAT(said<Answer>(actions).front().outcome.samples, ElementsAre(partial));
  EXPECT_THAT(all_of<OpenFabric>(actions), SizeIs(1));
}

TEST_F(FollowerTest, AnswersForAFabricThatNotEvenAbandonEnds) {
  join();
  run();
  tick_at(kStart + milliseconds(500));
  const auto actions = tick_at(kStart + milliseconds(500) + kAbandonGrace);
  ASSERT_THAT(said<Answer>(actions), SizeIs(1));
  EXPECT_EQ(said<Answer>(actions).front().outcome.trouble, Trouble::child_silent);
}

TEST_F(FollowerTest, KeepsAnInvitationUntilItsFabricIsOpenAgain) {
  join();
  run();
  happens(fabric::Failed{.id = 9, .trouble = Trouble::no_bytes});
  Team next = team_;
  next.id = 8;
  EXPECT_THAT(hear(Invite{.step = 3, .teams = {next}, .allowance = seconds(1)}), IsEmpty());
  const auto actions = happens(ready());
  EXPECT_THAT(all_of<InviteFabric>(actions), SizeIs(1));
  EXPECT_THAT(all_of<LeaveFabric>(actions), IsEmpty()) << "the fresh fabric knows no former team";
}

TEST_F(FollowerTest, AnswersAnInvitationWithTheTroubleOfAFabricThatDoesNotOpenAgain) {
  join();
  run();
  happens(fabric::Failed{.id = 9, .trouble = Trouble::child_died, .detail = "signal 11"});
  happens(fabric::Failed{.id = 0, .trouble = Trouble::refused, .detail = "no memory"});
  const auto answers = said<Answer>(hear(Invite{.step = 3, .teams = {team_}, .allowance = seconds(1)}));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers.front().outcome.trouble, Trouble::refused);
  EXPECT_THAT(answers.front().outcome.detail, HasSubstr("no memory"));
}

TEST_F(FollowerTest, LeavesTheFormerTeamsForNewOnes) {
  join();
  Team next = team_;
  next.id = 8;
  const auto left = all_of<LeaveFabric>(hear(Invite{.step = 3, .teams = {next}, .allowance = seconds(1)}));
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left.front().team, 7U);
}

TEST_F(FollowerTest, ReportsTheTroubleThatIsNoEvidenceWhenThereAreTwo) {
  Team second = team_;
  second.id = 8;
  open();
  hear(Invite{.step = 1, .teams = {team_, second}, .allowance = seconds(1)});
  happens(fabric::Invited{.team = 7});
  happens(fabric::Invited{.team = 8});
  const std::vector<Bytes> cards(3);
  hear(Connect{.step = 1, .teams = {{7, cards}, {8, cards}}, .allowance = seconds(1)});
  happens(fabric::Joined{.team = 7});
  happens(fabric::Joined{.team = 8});
  Batch other = batch_;
  other.id = 10;
  other.team = 8;
  hear(session::Run{.step = 2, .batches = {batch_, other}, .allowance = seconds(1)});
  happens(fabric::Failed{.id = 10, .trouble = Trouble::child_died});
  const auto answers = said<Answer>(happens(fabric::Failed{.id = 9, .trouble = Trouble::no_bytes}));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers.front().outcome.trouble, Trouble::child_died);
}

TEST_F(FollowerTest, EndsWithTheLeadersVerdict) {
  join();
  const Report end = report(hear(Close{.verdict = "pass", .line = "netcheck=pass busbw=1Gbps"}));
  EXPECT_FALSE(end.leader);
  EXPECT_EQ(end.claimed, "pass");
  EXPECT_EQ(end.line, "netcheck=pass busbw=1Gbps");
  EXPECT_THAT(hear(Close{.verdict = "fail", .line = "again"}), IsEmpty());
}

TEST_F(FollowerTest, IsInconclusiveWhenTheLeaderGoesAway) {
  join();
  const Report end = report(on(LeaderGone{"connection reset"}));
  EXPECT_EQ(end.claimed, "inconclusive");
  EXPECT_THAT(end.reason, HasSubstr("the leader n1 fell silent: connection reset"));
  EXPECT_THAT(end.line, HasSubstr("missing=n1"));
}

TEST_F(FollowerTest, IsInconclusiveWhenTheLeaderFallsSilent) {
  open();
  EXPECT_EQ(follower_.wake(), assignment_.deadline - kClosing);
  EXPECT_THAT(report(tick_at(follower_.wake())).reason, HasSubstr("the leader n1 fell silent"));
}

TEST_F(FollowerTest, TellsWhyTheLeaderWasNotFound) {
  on(Heed{"n1: its name resolves to loopback"});
  EXPECT_EQ(follower_.wake(), kStart + seconds(3));
  const Report end = report(tick_at(kStart + seconds(3)));
  EXPECT_EQ(end.reached, judge::Phase::rendezvous);
  EXPECT_THAT(end.reason, HasSubstr("loopback"));
}

TEST_F(FollowerTest, WaitsForNothingBeyondItsDeadline) {
  join();
  hear(session::Run{.step = 2, .batches = {batch_}, .allowance = std::chrono::hours(1)});
  EXPECT_LE(follower_.wake(), assignment_.deadline);
}

// A leader may be buggy or an impostor: what it names must exist.
struct Nonsense {
  const char* name;
  Message message;
};
class FollowerNonsenseTest : public FollowerTest, public testing::WithParamInterface<Nonsense> {};

TEST_P(FollowerNonsenseTest, EndsTheCheckInWords) {
  join();
  const Report end = report(hear(GetParam().message));
  EXPECT_EQ(end.claimed, "inconclusive");
  EXPECT_THAT(end.reason, HasSubstr("the leader n1 makes no sense"));
}

Batch batch_with(std::uint32_t team, std::uint64_t bytes, std::uint32_t root, std::vector<Edge> edges) {
  return {.id = 9, .team = team, .root = root, .bytes = bytes, .iterations = 3, .edges = std::move(edges)};
}

INSTANTIATE_TEST_SUITE_P(
    Orders, FollowerNonsenseTest,
    testing::Values(
        Nonsense{"UnknownNode", Invite{3, {{8, {{1, 0}, {3, 0}}}}, seconds(1)}},
        Nonsense{"UnknownLane", Invite{3, {{8, {{0, 0}, {1, 1}}}}, seconds(1)}},
        Nonsense{"SomebodyElsesTeam", Invite{3, {{8, {{0, 0}, {2, 0}}}}, seconds(1)}},
        Nonsense{"RankTwice", Invite{3, {{8, {{1, 0}, {1, 0}}}}, seconds(1)}},
        Nonsense{"NoTeam", Invite{3, {}, seconds(1)}},
        Nonsense{"CardsOfUnknownTeam", Connect{3, {{8, {Bytes(), Bytes(), Bytes()}}}, seconds(1)}},
        Nonsense{"TooFewCards", Connect{3, {{7, {Bytes(), Bytes()}}}, seconds(1)}},
        Nonsense{"BatchOfUnknownTeam", session::Run{3, {batch_with(8, 64, 0, {})}, seconds(1)}},
        Nonsense{"BatchBeyondTheBuffers", session::Run{3, {batch_with(7, 2u << 20, 0, {})}, seconds(1)}},
        Nonsense{"UnknownRoot", session::Run{3, {batch_with(7, 64, 3, {})}, seconds(1)}},
        Nonsense{"UnknownEdge", session::Run{3, {batch_with(7, 64, 0, {{0, 3}})}, seconds(1)}},
        Nonsense{"EdgeToItself", session::Run{3, {batch_with(7, 64, 0, {{1, 1}})}, seconds(1)}},
        Nonsense{"NoBatch", session::Run{3, {}, seconds(1)}}, Nonsense{"AnAnswer", Answer{}}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(FollowerTest, TakesNoRunBeforeItHasJoined) {
  open();
  EXPECT_THAT(report(run()).reason, HasSubstr("makes no sense"));
}

TEST_F(FollowerTest, TakesNoSecondOrderBeforeItHasAnswered) {
  join();
  run();
  EXPECT_THAT(report(run()).reason, HasSubstr("out of turn"));
}

}  // namespace
}  // namespace netcheck::session::test
