// Whole checks over a modelled network: each fault must be named exactly, or nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::named;
using model::Network;
using model::plan_for;
using model::play;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kGbps = 1e9;

/// A plan whose site demands `min` of the whole team.
Plan demanding(std::uint32_t nodes, std::uint32_t lanes, double min) {
  Plan plan = plan_for(nodes, lanes);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{min};
  return plan;
}

struct Case {
  std::uint32_t nodes, lanes;
};
class Faults : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] Plan plan() const { return demanding(nodes(), lanes(), 0.5 * kGbps * lanes()); }
  [[nodiscard]] static std::uint32_t nodes() { return GetParam().nodes; }
  [[nodiscard]] static std::uint32_t lanes() { return GetParam().lanes; }
  /// Any node; the odd ones out of a round too.
  [[nodiscard]] static std::vector<std::uint32_t> victims() { return {0, 1, nodes() / 2, nodes() - 1}; }
  static std::string of(std::uint32_t node, std::string_view rest) {
    return "n" + std::to_string(node) + std::string(rest);
  }
  /// Two nodes tell the direction, not the side: nobody is named.
  void expect_named(const Verdict& verdict, const std::string& culprit) {
    const auto expected = nodes() == 2 ? std::vector<std::string>{} : std::vector{culprit};
    EXPECT_EQ(named(verdict, plan()), expected) << line(verdict, plan(), last_.elapsed);
  }
  Verdict judged(const Network& network) {
    const auto played = play(plan(), network);
    EXPECT_LE(played.steps, kMaxSteps);
    EXPECT_FALSE(played.late);
    EXPECT_LE(played.elapsed, plan().budget);
    last_ = played;
    return decide(plan(), played.history);
  }
  model::Played last_;
};

TEST_P(Faults, PassWithinTheSliceWhenAllAreHealthy) {
  const Verdict verdict = judged({});
  ASSERT_TRUE(std::holds_alternative<Pass>(verdict)) << line(verdict, plan(), last_.elapsed);
  // The model moves 1 Gb/s per rail over each edge; its latency of 50 µs per hop costs a few per cent.
  const double busbw = std::get<Pass>(verdict).figures.busbw.bits_per_second;
  EXPECT_NEAR(busbw, kGbps * lanes(), 0.05 * kGbps * lanes());
  EXPECT_LE(last_.elapsed, plan().slice);
}

TEST_P(Faults, NameTheNodeWhoseTransmitIsSlow) {
  for (const std::uint32_t victim : victims()) {
    Network network;
    for (std::uint16_t lane = 0; lane < lanes(); ++lane)
      network.transmit[{victim, lane}] = 0.1;
    const Verdict verdict = judged(network);
    EXPECT_EQ(name(verdict), "fail");
    expect_named(verdict, of(victim, "(tx)"));
  }
}

TEST_P(Faults, NameTheNodeWhoseReceiveIsSlow) {
  for (const std::uint32_t victim : victims()) {
    Network network;
    for (std::uint16_t lane = 0; lane < lanes(); ++lane)
      network.receive[{victim, lane}] = 0.1;
    const Verdict verdict = judged(network);
    EXPECT_EQ(name(verdict), "fail");
    expect_named(verdict, of(victim, "(rx)"));
  }
}

TEST_P(Faults, NameTheNodeThatIsSlowBothWays) {
  for (const double part : {0.1, 0.3, 0.01, 0.001})
    for (const std::uint32_t victim : victims()) {
      Network network;
      for (std::uint16_t lane = 0; lane < lanes(); ++lane)
        network.receive[{victim, lane}] = network.transmit[{victim, lane}] = part;
      const Verdict verdict = judged(network);
      EXPECT_EQ(name(verdict), "fail") << part << " " << line(verdict, plan(), last_.elapsed);
      expect_named(verdict, of(victim, "(tx+rx)"));
    }
}

