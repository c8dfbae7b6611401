// A modelled network for the judge's tests: plays a whole check, step by step, with rates, faults and noise
// that the test sets. It shares no code with the judge: rates come from the faults below and from nothing
// else.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "judge/gate.h"
#include "judge/groups.h"
#include "judge/line.h"
#include "judge/script.h"
#include "judge/verdict.h"

namespace netcheck::judge::model {

using Way = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>;  // from, to, lane
using End = std::pair<std::uint32_t, std::uint16_t>;                  // node, lane

struct Network {
  double rate = 1e9;  ///< bits/s of every healthy end
  double noise = 0;   ///< standard deviation of each figure, relative
  Ns latency = std::chrono::microseconds(50);
  Ns forming = std::chrono::milliseconds(30);  ///< of teams
  Ns overhead = std::chrono::milliseconds(5);  ///< of a step
  std::map<End, double> transmit, receive;     ///< parts of the rate
  std::map<Way, double> links;
  double inside_rate = 20e9;               ///< bits/s from lane to lane of one node
  std::map<std::uint32_t, double> inside;  ///< node → part of it
  double together = 1;  ///< part of the rate while more than one pair is running (blame only)
  std::optional<std::pair<std::size_t, std::uint32_t>> dies;  ///< (step, node): its fabric process ends
  std::optional<std::pair<std::size_t, std::uint32_t>> cut;   ///< (step, node): its data path ends
  std::map<std::uint32_t, std::uint64_t> wrong;               ///< node → elements
  std::map<std::size_t, double> moments;  ///< step → part of the rate of everything in it: a slow moment
  /// Node → part of the time in which its process runs. A way stands still while either end does; each says
  /// how long it was kept, less the part `untold`.
  std::map<std::uint32_t, double> runs;
  double untold = 0;
  /// Part of the rate that others take of an end, of what goes out or comes in; what is left they leave whole
  /// or, to a protocol that gives way, `yields` less of it.
  std::map<End, double> others_out, others_in;
  double yields = 0;
  std::map<std::uint32_t, Lack> lacks;  ///< node → what it says that it ran out of
  std::mt19937_64 random{1};

  [[nodiscard]] static double part(const auto& parts, const auto& key) {
    const auto found = parts.find(key);
    return found == parts.end() ? 1 : found->second;
  }

  [[nodiscard]] static double others(const std::map<End, double>& parts, const End& end) {
    const auto found = parts.find(end);
    return found == parts.end() ? 0 : found->second;
  }

  [[nodiscard]] double noisy(double value) {
    if (noise > 0) value *= std::max(0.05, 1 + noise * std::normal_distribution<double>()(random));
    return value;
  }

  [[nodiscard]] double rate_between(Rank from, Rank to, std::size_t step) {
    if (from.node == to.node) return noisy(inside_rate * part(inside, from.node) * part(runs, from.node));
    const auto is_cut = [&](std::uint32_t node) { return cut && step >= cut->first && cut->second == node; };
    if (is_cut(from.node) || is_cut(to.node)) return 0;
    double value =
        rate * std::min(part(transmit, End{from.node, from.lane}), part(receive, End{to.node, to.lane}));
    value = std::min(value, rate * part(links, Way{from.node, to.node, from.lane}));
    const double taken =
        std::max(others(others_out, {from.node, from.lane}), others(others_in, {to.node, to.lane}));
    value = std::min(value, rate * (1 - taken) * (1 - (taken > 0 ? yields : 0)));
    value *= part(moments, step) * part(runs, from.node) * part(runs, to.node);
    return noisy(value);
  }
};

inline Plan plan_for(std::uint32_t nodes, std::uint32_t lanes = 1) {
  Plan plan;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    plan.nodes.push_back({.name = "n" + std::to_string(node), .lanes = {}, .machine = "model"});
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
      plan.nodes.back().lanes.push_back("eth" + std::to_string(lane));
  }
  plan.slice = std::chrono::milliseconds(1500);
  plan.budget = std::chrono::seconds(7);
  plan.max_bytes = 256u << 20;
  return plan;
}

/// Plays the script to its end. `elapsed` is the model's own clock.
struct Played {
  History history;
  Ns elapsed{};
  std::size_t steps = 0;
  bool late = false;  ///< some step ended, or could have ended, after the budget
};

class Player {
 public:
  /// `before`: what has happened already; its teams are still joined.
  Player(const Plan& plan, Network network, History before = {}) : plan_(plan), network_(std::move(network)) {
    for (const Done& done : before.done)
      if (const auto* form = std::get_if<Form>(&done.step))
        for (const Team& team : form->teams)
          teams_[team.id] = team;
    played_.history = std::move(before);
  }

