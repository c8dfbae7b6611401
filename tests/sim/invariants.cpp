// Holding an outcome against the scenario's truth.
#include "invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "contract/wire.h"
#include "judge/groups.h"
#include "judge/job_flaws.h"
#include "judge/job_limit.h"
#include "judge/line.h"

namespace netcheck::sim {
namespace {

using judge::Culprit;
using judge::Direction;
using judge::Fail;
using judge::Inconclusive;
using judge::Pass;
using judge::Verdict;

std::string node_name(std::uint32_t node) {
  return fmt::format("n{}", node + 1);
}

/// Whether a culprit is the fault, or part of it.
bool is_fault(const Scenario& scenario, const Culprit& culprit) {
  const Fault& fault = scenario.fault;
  const bool at_node = culprit.node == fault.node && !culprit.peer;
  const auto in = [&](Direction direction) { return at_node && culprit.direction == direction; };
  switch (fault.kind) {
    case Kind::slow_tx:
      return in(Direction::transmit) && !culprit.lane;
    case Kind::slow_rx:
      return in(Direction::receive) && !culprit.lane;
    case Kind::slow_node:
      return at_node && !culprit.lane;
    case Kind::slow_rail:
      return at_node && culprit.lane == fault.lane;
    case Kind::slow_rail_tx:
      return in(Direction::transmit) && culprit.lane == fault.lane;
    case Kind::slow_link:
      return culprit.node == fault.node && culprit.peer == fault.other;
    case Kind::two_slow:
      return !culprit.peer && (culprit.node == fault.node || culprit.node == fault.other);
    case Kind::cut_data:  // a node that worked a round ago, and now does not with this partner
      return at_node || (culprit.peer && (culprit.node == fault.node || culprit.peer == fault.node));
    default:
      return false;
  }
}

std::vector<Culprit> culprits_of(const Verdict& verdict) {
  const auto* fail = std::get_if<Fail>(&verdict);
  return fail != nullptr ? fail->blame.culprits : std::vector<Culprit>();
}

/// A process that is not there, or does not answer, proves nothing about the network.
bool proves_nothing(Kind kind) {
  return (kind >= Kind::absent && kind <= Kind::lacking) ||
         (kind >= Kind::cut_all && kind <= Kind::refuse_join) || kind == Kind::unlike;
}

/// A node's last answers may still be on their way when a fault strikes: a full queue, and one more round
/// that does not need it: two half-rounds of 100 ms and their answers, where a group is odd.
constexpr Ns kOnTheWay = std::chrono::milliseconds(400);

class Check {
 public:
  Check(const Scenario& scenario, const Outcome& outcome) : scenario_(scenario), outcome_(outcome) {}

  std::vector<std::string> run() {
    everything_ends_in_time();
    if (const auto verdict = network_verdict_of(outcome_)) {
      nobody_healthy_is_blamed(*verdict);
      what_did_not_answer_is_not_slow(*verdict);
      the_healthy_pass(*verdict);
      the_slow_are_named(*verdict);
      the_broken_are_named(*verdict);
      the_dead_path_is_no_pass(*verdict);
      followers_say_what_the_leader_says();
      who_lies_brings_up_himself_alone();
      the_report_can_be_judged_again(*verdict_of(outcome_));
    } else {
      followers_of_a_lost_leader_are_inconclusive();
    }
    return std::move(found_);
  }

 private:
  void expect(bool holds, std::string_view what) {
    if (!holds) found_.emplace_back(what);
  }
  [[nodiscard]] Kind kind() const { return scenario_.fault.kind; }
  [[nodiscard]] const session::Report& leader() const { return *outcome_.nodes.front().report; }

  void everything_ends_in_time() {
    for (std::uint32_t node = 0; node < outcome_.nodes.size(); ++node) {
      const End& end = outcome_.nodes[node];
      if (!end.able) continue;
      expect(end.report.has_value(), node_name(node) + " did not finish");
      expect(end.finished <= end.deadline || kind() == Kind::hiccup,
             node_name(node) + " is past its deadline");
    }
  }

  void nobody_healthy_is_blamed(const Verdict& verdict) {
    for (const Culprit& culprit : culprits_of(verdict))
      expect(is_fault(scenario_, culprit), "blamed without cause: " + node_name(culprit.node));
    if (const auto* inconclusive = std::get_if<Inconclusive>(&verdict)) {
      for (const std::string& missing : inconclusive->missing)
        expect(leader_is_cut_off() || leader_stood_still() || missing == node_name(scenario_.fault.node),
               "missing without cause: " + missing);
    }
  }

