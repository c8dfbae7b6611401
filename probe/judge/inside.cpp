// See inside.h.
#include "judge/inside.h"

#include <algorithm>
#include <map>
#include <optional>

#include "judge/evidence.h"
#include "judge/standing.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

/// One node's slowest way in one step, bits/s; or the best of several steps.
struct Slowest {
  double rate = 0, average = 0, unhindered = 0;
  std::uint32_t lasted = 0;  ///< in how many steps it took long enough to accuse
};

/// By node, of every step in which all its ways were measured.
std::map<std::uint32_t, std::vector<Slowest>> slowest_ways(const History& history) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<Slowest>> by_step;  // step, node
  for (const EdgeFigure& edge : inside_edges_of(history)) {
    const auto [at, first] = by_step.try_emplace({edge.round, edge.from.node}, Slowest{1e18, 1e18, 1e18, 0});
    std::optional<Slowest>& slowest = at->second;
    if (!slowest) continue;
    if (!edge.rate || edge.part_running <= 0) {
      slowest.reset();
      continue;
    }
    const double rate = edge.rate->bits_per_second;
    if (rate < slowest->rate) slowest->lasted = edge.partial || edge.timed >= kTooShort ? 1 : 0;
    slowest->rate = std::min(slowest->rate, rate);
    slowest->average = std::min(slowest->average, edge.average.value_or(*edge.rate).bits_per_second);
    slowest->unhindered = std::min(slowest->unhindered, rate / edge.part_running);
  }
  std::map<std::uint32_t, std::vector<Slowest>> nodes;
  for (const auto& [key, slowest] : by_step)
    if (slowest) nodes[key.second].push_back(*slowest);
  return nodes;
}

/// Each node at its best; of those that lasted, where there are any.
std::map<std::uint32_t, Slowest> best_of(const History& history) {
  std::map<std::uint32_t, Slowest> best;
  for (const auto& [node, all] : slowest_ways(history)) {
    Slowest& most = best[node];
    for (const Slowest& one : all) {
      if (one.lasted == 0 && most.lasted > 0) continue;
      if (one.lasted > 0 && most.lasted == 0) most = {};
      most.rate = std::max(most.rate, one.rate);
      most.average = std::max(most.average, one.average);
      most.unhindered = std::max(most.unhindered, one.unhindered);
      most.lasted += one.lasted;
    }
  }
  return best;
}

constexpr std::size_t kFewest = 3;

}  // namespace

bool has_inside(const Plan& plan) {
  return plan.teaming == Teaming::over_lanes && std::ranges::count_if(plan.nodes, [](const NodePlan& node) {
                                                  return node.lanes.size() > 1;
                                                }) >= static_cast<std::ptrdiff_t>(kFewest);
}

InsideSoFar inside_so_far(const History& history) {
  InsideSoFar so_far;
  for (const Done& done : history.done)
    if (const Measure* measure = measure_of(done); measure != nullptr && measure->inside) ++so_far.steps;
  std::map<std::uint32_t, Ns> longest;
  std::map<std::uint32_t, std::vector<double>> rates;
  for (const EdgeFigure& edge : inside_edges_of(history)) {
    if (!edge.rate || edge.partial) continue;
    longest[edge.round] = std::max(longest[edge.round], edge.timed);
    rates[edge.round].push_back(edge.rate->bits_per_second);
  }
  for (const auto& [step, all] : rates) {
    if (longest[step] >= kTooShort) ++so_far.telling;
    so_far.median = median(all).value_or(0);
    so_far.slowest = std::ranges::min(all);
  }
  return so_far;
}

std::vector<Culprit> slow_inside(const Plan& plan, const History& history) {
  std::map<std::string, std::map<std::uint32_t, Slowest>> kinds;
  for (const auto& [node, best] : best_of(history))
    kinds[plan.nodes[node].machine][node] = best;
  std::vector<Culprit> all;
  for (const auto& [kind, nodes] : kinds) {
    if (nodes.size() < kFewest) continue;
    std::vector<Culprit> culprits;
    std::vector<double> rates;
    for (const auto& [node, best] : nodes)
      rates.push_back(best.rate);
    const double bar = bar_below(rates, median(rates).value_or(0), kBlameFraction);
    for (const auto& [node, best] : nodes)
      if (best.unhindered < bar && best.lasted >= kInsideTimes)
        culprits.push_back({.node = node,
                            .peer = std::nullopt,
                            .lane = std::nullopt,
                            .direction = Direction::inside,
                            .measured = {best.average},
                            .isolated = true});
    // Where most are slow nobody is the odd one.
    if (culprits.size() * 2 < nodes.size()) all.insert(all.end(), culprits.begin(), culprits.end());
  }
  std::ranges::sort(all, {}, &Culprit::node);
  return all;
}

Blame blame_of(const Plan& plan, const History& history) {
  Blame blame = decode(plan, edges_of(plan, history));
  auto inside = slow_inside(plan, history);
  if (inside.empty()) return blame;
  blame.found = true;
  if (blame.culprits.empty() && !blame.fabric_wide && !blame.oversubscribed) blame.explanation.clear();
  blame.culprits.insert(blame.culprits.end(), inside.begin(), inside.end());
  std::ranges::stable_sort(blame.culprits, {},
                           [](const Culprit& culprit) { return culprit.peer.has_value(); });
  return blame;
}

}  // namespace netcheck::judge
