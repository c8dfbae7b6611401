// The plan of decide.h, carried out call by call. As root. See act.h.
#include "prolog/act.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "judge/inside.h"
#include "judge/pairs.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

constexpr std::int64_t kRateWindow = 3'600;
// So long after it was announced a drain counts as one that sinfo may not show yet. It takes two seconds at
// most; nodes' clocks may differ, by less than munge's five minutes, beyond which no credential is taken.
constexpr std::int64_t kDrainWindow = 300;
// Between the words on the terminal and the end of the job: salloc and srun need a moment to show them.
constexpr auto kWordsBeforeEnd = std::chrono::seconds(1);
constexpr auto kForTheEnd = std::chrono::milliseconds(300);  // of the time left, for scancel
constexpr std::size_t kTerminalBytes = 400;

std::string folded(const std::vector<std::string>& names) {
  return fold_node_list(names, kNodeListBytes);
}

class Act {
 public:
  Act(const Case& found, Controller& controller, Time deadline)
      : found_(found), controller_(controller), deadline_(deadline) {
    acted_.line = found.line;
    now_ = std::time(nullptr);
  }

  Acted run() {
    auto job = look_up(controller_, found_.run.job, deadline_,
                       may_refuse(found_.policy, found_.finding) ? Asked::standing_too : Asked::identity);
    if (!job) return ends(job.error());
    job_ = std::move(*job);
    others_ = job_.admin_comment;
    own_ = read_own_history(job_.admin_comment);
    ask();
    decide();
    if (acts()) heed_switch();
    if (!announce()) return std::move(acted_);
    if (acts() && !count_again()) return std::move(acted_);
    drain();
    carry_out();
    say_brakes();
    acted_.action = plan_.action;
    if (found_.policy.dry_run) acted_.action = Action::annotate;
    return std::move(acted_);
  }

 private:
  Acted ends(const Error& error) {
    acted_.result = error.reason == kEnded ? kEnded : describe(error);
    return std::move(acted_);
  }
  void decide() {
    plan_ = decide_action(found_.policy, found_.finding, job_, cluster_, own_, now_);
    acted_.line = found_.line + plan_.tail;
  }

  // Facts that cannot be had stay nullopt; the decision says so.
  void ask() {
    cluster_.partition = found_.partition;
    const Questions questions = prolog::questions(found_.policy, found_.finding, job_, own_);
    const std::string job = "--jobs=" + std::to_string(found_.run.job);
    cluster_.standing = job_.standing;
    if (questions.placement)
      take(call("squeue", {"--noheader", job, "--format=" + placement_format()}), cluster_.placement,
           [&](const std::string& text) { return read_placement(text, found_.run.job); });
    if (questions.nodes)
      take(call("sinfo", {"--noheader", "--all", "--Node", "--Format=" + nodes_format()}), cluster_.nodes,
           [](const std::string& text) { return read_nodes(text); });
    if (!questions.switches) return;
    auto switches = read_switches(found_.topology);
    if (!switches) unknown(switches.error());
    cluster_.switches = switches ? std::optional(std::move(*switches)) : std::nullopt;
  }
  Result<std::string> call(const std::string& program, std::vector<std::string> arguments) {
    return controller_.call(program, std::move(arguments), deadline_);
  }
  template <typename Fact, typename Read>
  void take(const Result<std::string>& answer, std::optional<Fact>& fact, const Read& read) {
    if (!answer) return unknown(answer.error());
    auto value = read(*answer);
    if (!value) return unknown(value.error());
    fact = std::move(*value);
  }
  void unknown(const Error& error) {
    acted_.said.push_back(fmt::format("job {}: {}", job_.target, describe(error)));
  }

  // False: the job is over, or the controller does not answer; then nothing is done either.
  bool announce() {
    const auto written =
        write_comment(controller_, job_, merge_comment(others_, found_.line, plan_.tail), deadline_);
    if (written) {
      job_.admin_comment = merge_comment(others_, found_.line, plan_.tail);
      return true;
    }
    acted_.result = written.error().reason == kEnded ? kEnded : describe(written.error());
    acted_.line = found_.line;
    return false;
  }

  [[nodiscard]] bool acts() const { return plan_.acts() && !found_.policy.dry_run; }

