// Three verdicts and the line that people read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/wire.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::Network;
using model::plan_for;
using model::play;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Plan demanding(std::uint32_t nodes, double min) {
  Plan plan = plan_for(nodes);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{min};
  return plan;
}

TEST(Verdict, OfMissingNodesBeatsEverything) {
  const Plan plan = demanding(4, 5e8);
  Network network;
  network.cut = {2, 1};
  auto history = play(plan, network).history;
  ASSERT_EQ(name(decide(plan, history)), "fail");
  history.missing = {{.node = 3, .phase = Phase::gate, .detail = "no answer in time"},
                     {.node = 1, .phase = Phase::gate}};
  const Verdict verdict = decide(plan, history);
  const auto& inconclusive = std::get<Inconclusive>(verdict);
  EXPECT_EQ(inconclusive.phase, Phase::gate);
  EXPECT_THAT(inconclusive.missing, ElementsAre("n1", "n3"));
  EXPECT_EQ(exit_code(verdict), ExitCode::inconclusive);
}

TEST(Verdict, OfNodesThatDoNotFitSaysWhy) {
  History history;
  history.refusal = Refusal{Phase::open, "n2 differs from n0: netcheck is 0.2 instead of 0.1"};
  const Verdict verdict = decide(plan_for(4), history);
  EXPECT_EQ(std::get<Inconclusive>(verdict).reason, history.refusal->why);
  EXPECT_EQ(std::get<Inconclusive>(verdict).phase, Phase::open);
}

TEST(Verdict, OfOneNodeIsInconclusive) {
  EXPECT_EQ(
      line(decide(plan_for(1), {}), plan_for(1), milliseconds(20)),
      "netcheck=inconclusive phase=start nodes=1 time=20ms reason=\"one node: no network between nodes\"");
}

TEST(Verdict, OfNothingMeasuredIsInconclusive) {
  EXPECT_EQ(name(decide(plan_for(4), {})), "inconclusive");
  EXPECT_EQ(name(decide(Plan{}, {})), "inconclusive");
  EXPECT_EQ(name(decide(plan_for(4, 0), {})), "inconclusive");
}

TEST(Verdict, ComparesTheFigureWithTheMinimum) {
  // The model's busbw is 1 Gb/s less latency: 3 hops × 50 µs on 12.6 ms, 988 Mb/s.
  EXPECT_EQ(name(decide(demanding(4, 0.95e9), play(demanding(4, 0.95e9), {}).history)), "pass");
  EXPECT_EQ(name(decide(demanding(4, 1.00e9), play(demanding(4, 1.00e9), {}).history)), "fail");
}

TEST(Verdict, WithoutAThresholdFailsNobodyButWarns) {
  const Plan plan = plan_for(4);
  Network network;
  network.transmit[{3, 0}] = 0.1;
  const auto played = play(plan, network);
  const Verdict verdict = decide(plan, played.history);
  ASSERT_EQ(name(verdict), "pass");
  EXPECT_THAT(std::get<Pass>(verdict).warnings,
              ElementsAre(StartsWith("n3(tx: 100.")));  // 100 Mb/s less latency
  EXPECT_EQ(exit_code(verdict), ExitCode::pass);
}

TEST(Verdict, WithoutAThresholdStillFailsADeadPath) {
  const Plan plan = plan_for(4);
  Network network;
  network.cut = {3, 2};
  const Verdict verdict = decide(plan, play(plan, network).history);
  ASSERT_EQ(name(verdict), "fail");
  EXPECT_TRUE(std::get<Fail>(verdict).dead);
  EXPECT_THAT(line(verdict, plan, milliseconds(5000)),
              HasSubstr("busbw=0Gbps op=all_gather nodes=4 slow=n2(tx+rx: 0Gbps)"));
}

