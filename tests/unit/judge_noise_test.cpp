// Noise alone blames nobody: thousands of healthy networks, each edge with its own error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::plan_for;
using testing::IsEmpty;

/// The matchings of facts, written out again: neighbours, then i with i + half.
std::vector<EdgeFigure> noisy_rounds(std::uint32_t nodes, double sigma, std::mt19937_64& random) {
  std::normal_distribution<double> error(1, sigma);
  std::vector<EdgeFigure> edges;
  const auto both = [&](std::uint32_t a, std::uint32_t b, std::uint32_t round) {
    for (const auto& [from, to] : {std::pair{a, b}, {b, a}})
      edges.push_back({.from = {from, 0},
                       .to = {to, 0},
                       .round = round,
                       .rate = Rate{1e9 * std::max(0.05, error(random))}});
  };
  for (std::uint32_t i = 0; i + 1 < nodes; i += 2)
    both(i, i + 1, 0);
  const std::uint32_t half = (nodes + 1) / 2;
  for (std::uint32_t i = 0; i + half < nodes; ++i)
    both(i, i + half, 1);
  return edges;
}

TEST(Noise, OfTenPerCentBlamesNobodyInTenThousandDraws) {
  std::mt19937_64 random(20240229);
  for (int draw = 0; draw < 10'000; ++draw) {
    const std::uint32_t nodes = 3 + static_cast<std::uint32_t>(draw) % 14;
    const Plan plan = plan_for(nodes);
    const auto edges = noisy_rounds(nodes, 0.10, random);
    const Blame blame = decode(plan, edges);
    ASSERT_THAT(blame.culprits, IsEmpty())
        << "draw " << draw << ", " << nodes << " nodes: " << describe(blame.culprits.front(), plan);
    ASSERT_FALSE(blame.fabric_wide || blame.oversubscribed) << "draw " << draw;
  }
}

TEST(Noise, OfTenPerCentBlamesNobodyWithAFloorInItsMidst) {
  std::mt19937_64 random(7);
  for (int draw = 0; draw < 10'000; ++draw) {
    const std::uint32_t nodes = 3 + static_cast<std::uint32_t>(draw) % 14;
    Plan plan = plan_for(nodes);
    plan.thresholds.site_floor = Rate{0.95e9};
    const Blame blame = decode(plan, noisy_rounds(nodes, 0.10, random));
    ASSERT_THAT(blame.culprits, IsEmpty()) << "draw " << draw << ", " << nodes << " nodes";
  }
}

TEST(Noise, HidesNoNodeAtATenth) {
  std::mt19937_64 random(3);
  for (int draw = 0; draw < 2'000; ++draw) {
    // Even: with an odd number some partner is idle in the other round, and only a third would clear it.
    const std::uint32_t nodes = 4 + 2 * (static_cast<std::uint32_t>(draw) % 7);
    const auto victim = static_cast<std::uint32_t>(random() % nodes);
    auto edges = noisy_rounds(nodes, 0.03, random);
    for (EdgeFigure& edge : edges)
      if (edge.from.node == victim) edge.rate = Rate{edge.rate->bits_per_second / 10};
    const Blame blame = decode(plan_for(nodes), edges);
    ASSERT_EQ(blame.culprits.size(), 1u) << "draw " << draw << ", " << nodes << " nodes";
    EXPECT_EQ(blame.culprits.front().node, victim);
    EXPECT_EQ(blame.culprits.front().direction, Direction::transmit);
  }
}

TEST(Noise, OverWholeChecksBlamesNobodyAndEnds) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const auto nodes = static_cast<std::uint32_t>(2 + seed % 15);
    Plan plan = plan_for(nodes, 1 + seed % 2);
    plan.thresholds.min = Rate{1e13};  // a wish that no network meets: the rounds run
    const auto played = model::play(plan, {.noise = 0.10, .random = std::mt19937_64(seed)});
    const Verdict verdict = decide(plan, played.history);
    ASSERT_EQ(name(verdict), "fail") << "seed " << seed << line(verdict, plan, played.elapsed);
    ASSERT_THAT(model::named(verdict, plan), IsEmpty())
        << "seed " << seed << line(verdict, plan, played.elapsed);
    ASSERT_FALSE(played.late) << "seed " << seed;
  }
}

}  // namespace
}  // namespace netcheck::judge