  // After the announcement: whoever counts now counts us, so that of many that act at once none overlooks all
  // the others. Too many is then too few rather than one too many.
  bool count_again() {
    if (!plan_.counts || (found_.policy.max_actions_per_hour == 0 && plan_.drain.empty())) return true;
    count_deeds();
    decide();
    return announce();
  }

  // Asked for right before each action, and never within one: none begins once the switch is there, and what
  // has begun ends whole. True: there it is, and the plan holds only what has been done.
  bool heed_switch() {
    if (!any_exists(found_.kill_switches)) return false;
    plan_.action = Action::annotate;
    plan_.drain.clear();
    plan_.brakes = " brake=disabled";
    plan_.tail = " action=annotate" + plan_.brakes;
    if (!drained_.empty()) plan_.tail += " drain=" + folded(drained_);
    if (own_.requeues > 0) plan_.tail += fmt::format(" requeues={}", own_.requeues);
    if (!drained_.empty()) plan_.tail += fmt::format(" acted={}", now_);
    if (!own_.previous.empty()) plan_.tail += " prev=" + own_.previous;
    acted_.line = found_.line + plan_.tail;
    return true;
  }
  bool stopped() {
    if (!heed_switch()) return false;
    announce();
    return true;
  }

  void count_deeds() {
    const auto live = call("squeue", {"--noheader", "--all", "--states=all", "--Format=" + deeds_format()});
    const auto ended = call("sacct", {"--allusers", "--duplicates", "--allocations", "--noheader",
                                      "--parsable2", "--starttime=now-1hours", "--endtime=now",
                                      "--state=RQ,CA", std::string("--format=") + kSacctFields});
    cluster_.deeds_failed = !live || !ended;
    for (const auto* answer : {&live, &ended})
      if (!*answer) unknown(answer->error());
    if (cluster_.deeds_failed) return;
    const auto deeds = read_deeds(*live, *ended, now_ - kRateWindow, Deed{found_.run.job, now_});
    cluster_.deeds = static_cast<std::uint32_t>(deeds.size());
    cluster_.announced = drains_announced(deeds, now_ - kDrainWindow);
  }

  void drain() {
    if (!acts() || plan_.drain.empty() || stopped()) return;
    drained_ = plan_.drain;
    const auto done = call("scontrol", {"update", "NodeName=" + folded(plan_.drain), "State=DRAIN",
                                        "Reason=" + plan_.drain_reason});
    acted_.said.push_back(done ? fmt::format("action=drain nodes={} job={} reason=\"{}\"",
                                             folded(plan_.drain), job_.target, plan_.drain_reason)
                               : fmt::format("job {}: {} not drained: {}", job_.target, folded(plan_.drain),
                                             describe(done.error())));
    if (done || done.error().attempted != "call") return;  // no answer in time: it may have been done
    // The line told of it beforehand, and must not go on telling.
    drained_.clear();
    cluster_.drain_refused = true;
    decide();
    announce();
  }

  void carry_out() {
    if (!acts() || plan_.action == Action::annotate || stopped()) return;
    auto done = do_it();
    // Slurm would not, for a reason that no column shows: the site's fallback, once.
    const bool refused = !done && done.error().attempted == "call" && !has_ended(done.error());
    if (refused && plan_.action != Action::cancel) {
      cluster_.refused = done.error().reason;
      unknown(done.error());
      decide();
      plan_.drain.clear();
      if (!announce() || plan_.action == Action::annotate || stopped()) return;
      done = do_it();
    }
    if (!done) {
      acted_.result = has_ended(done.error()) ? kEnded : describe(done.error());
      acted_.said.push_back(
          fmt::format("job {}: {} failed: {}", job_.target, name(plan_.action), acted_.result));
      return;
    }
    acted_.said.push_back(fmt::format("action={} job={} nodes={} line=\"{}\"", name(plan_.action),
                                      job_.target, fold_node_list(found_.finding.nodes), acted_.line));
  }

  Result<void> do_it() {
    switch (plan_.action) {
      case Action::annotate:
        return {};
      case Action::hold:
        return change("scontrol", {"requeuehold", job_.target});
      case Action::requeue:
        return requeue();
      case Action::cancel:
        return cancel();
    }
    return {};
  }
  Result<void> change(const char* program, std::vector<std::string> arguments) {
    const auto done = call(program, std::move(arguments));
    if (!done) return tl::unexpected(done.error());
    return {};
  }