TEST(Verdict, AsksADeadLinkAgainAndCallsADifferentAnswerNoFailure) {
  // One way carries nothing while others run, and everything alone: a stall, not a dead path.
  const Plan plan = plan_for(4);
  History history = play(plan, {}).history;
  for (Done& done : history.done) {
    const auto* measure = std::get_if<Measure>(&done.step);
    if (measure == nullptr || measure->phase != Phase::blame || measure->round != 0 || measure->back)
      continue;
    for (NodeOutcome& outcome : done.outcomes) {
      if (outcome.node != 3) continue;
      outcome.trouble = Trouble::no_bytes;
      outcome.samples.front().done.clear();
      outcome.samples.front().received = 0;
    }
    // What follows is played anew.
    history.done.resize(static_cast<std::size_t>(&done - history.done.data()) + 1);
    break;
  }
  EXPECT_THAT(line(decide(plan, history), plan, Ns(0)), HasSubstr("carried nothing, once"));
  const auto played = model::Player(plan, {}, history).play();
  EXPECT_EQ(name(decide(plan, played.history)), "pass") << line(decide(plan, played.history), plan, Ns(0));
}

TEST(Verdict, IsInconclusiveWhenEveryWayFallsSilent) {
  // The gate passes; in the rounds nothing arrives anywhere, and every process lives.
  const Plan plan = plan_for(4);
  History history = play(plan, {}).history;
  for (Done& done : history.done) {
    const auto* measure = std::get_if<Measure>(&done.step);
    if (measure == nullptr || measure->phase != Phase::blame) continue;
    for (NodeOutcome& outcome : done.outcomes) {
      outcome.trouble = Trouble::no_bytes;
      for (Sample& sample : outcome.samples)
        sample = {.rank = sample.rank};
    }
  }
  EXPECT_THAT(line(decide(plan, history), plan, Ns(0)), HasSubstr("netcheck=inconclusive phase=blame"));
  EXPECT_THAT(line(decide(plan, history), plan, Ns(0)), HasSubstr("no bytes came over any way"));
}

TEST(Verdict, ShowsNoFigureOfASizeThatDidNotLast) {
  // A process dies while the sizes are still small: what a burst carried is nothing to show.
  const Plan plan = plan_for(4);
  Network network;
  network.dies = {3, 1};
  const auto played = play(plan, network);
  ASSERT_TRUE(figures_of(plan, played.history));
  EXPECT_THAT(line(decide(plan, played.history), plan, Ns(0)), testing::Not(HasSubstr("busbw=")));
}

TEST(Verdict, TellsADeadProcessFromThoseThatWaitForIt) {
  // A library that connects to a peer that is gone may block: its process is as silent as a hung one.
  const Plan plan = plan_for(4);
  Network network;
  network.dies = {1, 2};
  History history = play(plan, network).history;
  Done& connect = history.done.back();
  const auto at = [&](std::uint32_t node) -> NodeOutcome& {
    return *std::ranges::find(connect.outcomes, node, &NodeOutcome::node);
  };
  at(0).trouble = at(3).trouble = Trouble::child_silent;
  EXPECT_THAT(std::get<Inconclusive>(decide(plan, history)).reason, StartsWith("n2: fabric process died"));
  // Three that are silent: it may be any, or none of them.
  at(2).trouble = Trouble::child_silent;
  EXPECT_THAT(std::get<Inconclusive>(decide(plan, history)).reason,
              StartsWith("n0,n[2-3], one of them or the way between: fabric process gave no sign of life"));
}

TEST(Verdict, OfATeamThatIsNotFormedInTimeIsInconclusiveAndNamesThePhase) {
  const Plan plan = demanding(3, 5e8);
  History history = play(plan, {}).history;
  history.done.resize(1);
  for (NodeOutcome& outcome : history.done.front().outcomes) {
    outcome.trouble = Trouble::late;
    outcome.detail = "given up while it was still waiting";
  }
  const auto judged = std::get<Inconclusive>(decide(plan, history));
  EXPECT_EQ(judged.phase, Phase::connect);
  EXPECT_EQ(judged.reason,
            "n[0-2], one of them or the way between: did not end in time: given up while it was "
            "still waiting");
  // Who gave no sign of life is named before those that waited, perhaps for it.
  history.done.front().outcomes[1].trouble = Trouble::child_silent;
  EXPECT_THAT(std::get<Inconclusive>(decide(plan, history)).reason,
              StartsWith("n1: fabric process gave no sign of life"));
}

