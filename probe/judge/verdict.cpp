// See verdict.h. What counts before what: missing nodes, then proof of failure (wrong data, a dead path, a
// figure below the threshold, hardware that the site fails for), then everything that kept the check from
// measuring, then pass.
#include "judge/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/job.h"
#include "judge/evidence.h"
#include "judge/gate.h"
#include "judge/groups.h"
#include "judge/inside.h"
#include "judge/job_flaws.h"
#include "judge/line.h"
#include "judge/names.h"
#include "judge/pairs.h"
#include "judge/standing.h"
#include "judge/transport.h"

namespace netcheck::judge {
namespace {

Phase phase_of(const Done& done) {
  const Form* form = form_of(done);
  return form != nullptr ? form->phase : measure_of(done)->phase;
}

/// What is known when a check is judged.
struct Evidence {
  const Plan& plan;
  const History& history;
  Gate gate;
  std::optional<Figures> figures;
  std::vector<EdgeFigure> edges;
  Blame blame;
  std::optional<ShortWay> short_way;
};

/// Without a figure from a batch that lasted there is none to show: a burst reads above the wire.
Inconclusive inconclusive(const Evidence& evidence, Phase phase, std::string_view reason) {
  Inconclusive verdict{
      .phase = phase, .missing = {}, .reason = printable(reason, kReasonBytes), .figures = {}};
  const GateSize* best = evidence.gate.figure(0);
  if (best != nullptr && best->lasting()) verdict.figures = evidence.figures;
  return verdict;
}

Inconclusive missing_nodes(const Plan& plan, const History& history) {
  Inconclusive verdict{.phase = history.missing.front().phase, .missing = {}, .reason = {}, .figures = {}};
  std::vector<std::uint32_t> nodes;
  for (const Missing& missing : history.missing)
    nodes.push_back(missing.node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (const std::uint32_t node : nodes)
    verdict.missing.push_back(node_name(plan, node));
  verdict.reason = printable(history.missing.front().detail, kReasonBytes);
  return verdict;
}

/// The first wrong data, in words.
std::optional<std::string> corrupt(const Plan& plan, const History& history) {
  for (const Done& done : history.done)
    for (const NodeOutcome& outcome : done.outcomes)
      for (const Sample& sample : outcome.samples)
        if (sample.wrong > 0)
          return fmt::format("corrupt data: {} received {} wrong elements", node_name(plan, outcome.node),
                             sample.wrong);
  return std::nullopt;
}

/// The bus bandwidth of the plan's operation goes through a node's measured lanes. Not so with NCCL's trees
/// and switches (NVLS), which exceed the wire, and where a node has more lanes than others.
bool crosses_once(const Plan& plan, std::uint32_t node) {
  return plan.teaming == Teaming::per_lane ||
         (plan.algorithm == "ring" && plan.nodes[node].lanes.size() == rails(plan));
}

/// What a culprit's node can carry at most over all its rails in its bad direction; bits/s. Every collective
/// here moves a node's share through its transmit and receive, so no bus bandwidth can exceed it.
std::optional<Rate> capacity(const Evidence& evidence, const Culprit& culprit) {
  if (culprit.peer || !crosses_once(evidence.plan, culprit.node)) return std::nullopt;
  const Standings standings(evidence.plan, evidence.edges, kWholeMedian);
  std::optional<Rate> least;
  for (const Direction way : {Direction::transmit, Direction::receive}) {
    if (culprit.direction != Direction::both && culprit.direction != way) continue;
    double sum = 0;
    for (std::uint32_t lane = 0; lane < standings.lanes(); ++lane) {
      const Standing& standing = standings.of(culprit.node, way, lane);
      if (standing.word == Word::unknown) return std::nullopt;
      sum += standing.best_unhindered;
    }
    if (!least || sum < least->bits_per_second) least = Rate{sum};
  }
  return least;
}

/// Whatever the gate came to, and also where it came to nothing, it could not have passed: a culprit carries
/// less than is asked, at its best and unhindered. So a slow node fails the check also where the gate is
/// excused. A process that was kept elsewhere excuses the figure of all, and not a node that was slow with
/// others.
bool below_by_capacity(const Evidence& evidence) {
  const auto& min = evidence.plan.thresholds.min;
  return min && std::ranges::any_of(evidence.blame.culprits, [&](const Culprit& culprit) {
           const auto most = capacity(evidence, culprit);
           return most && *most < *min;
         });
}

/// The figure is final, or can only become lower: the first partition has stopped growing. A small message
/// that time alone kept from growing (a node was stopped for a second) fails nobody.
bool settled(const Plan& plan, const Gate& gate) {
  const GateSize* best = gate.figure(0);
  if (best == nullptr || (!best->lasting() && best->bytes * 2 <= byte_cap(plan))) return false;
  return gate.state == GateState::ended || (gate.which == 1 && !gate.sizes.empty());
}

/// The figure, such as it is, is below what is asked.
bool gate_below(const Evidence& evidence) {
  return evidence.figures && too_slow(evidence.plan, *evidence.figures) &&
         settled(evidence.plan, evidence.gate);
}

/// Unhindered it would not be. (Edges are excused in standing.cpp.)
bool gate_excused(const Evidence& evidence) {
  return gate_below(evidence) && !surely_too_slow(evidence.plan, *evidence.figures);
}

/// A second measurement says the same: the rounds, or the gate itself. Whatever stops one node for a moment
/// makes one figure of a healthy network a slow one.
bool twice(const Evidence& evidence) {
  if (evidence.blame.proves() || failed_twice(evidence.plan, evidence.gate)) return true;
  return evidence.gate.again.empty() && evidence.blame.found;
}

/// A rail under what the site asks of each, in words: the line's busbw and min do not show it.
std::optional<std::string> short_rail(const Evidence& evidence) {
  const auto& least = evidence.plan.thresholds.min_per_rail;
  if (!least || !evidence.figures) return std::nullopt;
  const auto& rates = evidence.figures->per_rail;
  const auto worst = std::ranges::min_element(rates);
  if (worst == rates.end() || *worst >= *least) return std::nullopt;
  const auto lane = static_cast<std::size_t>(worst - rates.begin());
  const auto& lanes = evidence.plan.nodes.front().lanes;
  constexpr std::size_t kMaxLane = 64;
  return fmt::format("rail {}: {} of min_per_rail={}",
                     lane < lanes.size() ? plain(lanes[lane], kMaxLane) : std::to_string(lane),
                     format_rate(*worst), format_rate(*least, true));
}

std::string fail_reason(const Evidence& evidence) {
  const auto& min = evidence.plan.thresholds.min;
  const bool by_sum = min && evidence.figures && evidence.figures->busbw < *min;
  if (auto rail = short_rail(evidence); rail && !by_sum) return *rail;
  if (!evidence.blame.culprits.empty()) return {};
  return printable(evidence.blame.explanation, kReasonBytes);
}

/// A way that carries nothing: seen twice, or after a gate that waited for bytes in vain, too.
bool dead(const Evidence& evidence) {
  return evidence.blame.dead_for_sure || (evidence.blame.dead && evidence.gate.state == GateState::stalled);
}

std::optional<Fail> proven_fail(const Evidence& evidence) {
  if (auto wrong = corrupt(evidence.plan, evidence.history))
    return Fail{.figures = evidence.figures, .blame = {}, .reason = printable(*wrong, kReasonBytes)};
  if (dead(evidence))
    return Fail{
        .figures = std::nullopt, .blame = evidence.blame, .reason = fail_reason(evidence), .dead = true};
  if ((gate_below(evidence) && !gate_excused(evidence) && twice(evidence)) || below_by_capacity(evidence))
    return Fail{.figures = evidence.figures, .blame = evidence.blame, .reason = fail_reason(evidence)};
  if (evidence.short_way && (evidence.short_way->times >= 2 || evidence.blame.proves()))
    return Fail{.figures = evidence.figures,
                .blame = evidence.blame,
                .reason = describe(*evidence.short_way, evidence.plan)};
  return std::nullopt;
}

std::vector<Flawed> flawed(const Plan& plan) {
  std::vector<Flawed> all;
  for (const JobFlaw& flaw : flaws_of(plan))
    if (flaw.weight == Weight::fail) all.push_back({flaw.nodes, describe(flaw, plan), flaw.broken_part});
  return all;
}

std::string trouble_words(Trouble trouble) {
  switch (trouble) {
    case Trouble::no_bytes:
      return "waited for bytes in vain";
    case Trouble::late:
      return "did not end in time";
    case Trouble::child_died:
      return "fabric process died";
    case Trouble::child_silent:
      return "fabric process gave no sign of life";
    case Trouble::refused:
      return "fabric refused";
  }
  return "trouble";
}

/// How sure it is that a trouble is the node's own. Who gives no sign of life, or is late, may be well: so is
/// a library that connects to a peer that is not there.
int own_part(Trouble trouble) {
  if (trouble == Trouble::late) return 0;
  return trouble == Trouble::child_silent ? 1 : 2;
}

/// Who broke a step, one node's words for all: of those whose trouble is most their own the first. Where that
/// may be somebody else's nobody can tell which of them it is: all are listed.
std::string who_broke(const Plan& plan, const Done& done) {
  const NodeOutcome* first = broken(done);
  std::vector<std::string> alike;
  for (const NodeOutcome& outcome : done.outcomes) {
    if (!outcome.trouble || is_evidence(*outcome.trouble)) continue;
    const int part = own_part(*outcome.trouble), most = own_part(*first->trouble);
    if (part > most) first = &outcome;
    if (part > most) alike.clear();
    if (part >= most) alike.push_back(node_name(plan, outcome.node));
  }
  const std::string detail = printable(first->detail, kReasonBytes);
  std::string who = node_name(plan, first->node);
  if (own_part(*first->trouble) < 2 && alike.size() > 1)
    who = fold_node_list(alike, kReasonBytes / 3) + ", one of them or the way between";
  return fmt::format("{}: {}{}{}", who, trouble_words(*first->trouble), detail.empty() ? "" : ": ", detail);
}

/// The first trouble that was no evidence, with its phase.
std::optional<Inconclusive> broken_step(const Evidence& evidence) {
  for (const Done& done : evidence.history.done)
    if (broken(done) != nullptr)
      return inconclusive(evidence, phase_of(done), who_broke(evidence.plan, done));
  return std::nullopt;
}

/// The gate ended with its figure, and nobody asked for more or it is enough.
bool passed(const Evidence& evidence) {
  if (!evidence.figures) return false;
  if (too_slow(evidence.plan, *evidence.figures)) return false;
  if (evidence.short_way) return false;
  if (asks_of_ways(evidence.plan) && evidence.edges.empty()) return false;
  // Cut short by the budget in one partition: a figure that is enough stays enough.
  const bool enough = evidence.gate.state == GateState::growing && group_count(evidence.plan) == 1;
  return evidence.gate.state == GateState::ended || enough;
}

/// "ran out of memory for TCP …": of a node.
std::string words(Lack lack) {
  switch (lack) {
    case Lack::tcp_memory:
      return "ran out of memory for TCP (net.ipv4.tcp_mem)";
    case Lack::neighbours:
      return "ran out of room for neighbours (net.ipv4.neigh.default.gc_thresh3)";
    case Lack::connections:
      return "ran out of room for connections (net.netfilter.nf_conntrack_max)";
    case Lack::nothing:
      break;
  }
  return "lacked nothing";
}

/// "n3 ran out of …": the first of a step that lacked anything; "": nobody did.
std::string who_lacked(const Plan& plan, const Done& done) {
  for (const NodeOutcome& outcome : done.outcomes)
    for (const Sample& sample : outcome.samples)
      if (sample.lack != Lack::nothing)
        return fmt::format("{} {}", node_name(plan, outcome.node), words(sample.lack));
  return {};
}

/// First step in which somebody waited in vain, in words; the explanation of the rounds after it.
Inconclusive stalled_gate(const Evidence& evidence) {
  for (const Done& done : evidence.history.done) {
    const auto waiting = std::ranges::find_if(done.outcomes, [](const NodeOutcome& outcome) {
      return outcome.trouble && is_evidence(*outcome.trouble);
    });
    if (waiting == done.outcomes.end()) continue;
    std::string why = fmt::format("{} did not end", name(evidence.plan.op));
    if (const std::string lacked = who_lacked(evidence.plan, done); !lacked.empty())
      why += ", but " + lacked;
    else if (!evidence.blame.culprits.empty())
      why += ": " + describe(evidence.blame.culprits.front(), evidence.plan);
    else if (!evidence.blame.explanation.empty())
      why += ": " + evidence.blame.explanation;
    else
      why +=
          fmt::format(" ({} and others waited for bytes in vain)", node_name(evidence.plan, waiting->node));
    return inconclusive(evidence, phase_of(done), why);
  }
  return inconclusive(evidence, Phase::gate, "the gate did not end");
}

Inconclusive shared_with_others(const Evidence& evidence) {
  const Figures& figures = *evidence.figures;
  return inconclusive(
      evidence, Phase::gate,
      fmt::format("below the threshold, but {}'s devices carried other traffic at the same time",
                  node_name(evidence.plan, figures.most_shared)));
}

/// Whose process was kept most, or whose device others used most: what explains more.
Inconclusive hindered(const Evidence& evidence) {
  const Figures& figures = *evidence.figures;
  const double rate = figures.busbw.bits_per_second;
  double shared = 0;
  for (const Rate& room : figures.room_of_others)
    shared += room.bits_per_second;
  if (figures.part_running > 0 && shared > rate / figures.part_running - rate)
    return shared_with_others(evidence);
  if (figures.most_kept_lack != Lack::nothing)
    return inconclusive(
        evidence, Phase::gate,
        fmt::format("below the threshold, but {} {}", node_name(evidence.plan, figures.most_kept),
                    words(figures.most_kept_lack)));
  return inconclusive(
      evidence, Phase::gate,
      fmt::format("below the threshold, but {}'s process was kept from running for {:.0f}% of the time",
                  node_name(evidence.plan, figures.most_kept),
                  std::min(100.0, 100 * figures.most_kept_part)));
}

Inconclusive below_once(const Evidence& evidence) {
  const auto& again = evidence.gate.again;
  const bool vain = std::ranges::any_of(again, [](const auto& one) { return one.second.vain; });
  return inconclusive(evidence, Phase::gate,
                      vain ? "below the threshold once; measured again, it did not end"
                      : again.empty()
                          ? "below the threshold once, no way slow, and no time to measure again"
                          : "below the threshold, but time ran out before it had stopped growing");
}

Pass pass(const Evidence& evidence) {
  Pass verdict{.figures = *evidence.figures, .warnings = {}};
  // The site's floor is for failing: a warning is a comparison with the others.
  Plan plan = evidence.plan;
  plan.thresholds.site_floor.reset();
  const Blame slow = blame_of(plan, evidence.history);
  for (const Culprit& culprit : slow.culprits)
    verdict.warnings.push_back(describe(culprit, plan));
  return verdict;
}

}  // namespace

Verdict decide(const Plan& plan, const History& history) {
  if (!history.missing.empty()) return missing_nodes(plan, history);
  if (history.refusal)
    return Inconclusive{.phase = history.refusal->phase,
                        .missing = {},
                        .reason = printable(history.refusal->why, kReasonBytes),
                        .figures = {}};
  if (plan.nodes.size() == 1)
    return Inconclusive{
        .phase = Phase::start, .missing = {}, .reason = "one node: no network between nodes", .figures = {}};
  Evidence evidence{plan, history, {}, figures_of(plan, history), {}, {}};
  if (rails(plan) > 0 && !plan.nodes.empty()) {
    evidence.gate = read_gate(plan, history);
    evidence.edges = edges_of(plan, history);
    evidence.blame = blame_of(plan, history);
    evidence.short_way = short_way(plan, evidence.edges);
  }
  auto fail = proven_fail(evidence);
  if (const auto other = other_transport(plan, history)) {
    if (!fail) fail = Fail{.figures = evidence.figures, .blame = {}, .reason = {}};
    fail->transport = *other;
  }
  // What the hardware is known by was not measured: it stands also where nothing could be.
  auto bad = flawed(plan);
  if (!fail && !bad.empty()) fail = Fail{.figures = evidence.figures, .blame = {}, .reason = {}};
  if (fail) {
    fail->flawed = std::move(bad);
    return *fail;
  }
  if (evidence.gate.state == GateState::ended && evidence.blame.silent)
    return inconclusive(evidence, Phase::blame, evidence.blame.explanation);
  if (evidence.blame.dead)
    return inconclusive(evidence, Phase::blame, "a way carried nothing, once, and was not tried again");
  if (passed(evidence) && transport_unknown(plan, history))
    return inconclusive(evidence, Phase::connect,
                        "the fabric did not say what carries the bytes, for require_transport");
  // What broke after the gate had ended takes nothing from its figure.
  if (passed(evidence) && evidence.gate.state == GateState::ended) return pass(evidence);
  if (auto broke = broken_step(evidence)) return *broke;
  if (plan.nodes.empty() || rails(plan) == 0)
    return inconclusive(evidence, Phase::open, "no node has a rail that all nodes have");
  if (evidence.gate.state == GateState::stalled) return stalled_gate(evidence);
  if (passed(evidence)) return pass(evidence);
  if (gate_excused(evidence)) return hindered(evidence);
  if (gate_below(evidence)) return below_once(evidence);
  const Phase last = history.done.empty() ? Phase::start : phase_of(history.done.back());
  if (evidence.gate.state == GateState::broken)
    return inconclusive(evidence, last, "a node's samples were not complete");
  if (evidence.short_way)
    return inconclusive(evidence, last,
                        describe(*evidence.short_way, plan) + ", once, and not measured again");
  if (evidence.gate.state == GateState::ended && asks_of_ways(plan))
    return inconclusive(evidence, last,
                        fmt::format("no time was left to measure pairs, for {}",
                                    plan.thresholds.min_per_pair ? "min_per_pair" : "min_per_rail"));
  return inconclusive(evidence, last,
                      evidence.figures ? "time ran out before the figure had stopped growing"
                                       : "time ran out before anything was measured");
}

bool nearly_enough(Plan plan, const History& history) {
  Thresholds& asked = plan.thresholds;
  for (auto* bar : {&asked.min, &asked.site_floor, &asked.min_per_rail, &asked.min_per_pair})
    if (*bar) (*bar)->bits_per_second *= 1 - kUnseen;
  // Where the ways are no second sight any more, a gate that was below once proves nothing, and yet is below.
  if (const auto figures = figures_of(plan, history); figures && too_slow(plan, *figures)) return false;
  return !std::holds_alternative<Fail>(decide(plan, history));
}

std::string_view name(const Verdict& verdict) {
  if (std::holds_alternative<Pass>(verdict)) return "pass";
  return std::holds_alternative<Fail>(verdict) ? "fail" : "inconclusive";
}

ExitCode exit_code(const Verdict& verdict) {
  if (std::holds_alternative<Pass>(verdict)) return ExitCode::pass;
  return std::holds_alternative<Fail>(verdict) ? ExitCode::fail : ExitCode::inconclusive;
}

}  // namespace netcheck::judge