  Result<void> requeue() {
    if (auto done = change("scontrol", {"requeue", job_.target}); !done) return done;
    if (plan_.exclude.empty()) return {};
    const auto kept =
        change("scontrol", {"update", "JobId=" + job_.target, "ExcNodeList=" + folded(plan_.exclude)});
    if (!kept) {
      // The job may meet the same nodes again, after Slurm's two minutes; its next check will see that.
      unknown(kept.error());
      acted_.result = "requeued, but not away from the slow nodes: " + describe(kept.error());
      return {};
    }
    if (plan_.start_early) acted_.early = early_start();
    return {};
  }

  EarlyStart early_start() const {
    EarlyStart early{found_.run, job_.target, cluster_.placement->excluded_list, {}, found_.kill_switches};
    for (const std::string& node : found_.finding.nodes)
      if (std::find(plan_.exclude.begin(), plan_.exclude.end(), node) == plan_.exclude.end())
        early.may_return.push_back(node);
    return early;
  }

  Result<void> cancel() {
    if (!job_.batch && controller_.left() > 1) {
      const auto told = call(
          "scontrol",
          {"notify", job_.target, printable("netcheck cancels this job: " + acted_.line, kTerminalBytes)});
      if (!told) unknown(told.error());
      std::this_thread::sleep_until(std::min(system::now() + kWordsBeforeEnd, deadline_ - kForTheEnd));
    }
    return change("scancel", {job_.target});
  }

  void say_brakes() {
    if (!plan_.brakes.empty())
      acted_.said.push_back(
          fmt::format("a brake held:{} job={} line=\"{}\"", plan_.brakes, job_.target, acted_.line));
  }

  const Case& found_;
  Controller& controller_;
  Time deadline_;
  std::int64_t now_ = 0;
  JobFacts job_;
  std::string others_;  // the comment as it was found
  OwnHistory own_;
  ClusterFacts cluster_;
  ActionPlan plan_;
  std::vector<std::string> drained_;
  Acted acted_;
};

bool any_wrong(const judge::History& history) {
  for (const judge::Done& done : history.done)
    for (const judge::NodeOutcome& outcome : done.outcomes)
      if (std::ranges::any_of(outcome.samples, [](const Sample& sample) { return sample.wrong > 0; }))
        return true;
  return false;
}

/// By name, each way once.
std::vector<std::pair<std::string, std::string>> slow_ways_of(const session::Report& report) {
  std::vector<std::pair<std::string, std::string>> ways;
  for (const judge::Pair& way : judge::slow_ways(report.plan, judge::edges_of(report.plan, report.history)))
    ways.emplace_back(report.plan.nodes[way.from].name, report.plan.nodes[way.to].name);
  // What is slow within a node crosses no switch.
  for (const judge::Culprit& culprit : judge::slow_inside(report.plan, report.history))
    ways.emplace_back(report.plan.nodes[culprit.node].name, report.plan.nodes[culprit.node].name);
  return ways;
}

}  // namespace

Case case_of(const Record& record, const Outcome& outcome, std::vector<std::string> kill_switches,
             std::filesystem::path topology) {
  const Roster& roster = record.job.roster;
  Case found{roster.run,
             record.job.partition,
             record.line,
             {},
             record.assignment.policy,
             std::move(kill_switches),
             std::move(topology)};
  found.finding.nodes = roster.nodes;
  if (!record.judged || !record.report) return found;
  found.finding = finding_of(*record.judged, outcome.by_site, record.report->plan);
  found.finding.corrupt = any_wrong(record.report->history);
  found.finding.slow_ways = slow_ways_of(*record.report);
  found.finding.nearly_enough = found.finding.kind == Finding::Kind::fail &&
                                judge::nearly_enough(record.report->plan, record.report->history);
  found.finding.nearly_by_site = outcome.nearly_by_site;
  // Nodes that would not or could not take part: to come back would change nothing.
  if (record.report->history.refusal && found.finding.kind == Finding::Kind::broken_off)
    found.finding.kind = Finding::Kind::not_measured;
  return found;
}

Acted act(const Case& found, Controller& controller, Time deadline) {
  return Act(found, controller, deadline).run();
}

}  // namespace netcheck::prolog
