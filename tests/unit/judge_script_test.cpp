// What is measured next: partitions, the gate's sizes, the rounds' matchings, and that it always ends in
// time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/matching.h"
#include "judge/rounds.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::Network;
using model::plan_for;
using model::play;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint32_t> nodes_of(const Team& team) {
  std::vector<std::uint32_t> nodes;
  for (const Rank& rank : team.ranks)
    nodes.push_back(rank.node);
  return nodes;
}

TEST(Partition, IsOneGroupUpToTheGroupSize) {
  const auto teams = partition(plan_for(8), 0, 5);
  ASSERT_EQ(teams.size(), 1u);
  EXPECT_EQ(teams[0].id, 5u);
  EXPECT_THAT(nodes_of(teams[0]), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Partition, HasATeamPerRail) {
  const auto teams = partition(plan_for(2, 3), 0, 1);
  ASSERT_EQ(teams.size(), 3u);
  for (std::uint16_t lane = 0; lane < 3; ++lane)
    EXPECT_THAT(teams[lane].ranks, ElementsAre(Rank{0, lane}, Rank{1, lane}));
}

TEST(Partition, IsConsecutiveThenByRemainder) {
  // 9 nodes, groups of at most 8: two, of 5 and 4.
  const auto first = partition(plan_for(9), 0, 1), second = partition(plan_for(9), 1, 1);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(nodes_of(first[0]), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(nodes_of(first[1]), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(nodes_of(second[0]), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(nodes_of(second[1]), ElementsAre(1, 3, 5, 7));
}

TEST(Partition, CoversEveryNodeOnceInEvenGroupsOfTwoOrMore) {
  for (std::uint32_t group_size : {0u, 1u, 2u, 3u, 8u, 16u})
    for (std::uint32_t nodes = 2; nodes <= 130; ++nodes)
      for (const int which : {0, 1}) {
        Plan plan = plan_for(nodes);
        plan.group_size = group_size;
        std::set<std::uint32_t> seen;
        std::size_t least = SIZE_MAX, most = 0;
        for (const Team& team : partition(plan, which, 1)) {
          for (const std::uint32_t node : nodes_of(team))
            EXPECT_TRUE(seen.insert(node).second);
          least = std::min(least, team.ranks.size());
          most = std::max(most, team.ranks.size());
        }
        EXPECT_EQ(seen.size(), nodes);
        EXPECT_LE(most - least, 1u) << nodes;
        EXPECT_GE(least, 2u) << nodes;
        // Three cannot be divided into groups of two and more.
        EXPECT_LE(most, std::max(group_size, 3u)) << nodes;
      }
}

TEST(Partition, NeedsTwoNodes) {
  EXPECT_THAT(partition(plan_for(1), 0, 1), IsEmpty());
  EXPECT_THAT(partition(Plan{}, 0, 1), IsEmpty());
}

TEST(Rails, AreThoseThatEveryNodeHas) {
  Plan plan = plan_for(3, 4);
  plan.nodes[1].lanes.resize(2);
  EXPECT_EQ(rails(plan), 2u);
  EXPECT_EQ(rails(Plan{}), 0u);
}

TEST(Matchings, AreNeighboursThenHalfWayAcross) {
  EXPECT_THAT(neighbours(plan_for(5), 0), ElementsAre(Pair{0, 1}, Pair{2, 3}));
  EXPECT_THAT(across(plan_for(5), 0), ElementsAre(Pair{0, 3}, Pair{1, 4}));  // 2 is idle now, 4 was before
  EXPECT_THAT(across(plan_for(4), 0), ElementsAre(Pair{0, 2}, Pair{1, 3}));
  EXPECT_THAT(across(plan_for(3), 0), ElementsAre(Pair{0, 2}));
  EXPECT_THAT(across(plan_for(2), 0), IsEmpty());
  EXPECT_THAT(left_over(plan_for(5), 0), ElementsAre(Pair{2, 4}));
  EXPECT_THAT(left_over(plan_for(3), 0), ElementsAre(Pair{1, 2}));
  EXPECT_THAT(left_over(plan_for(4), 0), IsEmpty());
}

TEST(Matchings, BringEveryNodeTwoPartnersOrOneAndAThirdRound) {
  for (std::uint32_t nodes = 3; nodes <= 40; ++nodes) {
    Plan plan = plan_for(nodes);
    plan.group_size = 64;
    std::map<std::uint32_t, std::set<std::uint32_t>> partners;
    for (const Matching& matching : {neighbours(plan, 0), across(plan, 0)})
      for (const Pair& pair : matching) {
        EXPECT_TRUE(partners[pair.from].insert(pair.to).second);
        EXPECT_TRUE(partners[pair.to].insert(pair.from).second);
      }
    std::size_t with_one = 0;
    for (std::uint32_t node = 0; node < nodes; ++node)
      if (partners[node].size() == 1) ++with_one;
    EXPECT_EQ(with_one, nodes % 2 == 1 ? 2u : 0u) << nodes;
  }
}

// --- the script as a whole --------------------------------------------------------------------------------

const Measure* measured(const Done& done) {
  return std::get_if<Measure>(&done.step);
}

std::vector<std::uint64_t> gate_sizes(const History& history) {
  std::vector<std::uint64_t> sizes;
  for (const Done& done : history.done)
    if (const Measure* measure = measured(done); measure != nullptr && measure->phase == Phase::gate)
      sizes.push_back(measure->batches.front().bytes);
  return sizes;
}

std::size_t blame_steps(const History& history) {
  return static_cast<std::size_t>(std::ranges::count_if(history.done, [](const Done& done) {
    return measured(done) != nullptr && measured(done)->phase == Phase::blame;
  }));
}

TEST(Script, ConnectsBeforeItMeasures) {
  const auto played = play(plan_for(4, 2), {});
  ASSERT_GE(played.history.done.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Form>(played.history.done[0].step));
  const Measure* connect = measured(played.history.done[1]);
  ASSERT_NE(connect, nullptr);
  EXPECT_EQ(connect->phase, Phase::connect);
  ASSERT_EQ(connect->batches.size(), 2u);
  EXPECT_EQ(connect->batches[0].bytes, 4096u);
  EXPECT_EQ(connect->batches[0].warmup, 1u);
  EXPECT_EQ(connect->batches[0].iterations, 1u);
  EXPECT_TRUE(connect->batches[0].verify);
}

TEST(Script, GrowsUntilTheGainIsSmall) {
  Plan plan = plan_for(4);
  plan.thresholds.min = Rate{1e8};
  const auto played = play(plan, {});
  const auto sizes = gate_sizes(played.history);
  // At 1 Gb/s: 64 KiB takes 0.4 ms, so fourfold steps; from 1 MiB (6.3 ms, 5 times) on a batch lasts 30 ms,
  // and its double gains less than 3 % as latency is 0.15 ms of 6.3.
  EXPECT_THAT(sizes, ElementsAre(65'536, 262'144, 1'048'576, 2'097'152));
  EXPECT_EQ(blame_steps(played.history), 0u);
}

TEST(Script, StopsAtTheMemory) {
  Plan plan = plan_for(4);
  plan.max_bytes = 1u << 20;
  const auto sizes = gate_sizes(play(plan, {.rate = 1e11}).history);
  ASSERT_FALSE(sizes.empty());
  EXPECT_EQ(sizes.back(), 1u << 20);
  for (const std::uint64_t size : sizes)
    EXPECT_LE(size, plan.max_bytes);
}

TEST(Script, RepeatsAtLeastThreeTimes) {
  for (const double rate : {1e6, 1e8, 1e9, 1e12})
    for (const Done& done : play(plan_for(4), {.rate = rate}).history.done)
      if (const Measure* measure = measured(done); measure != nullptr && measure->phase == Phase::gate) {
        EXPECT_GE(measure->batches.front().iterations, 3u);
      }
}

TEST(Script, MeasuresBothPartitionsBeyondTheGroupSize) {
  Plan plan = plan_for(20);
  plan.thresholds.min = Rate{1e8};
  const auto played = play(plan, {});
  std::size_t forms = 0;
  for (const Done& done : played.history.done)
    if (std::holds_alternative<Form>(done.step)) ++forms;
  EXPECT_EQ(forms, 2u);
  EXPECT_EQ(figures_of(plan, played.history)->groups, 3u);
  EXPECT_LE(played.elapsed, plan.slice);
}

TEST(Script, WithoutAThresholdComparesInTwoRounds) {
  EXPECT_EQ(blame_steps(play(plan_for(4), {}).history), 4u);
  EXPECT_EQ(blame_steps(play(plan_for(2), {}).history), 2u);
}

TEST(Script, MeasuresOneWayAtATime) {
  Plan plan = plan_for(7, 2);
  plan.thresholds.min = Rate{1e13};
  Network network;
  network.transmit[{6, 0}] = 0.1;
  for (const Done& done : play(plan, network).history.done) {
    const Measure* measure = measured(done);
    if (measure == nullptr || measure->phase != Phase::blame) continue;
    for (const Batch& batch : measure->batches) {
      std::set<std::uint32_t> ends;
      for (const Edge& edge : batch.edges)
        EXPECT_TRUE(ends.insert(edge.from).second && ends.insert(edge.to).second);
      EXPECT_EQ(batch.op, Op::transfer);
      EXPECT_GE(batch.iterations, 3u);
    }
  }
}

TEST(Script, IdsAreUniqueAndTeamsAreDisjoint) {
  Plan plan = plan_for(20, 2);
  plan.thresholds.min = Rate{1e13};
  Network network;
  network.cut = {3, 7};
  std::set<std::uint32_t> teams, batches;
  for (const Done& done : play(plan, network).history.done) {
    if (const auto* form = std::get_if<Form>(&done.step)) {
      std::set<Rank> ranks;
      for (const Team& team : form->teams) {
        EXPECT_TRUE(teams.insert(team.id).second);
        for (const Rank& rank : team.ranks)
          EXPECT_TRUE(ranks.insert(rank).second);
      }
    }
    if (const Measure* measure = measured(done)) {
      for (const Batch& batch : measure->batches)
        EXPECT_TRUE(batches.insert(batch.id).second);
    }
  }
}

TEST(Script, FormsFreshTeamsAfterTroubleBeforeItGoesOn) {
  Plan plan = plan_for(4);
  Network network;
  network.cut = {0, 2};
  bool spoilt = false;
  for (const Done& done : play(plan, network).history.done) {
    if (std::holds_alternative<Form>(done.step)) spoilt = false;
    EXPECT_FALSE(spoilt) << "measured on teams that were abandoned";
    for (const NodeOutcome& outcome : done.outcomes)
      spoilt = spoilt || outcome.trouble;
  }
}

TEST(Script, EndsAtOnceWhenANodeIsMissing) {
  History history;
  history.missing.push_back({.node = 1});
  EXPECT_EQ(next(plan_for(4), history, Ns(0)), Step(Stop{}));
  History refused;
  refused.refusal = Refusal{Phase::rendezvous, "versions differ"};
  EXPECT_EQ(next(plan_for(4), refused, Ns(0)), Step(Stop{}));
  EXPECT_EQ(next(plan_for(1), {}, Ns(0)), Step(Stop{}));
}

TEST(Script, ProposesNothingThatCouldNotEndInTime) {
  for (const int budget : {0, 100, 400, 800, 1200, 2000, 3000, 5000})
    for (const std::uint32_t nodes : {2u, 5u, 20u})
      for (const double rate : {1e5, 1e6, 1e9, 4e11})
        for (const bool cut : {false, true}) {
          Plan plan = plan_for(nodes);
          plan.budget = milliseconds(budget);
          plan.thresholds.min = plan.thresholds.site_floor = Rate{1e10};
          Network network{.rate = rate};
          if (cut) network.cut = {2, 1};
          const auto played = play(plan, network);
          EXPECT_FALSE(played.late) << budget << " ms, " << nodes << " nodes, " << rate;
          EXPECT_LE(played.elapsed, plan.budget) << budget << " ms, " << nodes << " nodes, " << rate;
          EXPECT_LE(played.steps, kMaxSteps);
        }
}

TEST(Script, KeepsTheGateWithinItsSlice) {
  for (const double rate : {3e6, 1e7, 5e7, 2e8, 1e9, 1e11})
    for (const std::uint32_t nodes : {2u, 4u, 8u, 40u}) {
      Plan plan = plan_for(nodes);
      plan.thresholds.min = Rate{rate / 2};
      const auto played = play(plan, {.rate = rate, .latency = std::chrono::microseconds(2)});
      EXPECT_EQ(name(decide(plan, played.history)), "pass") << rate << " " << nodes;
      EXPECT_LE(played.elapsed, plan.slice) << rate << " bit/s, " << nodes << " nodes";
    }
  // Latency so long that every size gains: only the slice ends the growth.
  Plan plan = plan_for(4);
  plan.thresholds.min = Rate{1e3};
  plan.max_bytes = 1ull << 40;
  EXPECT_LE(play(plan, {.rate = 1e12, .latency = milliseconds(10)}).elapsed, plan.slice);
}

TEST(Script, AllowsNoWaitThatIsTooShortOrTooLong) {
  // Of what is left, kAnswering (200 ms) is kept for the answers.
  EXPECT_EQ(allow(milliseconds(500), milliseconds(250), milliseconds(1000)), milliseconds(500));
  EXPECT_EQ(allow(milliseconds(900), milliseconds(250), milliseconds(1000)), milliseconds(800));
  EXPECT_EQ(allow(milliseconds(900), milliseconds(250), milliseconds(449)), std::nullopt);
  EXPECT_EQ(allow(milliseconds(900), milliseconds(250), milliseconds(-5)), std::nullopt);
}

TEST(Script, NeverWaitsForNothing) {
  for (int budget = 0; budget < 4000; budget += 130) {
    Plan plan = plan_for(5);
    plan.budget = milliseconds(budget);
    plan.thresholds.min = Rate{1e12};
    Network network;
    network.cut = {3, 1};
    for (const Done& done : play(plan, network).history.done)
      if (const Measure* measure = measured(done)) {
        EXPECT_GE(measure->allowance, milliseconds(200)) << budget;
      }
  }
}

TEST(Script, EndsWhateverComesBack) {
  // Outcomes at random: nothing, troubles, half of the samples.
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    Plan plan = plan_for(static_cast<std::uint32_t>(2 + seed % 19), 1 + seed % 2);
    plan.budget = std::chrono::hours(1);
    History history;
    std::size_t steps = 0;
    for (; steps <= kMaxSteps; ++steps) {
      const Step step = next(plan, history, Ns(0));
      if (std::holds_alternative<Stop>(step)) break;
      Done& done = history.done.emplace_back();
      done.step = step;
      for (std::uint32_t node = 0; node < plan.nodes.size(); ++node) {
        NodeOutcome outcome{.node = node};
        if (random() % 40 == 0) outcome.trouble = Trouble::no_bytes;
        if (const Measure* measure = std::get_if<Measure>(&step))
          for (const Batch& batch : measure->batches)
            for (std::uint32_t rank = 0; rank < plan.nodes.size(); ++rank) {
              Sample sample{.rank = rank, .done = {}, .received = random() % 1000};
              for (std::uint32_t i = 1; i <= batch.iterations; ++i)
                sample.done.emplace_back(i * (random() % 5'000'000));
              std::ranges::sort(sample.done);
              outcome.samples.push_back(sample);
              outcome.batch.push_back(batch.id);
            }
        done.outcomes.push_back(outcome);
      }
    }
    EXPECT_LE(steps, kMaxSteps) << "seed " << seed;
    EXPECT_NO_THROW((void)decide(plan, history));
  }
}

}  // namespace
}  // namespace netcheck::judge
