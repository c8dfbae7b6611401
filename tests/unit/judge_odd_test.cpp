// Odd groups: somebody is idle in each of the first two rounds, and of three nodes one is on every way
// measured until then. One fault is still named exactly, and of two never a healthy node.
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

constexpr double kGbps = 1e9, kTenth = 0.1;

struct Fault {
  std::uint32_t node = 0;
  bool transmit = false, receive = false;
};

Network with(const std::vector<Fault>& faults, double part, double noise, std::uint64_t seed) {
  Network network{.noise = noise, .random = std::mt19937_64(seed)};
  for (const Fault& fault : faults) {
    if (fault.transmit) network.transmit[{fault.node, 0}] = part;
    if (fault.receive) network.receive[{fault.node, 0}] = part;
  }
  return network;
}

/// What the site demands: of the whole and of each way; or of the whole only, so that ways are compared with
/// each other and nothing else.
enum class Floor : std::uint8_t { site, none };

Plan demanding(std::uint32_t nodes, Floor floor) {
  Plan plan = plan_for(nodes);
  plan.thresholds.min = Rate{0.5 * kGbps};
  if (floor == Floor::site) plan.thresholds.site_floor = plan.thresholds.min;
  return plan;
}

/// Nodes and group size: 9 in groups of 8 are 4 and 5, 10 are 5 and 5, 6 in groups of 3 are 3 and 3.
struct Odd {
  std::uint32_t nodes, group_size;
};
constexpr Odd kOdd[] = {{3, 8}, {5, 8}, {7, 8}, {9, 16}, {9, 8}, {10, 8}, {6, 3}, {9, 3}};

TEST(OddGroups, NameAnySlowNodeAnyWay) {
  for (const auto& [nodes, group_size] : kOdd)
    for (const Floor floor : {Floor::site, Floor::none})
      for (const auto& [part, noise] : {std::pair{0.1, 0.0}, {0.1, 0.02}, {0.01, 0.02}, {0.001, 0.0}})
        for (std::uint32_t victim = 0; victim < nodes; ++victim)
          for (const Fault& fault :
               {Fault{victim, true, false}, {victim, false, true}, {victim, true, true}}) {
            Plan plan = demanding(nodes, floor);
            plan.group_size = group_size;
            const auto played = play(plan, with({fault}, part, noise, victim + 1));
            const Verdict verdict = decide(plan, played.history);
            const std::string way = fault.transmit && fault.receive ? "(tx+rx)"
                                    : fault.transmit                ? "(tx)"
                                                                    : "(rx)";
            ASSERT_EQ(name(verdict), "fail");
            EXPECT_THAT(named(verdict, plan), ElementsAre("n" + std::to_string(victim) + way))
                << nodes << "/" << group_size << (floor == Floor::none ? " no floor" : "") << " part " << part
                << " noise " << noise << ": " << line(verdict, plan, played.elapsed);
            EXPECT_FALSE(played.late);
            EXPECT_LE(played.steps, kMaxSteps);
          }
}

/// Every set of ways that two of three nodes may be slow in, the third node healthy.
std::vector<std::vector<Fault>> pairs_of_faults() {
  std::vector<std::vector<Fault>> all;
  for (std::uint32_t healthy = 0; healthy < 3; ++healthy)
    for (int a = 1; a < 4; ++a)
      for (int b = 1; b < 4; ++b)
        all.push_back({{(healthy + 1) % 3, (a & 1) != 0, (a & 2) != 0},
                       {(healthy + 2) % 3, (b & 1) != 0, (b & 2) != 0}});
  return all;
}

TEST(OddGroups, OfThreeNodesWithTwoFaultsNameNobody) {
  for (const auto& faults : pairs_of_faults())
    for (const Floor floor : {Floor::site, Floor::none})
      for (const double noise : {0.0, 0.02}) {
        const Plan plan = demanding(3, floor);
        const auto played = play(plan, with(faults, kTenth, noise, 5));
        const Verdict verdict = decide(plan, played.history);
        EXPECT_EQ(name(verdict), "fail");
        EXPECT_THAT(named(verdict, plan), IsEmpty()) << line(verdict, plan, played.elapsed);
      }
}

TEST(OddGroups, OfThreeNodesWithTwoUnlikeFaultsNeverNameTheHealthyOne) {
  for (const auto& faults : pairs_of_faults())
    for (const double other : {0.3, 0.02}) {
      Network network = with(faults, kTenth, 0.02, 5);
      for (auto* ends : {&network.transmit, &network.receive})
        if (const auto end = ends->find({faults.front().node, 0}); end != ends->end()) end->second = other;
      const Plan plan = demanding(3, Floor::none);
      const auto played = play(plan, network);
      const Verdict verdict = decide(plan, played.history);
      const std::uint32_t healthy = 3 - faults[0].node - faults[1].node;
      for (const Culprit& culprit : std::get<Fail>(verdict).blame.culprits)
        EXPECT_TRUE(culprit.node != healthy) << line(verdict, plan, played.elapsed);
    }
}

TEST(OddGroups, EverybodyMeetsTwoPartnersEvenWhenNothingIsSuspect) {
  for (const auto& [nodes, group_size] : kOdd) {
    Plan plan = plan_for(nodes);  // without a threshold the rounds compare
    plan.group_size = group_size;
    const auto played = play(plan, {});
    std::vector<std::set<std::uint32_t>> partners(nodes);
    for (const EdgeFigure& edge : edges_of(plan, played.history)) {
      partners[edge.from.node].insert(edge.to.node);
      partners[edge.to.node].insert(edge.from.node);
    }
    for (std::uint32_t node = 0; node < nodes; ++node)
      EXPECT_GE(partners[node].size(), 2u) << nodes << "/" << group_size << " node " << node;
  }
}

}  // namespace
}  // namespace netcheck::judge