  Played play() {
    for (; played_.steps < 200; ++played_.steps) {
      const Step step = next(plan_, played_.history, played_.elapsed);
      if (std::holds_alternative<Stop>(step)) break;
      Done done{.step = step, .outcomes = {}, .transport = "model", .took = network_.overhead};
      if (const auto* form = std::get_if<Form>(&step))
        form_teams(*form, done);
      else
        measure(std::get<Measure>(step), done);
      played_.elapsed += done.took;
      played_.history.done.push_back(std::move(done));
    }
    return std::move(played_);
  }

 private:
  void form_teams(const Form& form, Done& done) {
    teams_.clear();
    for (const Team& team : form.teams) {
      teams_[team.id] = team;
      for (const Rank& rank : team.ranks)
        outcome(done, rank.node);
    }
    done.took += network_.forming;
  }

  void measure(const Measure& measure, Done& done) {
    if (played_.elapsed + measure.allowance > plan_.budget) played_.late = true;
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const Batch& batch : measure.batches)
      for (const Edge& edge : batch.edges)
        pairs.insert({teams_[batch.team].ranks[edge.from].node, teams_[batch.team].ranks[edge.to].node});
    const double share = pairs.size() > 1 ? network_.together : 1;
    Ns longest{};
    for (const Batch& batch : measure.batches)
      longest = std::max(longest, batch.op == Op::transfer ? transfer(batch, measure.allowance, share, done)
                                                           : collective(batch, measure.allowance, done));
    if (network_.dies && network_.dies->first == played_.steps) {
      NodeOutcome& dead = outcome(done, network_.dies->second);
      dead.trouble = Trouble::child_died;
      dead.samples.clear();
      dead.batch.clear();
    }
    done.took += longest;
  }

  static NodeOutcome& outcome(Done& done, std::uint32_t node) {
    const auto found = std::ranges::find(done.outcomes, node, &NodeOutcome::node);
    if (found != done.outcomes.end()) return *found;
    return done.outcomes.emplace_back(NodeOutcome{.node = node});
  }

  /// One rank's completions at `rate` for `moved` bytes per operation; what did not end in time is cut off.
  Ns add(Done& done, const Batch& batch, std::uint32_t rank, double moved, double rate, Ns latency,
         Ns allowance) {
    NodeOutcome& mine = outcome(done, teams_[batch.team].ranks[rank].node);
    Sample sample{.rank = rank};
    const double each = rate > 0 ? moved * 8 / rate * 1e9 + static_cast<double>(latency.count()) : 1e18;
    const double until = static_cast<double>(allowance.count());
    const double begin = each * batch.warmup;
    for (std::uint32_t i = 1; i <= batch.iterations && begin + each * i <= until; ++i)
      sample.done.emplace_back(static_cast<Ns::rep>(each * i));
    sample.received = static_cast<std::uint64_t>(
        std::min(moved * (batch.warmup + batch.iterations), rate / 8 * until / 1e9));
    const bool ended = sample.done.size() == batch.iterations;
    const Ns span = ended ? sample.done.back() : allowance;
    sample.kept = kept(mine.node, span);
    sample.lack = lack(mine.node);
    const std::uint16_t lane = teams_[batch.team].ranks[rank].lane;
    sample.others_in = others(network_.others_in, {mine.node, lane}, span);
    if (batch.op != Op::transfer) sample.others_out = others(network_.others_out, {mine.node, lane}, span);
    if (ended && network_.wrong.contains(mine.node)) sample.wrong = network_.wrong[mine.node];
    if (!ended) mine.trouble = Trouble::no_bytes;
    put(mine, batch, std::move(sample));
    return ended ? Ns(static_cast<Ns::rep>(begin + each * batch.iterations)) : allowance;
  }

  static Sample* sample_of(NodeOutcome& outcome, const Batch& batch, std::uint32_t rank) {
    for (std::size_t i = 0; i < outcome.samples.size(); ++i)
      if (outcome.batch[i] == batch.id && outcome.samples[i].rank == rank) return &outcome.samples[i];
    return nullptr;
  }

  /// One sample of each rank: of one that receives, what it received.
  static void put(NodeOutcome& outcome, const Batch& batch, Sample sample) {
    if (Sample* there = sample_of(outcome, batch, sample.rank); there != nullptr) {
      *there = std::move(sample);
      return;
    }
    outcome.samples.push_back(std::move(sample));
    outcome.batch.push_back(batch.id);
  }

  Ns transfer(const Batch& batch, Ns allowance, double share, Done& done) {
    Ns longest{};
    const Team& team = teams_[batch.team];
    for (const Edge& edge : batch.edges) {
      const double rate =
          share * network_.rate_between(team.ranks[edge.from], team.ranks[edge.to], played_.steps);
      const double moved = static_cast<double>(batch.bytes);
      longest = std::max(longest, add(done, batch, edge.to, moved, rate, network_.latency, allowance));
      const Sample& received = *sample_of(outcome(done, team.ranks[edge.to].node), batch, edge.to);
      const Ns span = received.done.size() == batch.iterations ? received.done.back() : allowance;
      NodeOutcome& sender = outcome(done, team.ranks[edge.from].node);
      if (sample_of(sender, batch, edge.from) != nullptr) continue;  // it receives as well
      const End end{sender.node, team.ranks[edge.from].lane};
      put(sender, batch,
          {.rank = edge.from,
           .kept = kept(sender.node, span),
           .others_in = others(network_.others_in, end, span),
           .others_out = others(network_.others_out, end, span),
           .lack = lack(sender.node)});
    }
    return longest;
  }

  [[nodiscard]] Lack lack(std::uint32_t node) const {
    const auto found = network_.lacks.find(node);
    return found == network_.lacks.end() ? Lack::nothing : found->second;
  }

  [[nodiscard]] Ns kept(std::uint32_t node, Ns span) const {
    const double part = (1 - Network::part(network_.runs, node)) * (1 - network_.untold);
    return Ns(static_cast<Ns::rep>(part * static_cast<double>(span.count())));
  }

  [[nodiscard]] std::uint64_t others(const std::map<End, double>& parts, const End& end, Ns span) const {
    const double bytes =
        Network::others(parts, end) * network_.rate / 8 * static_cast<double>(span.count()) / 1e9;
    return static_cast<std::uint64_t>(bytes);
  }

  /// bits/s of a team's ring: of its slowest edge. Over all lanes of nodes there is one ring for each lane,
  /// which crosses from node to node on it, and each has the same part of the bytes.
  double ring_rate(const Team& team) {
    std::vector<Rank> ranks = team.ranks;
    std::size_t rings = 1;
    if (plan_.teaming == Teaming::over_lanes) {
      std::erase_if(ranks, [&](const Rank& rank) { return rank.lane >= rails(plan_); });
      std::ranges::stable_sort(ranks, {}, &Rank::lane);
      rings = rails(plan_);
    }
    const std::size_t each = ranks.size() / rings;
    double slowest = 1e18;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::size_t ring = rank / each * each;
      slowest = std::min(
          slowest, network_.rate_between(ranks[rank], ranks[ring + (rank - ring + 1) % each], played_.steps));
    }
    if (rings > 1)
      for (const Rank& rank : ranks)
        slowest = std::min(slowest, network_.inside_rate * Network::part(network_.inside, rank.node) /
                                        static_cast<double>(rings));
    return slowest * static_cast<double>(rings);
  }

  /// A ring: as fast as its slowest edge. All but all_reduce move (n-1)/n of the bytes over each.
  Ns collective(const Batch& batch, Ns allowance, Done& done) {
    const Team& team = teams_[batch.team];
    const auto ranks = static_cast<std::uint32_t>(team.ranks.size());
    const double slowest = ring_rate(team);
    const double moved =
        static_cast<double>(batch.bytes) * (batch.op == Op::all_reduce ? 2 : 1) * (ranks - 1) / ranks;
    Ns longest{};
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      longest = std::max(longest,
                         add(done, batch, rank, moved, slowest, network_.latency * (ranks - 1), allowance));
    return longest;
  }

  Plan plan_;
  Network network_;
  Played played_;
  std::map<std::uint32_t, Team> teams_;
};

inline Played play(const Plan& plan, const Network& network) {
  return Player(plan, network).play();
}

/// 1 Gb/s a rail, of which 800 Mb/s are asked for.
inline Plan asking(std::uint32_t nodes, std::uint32_t lanes = 1) {
  Plan plan = plan_for(nodes, lanes);
  plan.thresholds.min = plan.thresholds.site_floor = Rate{0.8e9 * lanes};
  return plan;
}

struct Judged {
  Plan plan;
  Verdict verdict;
  std::string text;
};

inline Judged judged(const Plan& plan, const Network& network) {
  const auto played = play(plan, network);
  const Verdict verdict = decide(plan, played.history);
  return {plan, verdict, line(verdict, plan, played.elapsed)};
}

/// Culprits as the line shows them, rates left out: "n3(tx)", "n3/eth1(rx)", "n1>n2(link)".
inline std::vector<std::string> named(const Verdict& verdict, const Plan& plan) {
  std::vector<std::string> names;
  if (const auto* fail = std::get_if<Fail>(&verdict))
    for (const Culprit& culprit : fail->blame.culprits) {
      const std::string text = describe(culprit, plan);
      names.push_back(text.substr(0, text.find(':')) + ")");
    }
  return names;
}

}  // namespace netcheck::judge::model