  /// To a leader that is cut off, all others are missing.
  [[nodiscard]] bool leader_is_cut_off() const {
    return kind() == Kind::cut_all && scenario_.fault.node == 0;
  }

  /// So did whoever exchanged bytes with it; and its timers run out before it has read what came meanwhile.
  [[nodiscard]] bool leader_stood_still() const {
    return kind() == Kind::hiccup && scenario_.fault.halts && scenario_.fault.node == 0;
  }

  /// A node that stands still for a moment, its data too or not, is no slow network either.
  void what_did_not_answer_is_not_slow(const Verdict& verdict) {
    if (proves_nothing(kind())) expect(!std::holds_alternative<Fail>(verdict), "what did not answer failed");
  }

  void the_healthy_pass(const Verdict& verdict) {
    if (kind() != Kind::none && kind() != Kind::late) return;
    const auto* pass = std::get_if<Pass>(&verdict);
    expect(pass != nullptr, "a healthy network did not pass");
    if (pass == nullptr) return;
    expect(pass->warnings.empty(), "a healthy network was warned about");
    const double nominal = scenario_.rate * scenario_.rails;
    const double busbw = pass->figures.busbw.bits_per_second;
    // all_reduce takes twice the turns of all_gather, and smaller groups more of the time: sizes stay
    // smaller.
    const double least = scenario_.over_lanes ? 0.8 : 0.85;
    expect(busbw > least * nominal && busbw < 1.03 * nominal,
           fmt::format("busbw {} of {}", format_rate({busbw}), format_rate({nominal})));
  }

  void the_slow_are_named(const Verdict& verdict) {
    // A link that the gate's rings do not use shows in no collective: it may pass.
    if (!scenario_.slow_fault() || kind() == Kind::slow_link) return;
    expect(std::holds_alternative<Fail>(verdict), "a slow network did not fail");
    if (kind() == Kind::two_slow && scenario_.nodes < 12) return;  // half of the pairs may be slow
    if (scenario_.over_lanes && (in_pairs() || a_round_stalled())) return;
    expect(names_fault(scenario_, verdict), "the slow one was not named");
  }

  /// Groups of two, by max_world: of few ways the spread hides a slow one.
  [[nodiscard]] bool in_pairs() const { return scenario_.nodes / judge::group_count(leader().plan) < 3; }

  /// Another team takes the time that naming needs.
  [[nodiscard]] bool a_round_stalled() const {
    return std::ranges::any_of(leader().history.done, [](const judge::Done& done) {
      const auto* measure = std::get_if<judge::Measure>(&done.step);
      return measure != nullptr && measure->phase == judge::Phase::blame &&
             std::ranges::any_of(done.outcomes,
                                 [](const auto& outcome) { return outcome.trouble.has_value(); });
    });
  }

  void the_broken_are_named(const Verdict& verdict) {
    const auto* inconclusive = std::get_if<Inconclusive>(&verdict);
    if (!proves_nothing(kind()) || kind() == Kind::hiccup || kind() == Kind::starved ||
        kind() == Kind::crowded || kind() == Kind::lacking)
      return;
    if (inconclusive == nullptr) {
      expect(fault_may_come_too_late(), "passed without one that was broken");
      return;
    }
    const std::string line = judge::line(verdict, leader().plan, Ns{0});
    expect(leader_is_cut_off() || line.find(node_name(scenario_.fault.node)) != std::string::npos,
           "the broken one was not named: " + line);
    if (kind() == Kind::unlike)
      expect(leader().history.done.empty(), "measured nodes that do not fit together");
  }

  /// The check was over, or had its figure, before the fault struck.
  [[nodiscard]] bool fault_may_come_too_late() const {
    switch (kind()) {
      case Kind::crash:
      case Kind::freeze:
      case Kind::cut_all:
      case Kind::cut_data:
        return Time(scenario_.fault.at) + kOnTheWay >= outcome_.nodes.front().finished;
      case Kind::hang_run:
      case Kind::die_run:
        return true;
      default:
        return false;
    }
  }

  /// By name somewhere in the line, or as one that nothing is known of.
  [[nodiscard]] bool told(const Verdict& verdict) const {
    return std::holds_alternative<Inconclusive>(verdict) ||
           judge::line(verdict, leader().plan, Ns{0}).find(node_name(scenario_.fault.node)) !=
               std::string::npos;
  }