TEST_P(Faults, NameTheRailThatIsSlow) {
  if (lanes() < 2 || nodes() == 2) return;
  for (const std::uint32_t victim : victims()) {
    Network network;
    network.transmit[{victim, 1}] = network.receive[{victim, 1}] = 0.05;
    Plan strict = demanding(nodes(), lanes(), 0.7 * kGbps * lanes());
    const auto played = play(strict, network);
    const Verdict verdict = decide(strict, played.history);
    EXPECT_EQ(name(verdict), "fail");
    EXPECT_THAT(named(verdict, strict), ElementsAre(of(victim, "/eth1(tx+rx)")));
  }
}

TEST_P(Faults, WarnOfARailThatTheSumHides) {
  if (lanes() < 2 || nodes() == 2) return;
  Network network;
  network.transmit[{1, 1}] = network.receive[{1, 1}] = 0.4;
  const Plan lenient = demanding(nodes(), lanes(), 0.5 * kGbps * lanes());  // 1.4 of 2 Gb/s pass
  const auto played = play(lenient, network);
  const Verdict verdict = decide(lenient, played.history);
  ASSERT_EQ(name(verdict), "pass");
  EXPECT_THAT(std::get<Pass>(verdict).warnings, ElementsAre(testing::StartsWith("n1/eth1(tx+rx: ")));
}

TEST_P(Faults, NameTheLinkThatIsSlowOrNobody) {
  if (nodes() < 4) return;
  for (const std::uint32_t victim : victims()) {
    // The gate's ring meets i → i + 1.
    const std::uint32_t peer = (victim + 1) % nodes();
    Network network;
    for (std::uint16_t lane = 0; lane < lanes(); ++lane)
      network.links[{victim, peer, lane}] = 0.1;
    const Verdict verdict = judged(network);
    const std::string link = of(victim, ">") + of(peer, "(link)");
    const auto who = named(verdict, plan());
    EXPECT_TRUE(who.empty() || (who.size() == 1 && who.front() == link))
        << line(verdict, plan(), last_.elapsed);
    if (nodes() <= 8) {  // of one group every way of the ring is tried
      EXPECT_THAT(who, ElementsAre(link)) << line(verdict, plan(), last_.elapsed);
    }
  }
}

TEST_P(Faults, NameTheNodeWhoseDataPathIsDeadFromTheStart) {
  for (const std::uint32_t victim : victims()) {
    Network network;
    network.cut = {0, victim};
    const Verdict verdict = judged(network);
    if (nodes() == 2) {  // no byte ever came and nothing else works: no evidence
      EXPECT_EQ(name(verdict), "inconclusive");
    } else {
      EXPECT_EQ(name(verdict), "fail");
      EXPECT_THAT(named(verdict, plan()), ElementsAre(of(victim, "(tx+rx)")))
          << line(verdict, plan(), last_.elapsed);
    }
  }
}

TEST_P(Faults, NameTheNodeWhoseDataPathIsCutInTheMiddle) {
  for (const std::size_t step : {2u, 4u})
    for (const std::uint32_t victim : victims()) {
      Network network;
      network.cut = {step, victim};
      const Verdict verdict = judged(network);
      EXPECT_EQ(name(verdict), "fail") << line(verdict, plan(), last_.elapsed);
      ASSERT_TRUE(std::holds_alternative<Fail>(verdict));
      EXPECT_TRUE(std::get<Fail>(verdict).dead);
      expect_named(verdict, of(victim, "(tx+rx)"));
    }
}

TEST_P(Faults, NameTwoSlowNodes) {
  if (nodes() < 4) return;
  for (const auto& [first, second] : {std::pair{0u, 1u}, {1u, nodes() - 1}, {0u, nodes() / 2}}) {
    Network network;
    for (std::uint16_t lane = 0; lane < lanes(); ++lane) {
      network.transmit[{first, lane}] = 0.1;
      network.receive[{second, lane}] = 0.1;
    }
    const Verdict verdict = judged(network);
    EXPECT_EQ(name(verdict), "fail");
    EXPECT_THAT(named(verdict, plan()), ElementsAre(of(first, "(tx)"), of(second, "(rx)")))
        << line(verdict, plan(), last_.elapsed);
  }
}

