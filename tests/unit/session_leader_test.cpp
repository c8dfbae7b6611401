// The leader, fed by hand: what it says, whom it waits for, how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/leader.h"
#include "session_cast.h"

namespace netcheck::session::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LeaderTest : public testing::Test {
 protected:
  std::vector<LeaderAction> say(std::uint32_t node, Message message) {
    return leader_.on(FromNode{node, std::move(message)}, now_);
  }
  std::vector<LeaderAction> tick_at(Time when) {
    now_ = when;
    return leader_.on(Tick{}, now_);
  }
  /// All four nodes are present, at `now_`.
  void all_present() {
    for (std::uint32_t node = 0; node < 4; ++node)
      say(node, present(assignment_));
  }
  /// … and their fabrics open: the script begins.
  std::vector<LeaderAction> all_open() {
    all_present();
    for (std::uint32_t node = 0; node < 3; ++node)
      say(node, Opened{.ready = ready()});
    return say(3, Opened{.ready = ready()});
  }
  /// … and their teams formed: the first batch runs.
  std::vector<LeaderAction> all_joined() {
    std::vector<LeaderAction> actions;
    for (const auto& [node, invite] : told<Invite>(all_open())) {
      Cards cards{.step = invite.step, .cards = {}};
      for (const Team& team : invite.teams)
        cards.cards.push_back({team.id, Bytes(4, std::byte(node))});
      actions = say(node, cards);
    }
    for (const auto& [node, connect] : told<Connect>(actions))
      actions = answer(node, connect.step);
    return actions;
  }
  std::vector<LeaderAction> answer(std::uint32_t node, std::uint32_t step) {
    return say(node, Answer{.step = step, .outcome = {.node = node}, .transport = "tcp/eth0"});
  }
  static judge::Verdict verdict(const std::vector<LeaderAction>& actions) {
    const auto ends = all_of<Finish>(actions);
    if (ends.empty()) throw std::runtime_error("the leader has not finished");
    return judge::decide(ends.front().report.plan, ends.front().report.history);
  }
  static judge::Inconclusive inconclusive(const std::vector<LeaderAction>& actions) {
    return std::get<judge::Inconclusive>(verdict(actions));
  }

  Assignment assignment_ = assignment(4, 0);
  Leader leader_{assignment_, kStart};
  Time now_ = kStart;
};

TEST_F(LeaderTest, NamesTheMissingNodeAtTheRendezvousDeadline) {
  for (const std::uint32_t node : {0U, 1U, 3U})
    EXPECT_THAT(say(node, present(assignment_)), IsEmpty());
  EXPECT_EQ(leader_.wake(), kStart + seconds(3));
  EXPECT_THAT(tick_at(kStart + seconds(3) - Ns{1}), IsEmpty());
  const auto verdict = inconclusive(tick_at(kStart + seconds(3)));
  EXPECT_EQ(verdict.phase, judge::Phase::rendezvous);
  EXPECT_THAT(verdict.missing, ElementsAre("n3"));
}

TEST_F(LeaderTest, TellsWhoWasTurnedAwayWhenANodeIsMissing) {
  EXPECT_THAT(leader_.on(Heed{"10.0.0.3: the credential is from the future (clock skew)"}, now_), IsEmpty());
  const auto actions = tick_at(kStart + seconds(3));
  EXPECT_THAT(inconclusive(actions).reason, HasSubstr("clock skew"));
  EXPECT_THAT(all_of<Finish>(actions).front().report.log, SizeIs(1));
}

TEST_F(LeaderTest, RefusesBeforeMeasuringWhenSettingsDiffer) {
  Assignment other = assignment_;
  other.policy.op = "all_reduce";
  other.agreement = agreement(other.policy);
  for (const std::uint32_t node : {0U, 1U, 3U})
    say(node, present(assignment_));
  const auto actions = say(2, present(other));
  EXPECT_THAT(inconclusive(actions).reason,
              HasSubstr("n3 differs from n1: check.op is all_reduce instead of auto"));
  EXPECT_THAT(told<Close>(actions), SizeIs(4));
  EXPECT_THAT(told<Invite>(actions), IsEmpty());
}

TEST_F(LeaderTest, RefusesAnotherVersionOfItself) {
  for (const std::uint32_t node : {0U, 2U, 3U})
    say(node, present(assignment_));
  Present other = present(assignment_);
  other.inventory.version = "0.0.9";
  EXPECT_THAT(inconclusive(say(1, other)).reason,
              HasSubstr("n2 differs from n1: netcheck is 0.0.9 instead of"));
}