  void the_dead_path_is_no_pass(const Verdict& verdict) {
    if (kind() != Kind::cut_data) return;
    if (std::holds_alternative<Pass>(verdict))
      expect(fault_may_come_too_late() || gate_was_over(), "passed with a dead path");
    else if (scenario_.over_lanes && told(verdict))
      return;  // NCCL's ranks wait for whoever cannot be reached, and no team is formed again
    else
      expect(names_fault(scenario_, verdict), "a dead path was not named");
  }
  /// Rounds that only compare come after a gate that passed.
  [[nodiscard]] bool gate_was_over() const {
    return std::ranges::any_of(leader().history.done, [](const judge::Done& done) {
      const auto* measure = std::get_if<judge::Measure>(&done.step);
      return measure != nullptr && measure->phase == judge::Phase::blame;
    });
  }

  void who_lies_brings_up_himself_alone() {
    const judge::Plan& plan = leader().plan;
    for (const judge::JobFlaw& flaw : judge::flaws_of(plan)) {
      const bool alone = scenario_.liar && flaw.nodes == std::vector{*scenario_.liar};
      expect(alone, "brought up without cause: " + judge::describe(flaw, plan));
      for (const judge::NodePlan& node : plan.nodes)
        expect(flaw.short_words.find(node.name) == std::string::npos, "it names another node");
    }
    const auto limit = judge::limit_of_job(plan);
    if (!limit.counts) return;
    const double nominal = scenario_.rate * scenario_.rails;
    expect(std::abs(limit.all->bits_per_second - nominal) < 1e-3 * nominal, "the limit was moved");
  }

  void followers_say_what_the_leader_says() {
    if (kind() == Kind::hiccup) return;
    for (std::uint32_t node = 1; node < outcome_.nodes.size(); ++node) {
      const End& end = outcome_.nodes[node];
      if (!end.able || !end.report || node == scenario_.fault.node) continue;
      if (leader_is_cut_off() && end.report->claimed == "inconclusive") continue;  // it heard no verdict
      expect(end.report->claimed == leader().claimed && end.report->line == leader().line,
             node_name(node) + " says something else: " + end.report->line);
    }
  }

  void followers_of_a_lost_leader_are_inconclusive() {
    for (std::uint32_t node = 1; node < outcome_.nodes.size(); ++node) {
      const End& end = outcome_.nodes[node];
      if (!end.able || !end.report) continue;
      expect(end.report->claimed == "inconclusive", node_name(node) + " is sure without a leader");
      expect(end.report->line.find("n1") != std::string::npos, node_name(node) + " does not name the leader");
    }
  }

  /// What the supervisor does: read, hold against the assignment, judge again.
  void the_report_can_be_judged_again(const Verdict& verdict) {
    expect(leader().claimed == judge::name(verdict), "the report claims what its samples do not say");
    if (!scenario_.wire) return;
    for (const End& end : outcome_.nodes) {
      if (!end.report) continue;
      try {
        const auto read = session::report_from_json(session::to_json(*end.report), end.assignment);
        if (!read.leader) continue;
        expect(judge::line(judge::decide(read.plan, read.history), read.plan, Ns{0}) ==
                   judge::line(verdict, leader().plan, Ns{0}),
               "the report read back is judged differently");
      } catch (const Malformed& malformed) {
        found_.push_back("the report cannot be read: " + malformed.reason);
      }
    }
  }

  const Scenario& scenario_;
  const Outcome& outcome_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> violations(const Scenario& scenario, const Outcome& outcome) {
  return Check(scenario, outcome).run();
}

std::optional<Verdict> verdict_of(const Outcome& outcome) {
  const auto& report = outcome.nodes.front().report;
  if (!report) return std::nullopt;
  return judge::decide(report->plan, report->history);
}

std::optional<Verdict> network_verdict_of(const Outcome& outcome) {
  const auto& report = outcome.nodes.front().report;
  if (!report) return std::nullopt;
  judge::Plan plan = report->plan;
  for (const Flaw flaw : kAllFlaws)
    plan.weights.of(flaw) = Weight::ignore;
  return judge::decide(plan, report->history);
}

bool names_fault(const Scenario& scenario, const Verdict& verdict) {
  const auto culprits = culprits_of(verdict);
  if (scenario.fault.kind == Kind::cut_data)  // the node, or a way to or from it
    return std::ranges::any_of(culprits, [&](const Culprit& culprit) { return is_fault(scenario, culprit); });
  std::vector<std::uint32_t> wanted = {scenario.fault.node};
  if (scenario.fault.kind == Kind::two_slow) wanted.push_back(scenario.fault.other);
  return std::ranges::all_of(wanted, [&](std::uint32_t node) {
    return std::ranges::any_of(culprits, [&](const Culprit& culprit) {
      return culprit.node == node && is_fault(scenario, culprit);
    });
  });
}

}  // namespace netcheck::sim