TEST(Verdict, FailsCorruptDataWithoutACulprit) {
  const Plan plan = demanding(4, 1e8);
  Network network;
  network.wrong[2] = 12;
  const Verdict verdict = decide(plan, play(plan, network).history);
  ASSERT_EQ(name(verdict), "fail");
  EXPECT_EQ(std::get<Fail>(verdict).reason, "corrupt data: n2 received 12 wrong elements");
  EXPECT_TRUE(std::get<Fail>(verdict).blame.culprits.empty());
  EXPECT_EQ(exit_code(verdict), ExitCode::fail);
}

TEST(Verdict, FailsByCapacityWhenTheGateCannotEnd) {
  // 2 kb/s: not even 4 KiB pass within the allowance of the first batch. The rounds see some bytes of it.
  const Plan plan = demanding(4, 5e8);
  Network network;
  network.transmit[{1, 0}] = 2e-6;
  const Verdict verdict = decide(plan, play(plan, network).history);
  ASSERT_EQ(name(verdict), "fail");
  EXPECT_FALSE(std::get<Fail>(verdict).figures);
  EXPECT_FALSE(std::get<Fail>(verdict).dead);
  EXPECT_THAT(model::named(verdict, plan), ElementsAre("n1(tx)"));
}

TEST(Verdict, OfAProcessThatDiesAfterTheGateKeepsTheFigure) {
  const Plan plan = plan_for(4);  // compares in rounds after a gate of 6 steps
  Network network;
  network.dies = {7, 1};
  EXPECT_EQ(name(decide(plan, play(plan, network).history)), "pass");
  // Below the minimum it stays a fail, proven by the gate; nobody is named on half the evidence.
  const Plan strict = demanding(4, 1e10);
  const Verdict verdict = decide(strict, play(strict, network).history);
  EXPECT_EQ(name(verdict), "fail");
  EXPECT_TRUE(model::named(verdict, strict).empty());
}

TEST(Verdict, OfABrokenFabricNamesNodeAndPhase) {
  History history;
  Done& done = history.done.emplace_back();
  done.step = Form{.phase = Phase::open, .teams = {}};
  done.outcomes.push_back({.node = 2, .trouble = Trouble::refused, .detail = "no device eth7"});
  const Verdict verdict = decide(plan_for(4), history);
  EXPECT_EQ(
      line(verdict, plan_for(4), milliseconds(900)),
      "netcheck=inconclusive phase=open nodes=4 time=900ms reason=\"n2: fabric refused: no device eth7\"");
}

TEST(Verdict, PerRailFiguresAddUp) {
  const Plan plan = plan_for(4, 2);
  Network network;
  network.transmit[{0, 1}] = 0.5;
  const auto figures = figures_of(plan, play(plan, network).history);
  ASSERT_TRUE(figures);
  ASSERT_EQ(figures->per_rail.size(), 2u);
  EXPECT_NEAR(figures->per_rail[0].bits_per_second, 1e9, 0.03e9);
  EXPECT_NEAR(figures->per_rail[1].bits_per_second, 0.5e9, 0.03e9);
  EXPECT_NEAR(figures->busbw.bits_per_second, 1.5e9, 0.05e9);
}

TEST(Verdict, IsTheMinimumOverGroupsOfBothPartitions) {
  // A slow way 0 → 8 only the second partition's ring meets: groups {0, 2, 4…} of 16 nodes in two.
  const Plan plan = plan_for(16);
  Network network;
  network.links[{0, 2, 0}] = 0.4;
  const auto figures = figures_of(plan, play(plan, network).history);
  ASSERT_TRUE(figures);
  EXPECT_NEAR(figures->busbw.bits_per_second, 0.4e9, 0.02e9);
  EXPECT_EQ(figures->groups, 2u);
}

// --- the line ---------------------------------------------------------------------------------------------

Figures figures(double busbw) {
  return {
      .busbw = {busbw}, .per_rail = {{busbw}}, .op = Op::all_reduce, .algorithm = "ring", .bytes = 1u << 20};
}

TEST(Line, OfAPass) {
  Plan plan = plan_for(4);
  plan.thresholds.min = Rate{2400e9};
  EXPECT_EQ(line(Pass{.figures = figures(2950.4e9)}, plan, milliseconds(5100)),
            "netcheck=pass busbw=2950.4Gbps min=2400Gbps op=all_reduce algo=ring nodes=4 time=5.1s");
}

