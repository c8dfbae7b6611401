// See script.h. Here: where the script stands, and the gate; the rounds are in rounds.cpp.
#include "judge/script.h"

#include <algorithm>

#include "judge/blame.h"
#include "judge/evidence.h"
#include "judge/gate.h"
#include "judge/groups.h"
#include "judge/pairs.h"
#include "judge/rounds.h"
#include "judge/transport.h"
#include "measure/collective.h"

namespace netcheck::judge {
namespace {

using std::chrono::milliseconds;

/// A first batch on an unknown network: lazy connections, address resolution.
constexpr Ns kFirstAllowance = milliseconds(1500);
/// A batch of known length may take four times as long, and half a second at least: neighbours' traffic.
constexpr int kGatePatience = 4;
constexpr Ns kLeastPatience = milliseconds(500);
/// Less is not worth beginning.
constexpr Ns kLeastGateAllowance = milliseconds(200);
/// A rail below this part of the median rail is looked into even when the sum passes: one dead rail of eight
/// is 12.5 % of a node, within any tolerance of the sum.
constexpr double kRailFraction = 0.8;

/// Whether the check cannot go on, whatever could still be measured.
bool over(const Plan& plan, const History& history) {
  if (plan.nodes.size() < 2 || rails(plan) == 0) return true;
  if (history.refusal || !history.missing.empty() || history.done.size() >= kMaxSteps) return true;
  if (other_transport(plan, history)) return true;
  return std::ranges::any_of(history.done, [](const Done& done) { return broken(done) != nullptr; });
}

Step gate_batch(const Plan& plan, const History& history, const NextSize& size, std::uint32_t warmup,
                Phase phase, Ns allowance) {
  Measure measure{.phase = phase, .batches = {}, .allowance = allowance};
  std::uint32_t id = free_batch_id(history);
  for (auto done = history.done.rbegin(); done != history.done.rend() && measure.batches.empty(); ++done) {
    const Form* form = form_of(*done);
    if (form == nullptr) continue;
    for (const Team& team : form->teams) {
      const auto ranks = static_cast<std::uint32_t>(team.ranks.size());
      measure.batches.push_back({.id = id,
                                 .team = team.id,
                                 .root = 0,
                                 .op = plan.op,
                                 .type = plan.type,
                                 .bytes = actual_bytes(plan.op, plan.type, ranks, size.bytes),
                                 .warmup = warmup,
                                 .iterations = size.iterations,
                                 .edges = {},
                                 .algorithm = plan.algorithm,
                                 .seed = plan.seed + id,
                                 .verify = true});
      ++id;
    }
  }
  return measure;
}

Step connect_step(const Plan& plan, const History& history, Ns left) {
  const auto allowance = allow(kFirstAllowance, kLeastGateAllowance, left);
  if (!allowance) return Stop{};
  const NextSize size{.bytes = connect_bytes(plan), .iterations = 1};
  return gate_batch(plan, history, size, 1, Phase::connect, *allowance);
}

Step gate_step(const Plan& plan, const History& history, const Gate& gate,
               const std::optional<NextSize>& size, Ns left) {
  if (!size) return Stop{};
  const Ns wanted = gate.sizes.empty() ? std::max(kFirstAllowance, size->predicted * kGatePatience)
                                       : size->predicted * kGatePatience + kLeastPatience;
  const auto allowance = allow(wanted, std::max(kLeastGateAllowance, size->predicted * 3 / 2), left);
  if (!allowance) return Stop{};
  return gate_batch(plan, history, *size, 1, Phase::gate, *allowance);
}

Step form_step(const Plan& plan, const History& history, int which, Ns left) {
  if (left < plan.forming + kAnswering) return Stop{};
  return Form{.phase = Phase::connect, .teams = partition(plan, which, free_team_id(history))};
}

/// Some rail of the gate falls short of the others.
bool rails_differ(const Figures& figures) {
  std::vector<double> rates;
  for (const Rate rate : figures.per_rail)
    rates.push_back(rate.bits_per_second);
  if (rates.size() < 2) return false;
  std::ranges::sort(rates);
  return rates.front() < kRailFraction * rates[rates.size() / 2];
}

/// A gate that failed, and rounds that isolated nobody: once more, if there is time.
Step gate_again(const Plan& plan, const History& history, const Gate& gate, Ns left) {
  const auto partition_again = doubtful(plan, gate);
  if (!partition_again) return Stop{};
  const Blame blame = decode(plan, edges_of(plan, history));
  if (blame.proves() || blame.dead || blame.silent) return Stop{};
  const auto size = size_again(plan, gate, *partition_again);
  // Teams that could not be formed once more are no better the next time.
  const Form* last = form_of(history.done.back());
  if (!size || (last != nullptr && stalled(history.done.back()))) return Stop{};
  const auto teams = partition(plan, *partition_again, free_team_id(history));
  if (const Form* form = joined(history); form != nullptr && same_teams(*form, teams))
    return gate_step(plan, history, gate, size, left);
  if (left < plan.forming + kAnswering + size->predicted * 2) return Stop{};
  return Form{.phase = Phase::gate, .teams = teams};
}

/// What the rounds are for; nullopt: the gate says it all.
std::optional<Need> need_of(const Plan& plan, const History& history, const Gate& gate) {
  const bool vain = std::ranges::any_of(history.done, [](const Done& done) { return stalled(done); });
  if (vain) return Need::find;
  const auto figures = figures_of(plan, history);
  if (gate.state != GateState::ended || !figures) return std::nullopt;
  if (too_slow(plan, *figures) || short_way(plan, edges_of(plan, history))) return Need::blame;
  if (!plan.thresholds.min || asks_of_ways(plan) || rails_differ(*figures)) return Need::compare;
  return std::nullopt;
}

}  // namespace

Step next(const Plan& plan, const History& history, Ns elapsed) {
  if (over(plan, history)) return Stop{};
  const Ns left = plan.budget - elapsed;
  const Gate gate = read_gate(plan, history);
  switch (gate.state) {
    case GateState::broken:
      return Stop{};
    case GateState::forming:
      return form_step(plan, history, gate.which, left);
    case GateState::connecting:
      return connect_step(plan, history, left);
    case GateState::growing:
      return gate_step(plan, history, gate, next_size(plan, gate), left);
    case GateState::crossing:
      return gate_step(plan, history, gate, crossing_size(plan, gate), left);
    case GateState::ended:
    case GateState::stalled:
      break;
  }
  const auto need = need_of(plan, history, gate);
  if (!need) return Stop{};
  Step step = next_round(plan, history, gate, *need, left);
  return std::holds_alternative<Stop>(step) ? gate_again(plan, history, gate, left) : step;
}

}  // namespace netcheck::judge