TEST_P(Faults, BlameTheFabricWhenAllAreSlow) {
  Network network;
  network.rate = 0.2 * kGbps;
  const Verdict verdict = judged(network);
  ASSERT_EQ(name(verdict), "fail");
  const auto& fail = std::get<Fail>(verdict);
  EXPECT_THAT(fail.blame.culprits, IsEmpty());
  EXPECT_EQ(fail.blame.fabric_wide, nodes() > 2);
}

TEST_P(Faults, BlameNobodyForAUsersWish) {
  Plan wish = plan_for(nodes(), lanes());
  wish.thresholds.min = Rate{1e13};
  const auto played = play(wish, {.noise = 0.02});
  const Verdict verdict = decide(wish, played.history);
  EXPECT_EQ(name(verdict), "fail");
  EXPECT_THAT(named(verdict, wish), IsEmpty());
  EXPECT_FALSE(std::get<Fail>(verdict).blame.fabric_wide);
}

TEST_P(Faults, SayInconclusiveWhenAFabricProcessDies) {
  for (const std::size_t step : {1u, 2u, 3u}) {
    Network network;
    network.dies = {step, nodes() - 1};
    const Verdict verdict = judged(network);
    ASSERT_EQ(name(verdict), "inconclusive");
    EXPECT_EQ(std::get<Inconclusive>(verdict).phase, step == 1 ? Phase::connect : Phase::gate);
    EXPECT_THAT(std::get<Inconclusive>(verdict).reason,
                testing::HasSubstr(of(nodes() - 1, ": fabric process died")));
  }
}

TEST_P(Faults, MeasureSlowAndFastNetworks) {
  for (const double rate : {1e6, 1e7, 1e8, 1e10, 1e11, 4e11, 3.2e12}) {
    Plan plan = plan_for(nodes(), lanes());
    plan.max_bytes = 1u << 30;
    const auto played = play(plan, {.rate = rate, .latency = std::chrono::microseconds(10)});
    const Verdict verdict = decide(plan, played.history);
    EXPECT_EQ(name(verdict), "pass") << rate << " " << line(verdict, plan, played.elapsed);
    EXPECT_FALSE(played.late);
    EXPECT_LE(played.elapsed, std::chrono::milliseconds(rate < 5e6 ? 5000 : 2500)) << rate;
    const auto figures = figures_of(plan, played.history);
    ASSERT_TRUE(figures);
    EXPECT_NEAR(figures->busbw.bits_per_second, rate * lanes(), 0.1 * rate * lanes()) << rate;
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, Faults,
                         testing::Values(Case{2, 1}, Case{3, 1}, Case{4, 1}, Case{5, 1}, Case{6, 1},
                                         Case{7, 2}, Case{8, 1}, Case{9, 1}, Case{16, 1}, Case{33, 2},
                                         Case{64, 1}),
                         [](const auto& suite) {
                           return "n" + std::to_string(suite.param.nodes) + "r" +
                                  std::to_string(suite.param.lanes);
                         });

/// Among three nodes n0>n1 and n1>n0 alone are not the slow one's. The first of them is sized by the gate's
/// rate, so that it is over in an eighth of the others' time: what one late moment does to it must hide
/// nobody.
TEST(Play, ALateMomentInTheShortestHalfRoundHidesNoSlowNode) {
  const Plan plan = demanding(3, 1, 0.5 * kGbps);
  Network network;
  network.transmit[{2, 0}] = 0.1;
  const auto usual = play(plan, network);
  const auto first = std::ranges::find_if(usual.history.done, [](const Done& done) {
    const auto* measure = std::get_if<Measure>(&done.step);
    return measure != nullptr && measure->phase == Phase::blame;
  });
  ASSERT_NE(first, usual.history.done.end());
  network.moments[static_cast<std::size_t>(first - usual.history.done.begin())] = 0.85;
  const auto late = play(plan, network);
  const Verdict verdict = decide(plan, late.history);
  EXPECT_THAT(named(verdict, plan), ElementsAre("n2(tx)")) << line(verdict, plan, late.elapsed);
}

}  // namespace
}  // namespace netcheck::judge