TEST_F(LeaderTest, EndsAtOnceAndSaysWhyWhenANodeTakesNoPart) {
  say(0, present(assignment_));
  Present busy = present(assignment_);
  busy.declined = "another check is running on n3 (job 4711)";
  const auto actions = say(2, busy);
  EXPECT_THAT(told<Close>(actions), SizeIs(2)) << "to n1 and n3";
  EXPECT_THAT(told<Close>(say(1, present(assignment_))), SizeIs(1));
  const auto verdict = inconclusive(say(3, present(assignment_)));
  EXPECT_EQ(verdict.reason, "n3 takes no part: another check is running on n3 (job 4711)");
  EXPECT_THAT(verdict.missing, IsEmpty());
  EXPECT_EQ(verdict.phase, judge::Phase::rendezvous);
}

TEST_F(LeaderTest, TellsLatecomersWhatIsDecidedAlready) {
  say(0, present(assignment_));
  EXPECT_THAT(told<Close>(leader_.on(NodeGone{1, "connection reset"}, now_)), SizeIs(1)) << "to n1 alone";
  EXPECT_THAT(told<Close>(say(2, present(assignment_))), SizeIs(1));
  EXPECT_THAT(told<Close>(say(3, present(assignment_))), SizeIs(1));
  const auto actions = tick_at(kStart + seconds(3));
  EXPECT_THAT(inconclusive(actions).missing, ElementsAre("n2"));
}

TEST_F(LeaderTest, TellsEveryoneOfAJobThatIsNotToBeMeasured) {
  assignment_.not_measured = "not measured: its time limit of 30s is under the site's 60s";
  Leader leader(assignment_, kStart);
  for (std::uint32_t node = 0; node < 4; ++node) {
    const auto closes = told<Close>(leader.on(FromNode{node, present(assignment_)}, kStart));
    ASSERT_THAT(closes, SizeIs(1)) << node;
    EXPECT_EQ(closes.at(node).verdict, "inconclusive");
    EXPECT_THAT(closes.at(node).line, HasSubstr(assignment_.not_measured));
  }
}

TEST_F(LeaderTest, NamesWhatTheFabricsOfTwoNodesDifferIn) {
  all_present();
  fabric::Ready first = ready(), other = ready();
  first.terms = {"net=Socket", "NCCL_IB_HCA=mlx5_0"};
  other.terms = {"NCCL_IB_HCA=mlx5_1", "net=Socket", "NCCL_P2P_DISABLE=1"};
  say(0, Opened{.ready = first});
  EXPECT_EQ(
      inconclusive(say(2, Opened{.ready = other})).reason,
      "n3 differs from n1: NCCL_IB_HCA is mlx5_1 instead of mlx5_0, NCCL_P2P_DISABLE is 1 instead of unset");
}

TEST_F(LeaderTest, TakesTheSameTermsInAnotherOrder) {
  all_present();
  fabric::Ready first = ready(), other = ready();
  first.terms = {"net=Socket", "NCCL_IB_HCA=mlx5_0"};
  other.terms = {"NCCL_IB_HCA=mlx5_0", "net=Socket"};
  say(0, Opened{.ready = first});
  EXPECT_THAT(told<Close>(say(2, Opened{.ready = other})), IsEmpty());
}

TEST_F(LeaderTest, RefusesAnotherVersionOfTheFabric) {
  all_present();
  say(0, Opened{.ready = ready()});
  fabric::Ready other = ready();
  other.version = "1.12.0";
  EXPECT_THAT(inconclusive(say(3, Opened{.ready = other})).reason,
              HasSubstr("n4 differs from n1: ucx is 1.12.0 instead of 1.13.1"));
}

TEST_F(LeaderTest, NamesTheNodeWhoseFabricWouldNotOpen) {
  all_present();
  const auto verdict =
      inconclusive(say(2, Broken{.trouble = judge::Trouble::refused, .detail = "no device eth9"}));
  EXPECT_EQ(verdict.phase, judge::Phase::open);
  EXPECT_THAT(verdict.reason, HasSubstr("n3"));
  EXPECT_THAT(verdict.reason, HasSubstr("no device eth9"));
}