TEST(Line, SaysRailsGroupsNoiseAndWarnings) {
  Figures noisy = figures(96e6);
  noisy.groups = 3;
  noisy.noisy = true;
  EXPECT_EQ(line(Pass{.figures = noisy, .warnings = {"n3(tx: 96.0Mbps)", "n4/eth1(rx: 0Gbps)"}},
                 plan_for(20, 2), milliseconds(1200)),
            "netcheck=pass busbw=96.0Mbps op=all_reduce algo=ring nodes=20 rails=2 groups=3 noisy=yes "
            "warn=n3(tx: 96.0Mbps),n4/eth1(rx: 0Gbps) time=1.2s");
}

TEST(Line, OfAFailNamesTheSlow) {
  Plan plan = plan_for(4, 2);
  plan.thresholds.min = Rate{400e9};
  Fail fail{.figures = figures(96.3e9)};
  fail.blame.culprits = {{.node = 3, .direction = Direction::transmit, .measured = {11.9e9}},
                         {.node = 1, .lane = 1, .direction = Direction::both, .measured = {2e9}},
                         {.node = 1, .peer = 2, .direction = Direction::transmit, .measured = {95.9e6}}};
  EXPECT_EQ(line(fail, plan, milliseconds(7900)),
            "netcheck=fail busbw=96.3Gbps min=400Gbps op=all_reduce algo=ring nodes=4 rails=2 "
            "slow=n3(tx: 11.9Gbps),n1/eth1(tx+rx: 2.0Gbps),n1>n2(link: 95.9Mbps) time=7.9s");
}

TEST(Line, OfMissingNodesFoldsThem) {
  Inconclusive verdict{.phase = Phase::rendezvous, .missing = {"n1", "n2", "n3"}, .reason = "never came"};
  EXPECT_EQ(line(verdict, plan_for(4), milliseconds(3000)),
            "netcheck=inconclusive phase=rendezvous missing=n[1-3] nodes=4 time=3.0s reason=\"never came\"");
}

TEST(Line, IsOneShortPrintableLineWhateverIsInIt) {
  Plan plan = plan_for(300, 2);
  for (NodePlan& node : plan.nodes) {
    node.name = std::string(200, 'x') + "\n\x1b[31m\"" + node.name;
    node.lanes = {std::string(300, '\t'), "\"\r\n"};
  }
  plan.thresholds.min = Rate{1e15};
  Fail fail{.figures = figures(1e15), .reason = std::string(5000, '"') + "\nnetcheck=pass"};
  Pass pass{.figures = figures(1e15)};
  Inconclusive inconclusive{.reason = std::string(5000, '\n')};
  for (std::uint32_t node = 0; node < 300; ++node) {
    fail.blame.culprits.push_back({.node = node, .lane = 0});
    pass.warnings.push_back(std::string(400, '\x01'));
    inconclusive.missing.push_back(plan.nodes[node].name);
  }
  for (const Verdict& verdict : {Verdict(fail), Verdict(pass), Verdict(inconclusive)}) {
    const std::string text = line(verdict, plan, milliseconds(1000));
    EXPECT_LE(text.size(), 1024u);
    EXPECT_THAT(text, HasSubstr(" time=1.0s"));
    for (const char character : text)
      EXPECT_GE(static_cast<unsigned char>(character), 0x20);
    EXPECT_LE(std::ranges::count(text, '"'), 2);
  }
}

TEST(Line, JsonOfEveryVerdictSaysWhichItIs) {
  Fail fail{.reason = "x"};
  fail.blame.culprits = {
      {.node = 3, .peer = 1, .lane = 0, .direction = Direction::transmit, .measured = {1e6}}};
  const Json json = to_json(Verdict(fail), plan_for(4));
  EXPECT_EQ(json["verdict"], "fail");
  EXPECT_EQ(json["blame"]["culprits"][0]["node"], "n3");
  EXPECT_EQ(json["blame"]["culprits"][0]["peer"], "n1");
  EXPECT_EQ(to_json(Verdict(Pass{.figures = figures(1e9)}), plan_for(4))["verdict"], "pass");
  EXPECT_EQ(to_json(Verdict(Inconclusive{.phase = Phase::gate}), plan_for(4))["phase"], "gate");
}

}  // namespace
}  // namespace netcheck::judge