TEST_F(LeaderTest, WaitsForALateNodesFabricInItsOwnPhase) {
  now_ = kStart + milliseconds(2'900);
  all_present();
  for (const std::uint32_t node : {0U, 1U, 3U})
    say(node, Opened{.ready = ready()});
  EXPECT_THAT(tick_at(kStart + seconds(3)), IsEmpty());
  const auto verdict =
      inconclusive(tick_at(kStart + milliseconds(2'900) + patience_with("ucx").open + kAnswerGrace));
  EXPECT_EQ(verdict.phase, judge::Phase::open);
  EXPECT_THAT(verdict.missing, ElementsAre("n3"));
}

TEST_F(LeaderTest, TakesFabricsThatOpenBeforeEverybodyIsThere) {
  for (const std::uint32_t node : {0U, 1U, 2U}) {
    say(node, present(assignment_));
    say(node, Opened{.ready = ready()});
  }
  EXPECT_THAT(say(3, present(assignment_)), IsEmpty());
  EXPECT_THAT(told<Invite>(say(3, Opened{.ready = ready()})), SizeIs(4));
}

TEST_F(LeaderTest, MeasuresOnTheRailsThatAllNodesHave) {
  all_present();
  for (const std::uint32_t node : {0U, 1U, 2U})
    say(node, Opened{.ready = ready({"eth0", "eth1"})});
  const auto invites = told<Invite>(say(3, Opened{.ready = ready({"eth0"})}));
  ASSERT_THAT(invites, SizeIs(4));
  EXPECT_THAT(invites.at(0).teams, SizeIs(1));
}

TEST_F(LeaderTest, SendsEachMemberTheCardsOfItsTeam) {
  std::vector<LeaderAction> actions;
  for (const auto& [node, invite] : told<Invite>(all_open())) {
    ASSERT_THAT(invite.teams, SizeIs(1));
    actions = say(node, Cards{invite.step, {{invite.teams.front().id, Bytes(1, std::byte(node))}}});
  }
  const auto connects = told<Connect>(actions);
  ASSERT_THAT(connects, SizeIs(4));
  EXPECT_THAT(connects.at(2).teams.front().cards,
              ElementsAre(Bytes(1, std::byte(0)), Bytes(1, std::byte(1)), Bytes(1, std::byte(2)),
                          Bytes(1, std::byte(3))));
}

TEST_F(LeaderTest, FormsTeamsThenRunsTheFirstBatch) {
  const auto runs = told<session::Run>(all_joined());
  ASSERT_THAT(runs, SizeIs(4));
  EXPECT_EQ(runs.at(0).batches, runs.at(3).batches);
}

TEST_F(LeaderTest, IgnoresAnAnswerToAnEarlierStep) {
  const auto runs = told<session::Run>(all_joined());
  const std::uint32_t step = runs.at(0).step;
  for (std::uint32_t node = 0; node < 4; ++node)
    EXPECT_THAT(answer(node, step - 1), IsEmpty());
  const auto verdict = inconclusive(tick_at(now_ + runs.at(0).allowance + kAnswerGrace));
  EXPECT_THAT(verdict.missing, SizeIs(4));
}

TEST_F(LeaderTest, NamesTheNodeThatFallsSilentInAMeasurement) {
  const auto runs = told<session::Run>(all_joined());
  for (const std::uint32_t node : {0U, 1U, 3U})
    answer(node, runs.at(0).step);
  const auto verdict = inconclusive(tick_at(now_ + runs.at(0).allowance + kAnswerGrace));
  EXPECT_THAT(verdict.missing, ElementsAre("n3"));
  EXPECT_NE(verdict.phase, judge::Phase::rendezvous);
}

TEST_F(LeaderTest, EndsAtOnceWhenANodeGoesAway) {
  all_joined();
  const auto actions = leader_.on(NodeGone{1, "connection reset"}, now_);
  EXPECT_THAT(inconclusive(actions).missing, ElementsAre("n2"));
  EXPECT_THAT(inconclusive(actions).reason, HasSubstr("connection reset"));
  EXPECT_THAT(leader_.on(NodeGone{2, "connection reset"}, now_), IsEmpty());
}

TEST_F(LeaderTest, DoesNotBelieveANodeThatAnswersForAnother) {
  const auto runs = told<session::Run>(all_joined());
  const auto actions = say(1, Answer{.step = runs.at(0).step, .outcome = {.node = 2}});
  EXPECT_THAT(inconclusive(actions).missing, ElementsAre("n2"));
}

TEST_F(LeaderTest, DoesNotBelieveSamplesOfRanksThatAreNotTheNodesOwn) {
  const auto runs = told<session::Run>(all_joined());
  judge::NodeOutcome outcome{.node = 1, .samples = {Sample{.rank = 2}}, .batch = {runs.at(1).batches[0].id}};
  const auto actions = say(1, Answer{.step = runs.at(1).step, .outcome = outcome});
  EXPECT_THAT(inconclusive(actions).missing, ElementsAre("n2"));
}

TEST_F(LeaderTest, EndsBeforeTheNodeWithTheLeastTimeLeft) {
  Present hurried = present(assignment_);
  hurried.remaining = seconds(2);
  say(2, hurried);
  EXPECT_EQ(leader_.wake(), kStart + seconds(2) - kClosing);
  EXPECT_THAT(all_of<Finish>(tick_at(leader_.wake())), SizeIs(1));
}

TEST_F(LeaderTest, NeverWantsToWakeAfterItsDeadline) {
  now_ = kStart + milliseconds(7'000);
  EXPECT_LE(leader_.wake(), assignment_.deadline);
  Assignment long_rendezvous = assignment_;
  long_rendezvous.rendezvous_deadline = assignment_.deadline + seconds(5);
  EXPECT_LE(Leader(long_rendezvous, kStart).wake(), assignment_.deadline);
}

TEST_F(LeaderTest, TellsEveryoneTheLineThatItReports) {
  const auto actions = leader_.on(Interrupted{"ended by the supervisor"}, now_);
  const auto ends = all_of<Finish>(actions);
  ASSERT_THAT(ends, SizeIs(1));
  for (const auto& [node, close] : told<Close>(actions))
    EXPECT_EQ(close.line, ends.front().report.line);
  EXPECT_EQ(ends.front().report.claimed, "inconclusive");
  EXPECT_THAT(ends.front().report.reason, HasSubstr("ended by the supervisor"));
}

TEST_F(LeaderTest, ItemisesItsTimeByPhase) {
  now_ = kStart + milliseconds(100);
  all_present();
  now_ = kStart + milliseconds(250);
  for (std::uint32_t node = 0; node < 4; ++node)
    say(node, Opened{.ready = ready()});
  now_ = kStart + milliseconds(300);
  const auto report = all_of<Finish>(leader_.on(Interrupted{"enough"}, now_)).front().report;
  EXPECT_EQ(report.phases.at("rendezvous"), milliseconds(100));
  EXPECT_EQ(report.phases.at("open"), milliseconds(150));
  EXPECT_EQ(report.phases.at("connect"), milliseconds(50));
}

TEST(LeaderOfOne, HasNothingToMeasure) {
  const Assignment alone = assignment(1, 0);
  Leader leader(alone, kStart);
  const auto actions = leader.on(FromNode{0, present(alone)}, kStart);
  EXPECT_EQ(all_of<Finish>(actions).front().report.claimed, "inconclusive");
}

TEST_F(LeaderTest, JudgesByWhatEachNodeSaysOfItself) {
  assignment_.policy.findings.of(Flaw::odd_gpus) = Weight::fail;
  assignment_.policy.min_fraction = 0.5;
  assignment_.agreement = agreement(assignment_.policy);
  Leader leader(assignment_, kStart);
  for (std::uint32_t node = 0; node < 4; ++node)
    static_cast<void>(leader.on(FromNode{node, present(assignment_)}, now_));
  for (std::uint32_t node = 0; node < 4; ++node) {
    const judge::NodeHardware hardware{.traits = {{"GPUs", node == 2 ? "7" : "8", true}},
                                       .flaws = {},
                                       .rails = {{"mlx5_0:1", true, Rate{400e9}}}};
    const Opened opened{.ready = ready({"mlx5_0:1"}), .hardware = hardware};
    static_cast<void>(leader.on(FromNode{node, opened}, now_));
  }
  const auto ends = all_of<Finish>(leader.on(NodeGone{3, "its connection ended"}, now_));
  ASSERT_THAT(ends, SizeIs(1));
  const judge::Plan& plan = ends.front().report.plan;
  EXPECT_EQ(plan.thresholds.min, Rate{200e9});
  EXPECT_EQ(std::get<judge::Fail>(judge::decide(plan, {})).flawed.front().words, "n3(odd-gpus: 7, others 8)");
  // Somebody is missing: nothing is held against anybody.
  EXPECT_EQ(ends.front().report.claimed, "inconclusive");
  EXPECT_THAT(ends.front().report.line, HasSubstr(" warn=n3(odd-gpus: 7, others 8) "));
}

}  // namespace
}  // namespace netcheck::session::test
