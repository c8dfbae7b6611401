// From the probe's end to a verdict. Pure.
#include "prolog/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "contract/wire.h"
#include "judge/job_limit.h"
#include "judge/line.h"
#include "policy/settings.h"
#include "session/plan.h"

namespace netcheck::prolog {
namespace {

Result<session::Report> read_report(const ProbeEnd& end, const session::Assignment& assignment) {
  if (end.too_large) return fail("read", "the report", "it is larger than 16 MiB");
  const auto value = from_json_text(end.report, "the report", session::kReportMaxBytes);
  if (!value) return tl::unexpected(value.error());
  try {
    session::Report report = session::report_from_json(*value, assignment);
    const bool leads = assignment.roster.self == 0;
    if (report.leader != leads)
      return fail("read", "the report", leads ? "it is a follower's" : "it claims to be the leader's");
    return report;
  } catch (const Malformed& malformed) {
    return fail("read", "the report", malformed.reason);
  } catch (const Json::exception& error) {
    return fail("read", "the report", error.what());
  }
}

// Why there is nothing to judge, in the words of the line.
std::string without_report(const ProbeEnd& end, const Error& error, const std::string& node) {
  if (end.interrupted) return "the check was ended from outside (SIGTERM)";
  if (!end.in_time && end.report.empty())
    return fmt::format("the probe on {} did not end by its deadline and was killed", node);
  if (end.report.empty()) return fmt::format("the probe on {} ended with {} and no report", node, end.how);
  return fmt::format("{}'s report rejected: {}{}", node, error.reason,
                     end.how.empty() ? "" : " (" + end.how + ")");
}

void judge_by_site(const session::Report& report, const session::Assignment& assignment, Outcome& outcome) {
  const auto source = assignment.policy.sources.find("check.op");
  if (source != assignment.policy.sources.end() && source->second == policy::kRequested) return;
  judge::Plan plan = report.plan;
  plan.thresholds = session::thresholds_of(assignment.policy);
  plan.thresholds.min = assignment.policy.site_min;
  judge::set_bars(plan);
  outcome.by_site = judge::decide(plan, report.history);
  outcome.nearly_by_site =
      std::holds_alternative<judge::Fail>(*outcome.by_site) && judge::nearly_enough(plan, report.history);
}

Outcome leaders(session::Report report, const session::Assignment& assignment, Ns took) {
  // The probe does not get to say what is enough, nor what is grave.
  report.plan.thresholds = session::thresholds_of(assignment.policy);
  report.plan.weights = assignment.policy.findings;
  const judge::Plan own = session::plan_of(assignment);
  report.plan.teaming = own.teaming;
  report.plan.algorithm = own.algorithm;
  report.plan.max_world = own.max_world;
  judge::set_bars(report.plan);
  judge::Verdict verdict = judge::decide(report.plan, report.history);
  if (judge::name(verdict) != report.claimed)
    return inconclusive(assignment, report.reached,
                        fmt::format("report rejected: its samples do not support '{}'", report.claimed),
                        took);
  if (auto* unknown = std::get_if<judge::Inconclusive>(&verdict);
      unknown != nullptr && unknown->reason.empty() && unknown->missing.empty()) {
    unknown->phase = report.reached;
    unknown->reason = report.reason;
  }
  Outcome outcome;
  outcome.verdict = judge::name(verdict);
  outcome.line = judge::line(verdict, report.plan, took);
  outcome.took = took;
  outcome.judged = std::move(verdict);
  judge_by_site(report, assignment, outcome);
  outcome.report = std::move(report);
  return outcome;
}

Outcome followers(session::Report report, const session::Assignment& assignment, Ns took) {
  const bool known = report.claimed == "pass" || report.claimed == "fail" || report.claimed == "inconclusive";
  if (!known)
    return inconclusive(assignment, report.reached,
                        fmt::format("report rejected: there is no verdict '{}'", report.claimed), took);
  // The line begins with what it claims, or it is none: then the follower never heard of its leader.
  const std::string line = printable(report.line, 1'024);
  if (line.rfind("netcheck=" + report.claimed, 0) != 0) {
    if (report.claimed != "inconclusive")
      return inconclusive(assignment, report.reached, "report rejected: its line is another verdict's", took);
    Outcome outcome = inconclusive(assignment, report.reached, report.reason, took);
    outcome.report = std::move(report);
    return outcome;
  }
  Outcome outcome;
  outcome.verdict = report.claimed;
  outcome.line = line;
  outcome.took = took;
  outcome.report = std::move(report);
  return outcome;
}

std::string gigabits(Rate rate) {
  return fmt::format("{:.3f}", rate.bits_per_second / 1e9);
}

// "n3,n1->n2": nodes by name, links by their two ends; nodes whose hardware fails the check.
std::string culprits_of(const judge::Fail& fail, const std::vector<std::string>& nodes) {
  std::string text;
  std::set<std::uint32_t> named;
  for (const judge::Culprit& culprit : fail.blame.culprits) {
    if (culprit.node >= nodes.size()) continue;
    if (!culprit.peer) named.insert(culprit.node);
    text += (text.empty() ? "" : ",") + nodes[culprit.node];
    if (culprit.peer && *culprit.peer < nodes.size()) text += "->" + nodes[*culprit.peer];
  }
  for (const judge::Flawed& flawed : fail.flawed)
    for (const std::uint32_t node : flawed.nodes)
      if (node < nodes.size() && named.insert(node).second) text += (text.empty() ? "" : ",") + nodes[node];
  return text;
}

void add_judged(std::map<std::string, std::string>& environment, const judge::Verdict& verdict,
                const std::vector<std::string>& nodes) {
  const auto figures =
      std::visit([](const auto& any) -> std::optional<judge::Figures> { return any.figures; }, verdict);
  if (figures) environment["NETCHECK_BUSBW_GBPS"] = gigabits(figures->busbw);
  if (const auto* failed = std::get_if<judge::Fail>(&verdict)) {
    if (std::string culprits = culprits_of(*failed, nodes); !culprits.empty())
      environment["NETCHECK_CULPRITS"] = std::move(culprits);
    std::string reason = failed->reason.empty() ? failed->blame.explanation : failed->reason;
    if (reason.empty() && failed->blame.culprits.empty() && !failed->flawed.empty())
      reason = "hardware: " + failed->flawed.front().words;
    if (!reason.empty()) environment["NETCHECK_REASON"] = reason;
  }
  if (const auto* unknown = std::get_if<judge::Inconclusive>(&verdict)) {
    std::string reason = unknown->reason;
    if (!unknown->missing.empty())
      reason = "missing: " + fold_node_list(unknown->missing) + (reason.empty() ? "" : "; " + reason);
    if (!reason.empty()) environment["NETCHECK_REASON"] = reason;
  }
}

}  // namespace

Outcome inconclusive(const session::Assignment& assignment, judge::Phase phase, std::string reason, Ns took) {
  judge::Inconclusive unknown;
  unknown.phase = phase;
  unknown.reason = std::move(reason);
  Outcome outcome;
  outcome.judged = std::move(unknown);
  outcome.verdict = judge::name(*outcome.judged);
  outcome.line = judge::line(*outcome.judged, session::plan_of(assignment), took);
  outcome.took = took;
  return outcome;
}

Outcome outcome_of(const ProbeEnd& end, const session::Assignment& assignment, Ns took) {
  auto report = read_report(end, assignment);
  if (!assignment.not_measured.empty()) {
    Outcome outcome = inconclusive(assignment, judge::Phase::start, assignment.not_measured, took);
    if (report) outcome.report = std::move(*report);
    return outcome;
  }
  if (!report)
    return inconclusive(
        assignment, end.reached,
        without_report(end, report.error(), assignment.roster.nodes.at(assignment.roster.self)), took);
  return assignment.roster.self == 0 ? leaders(std::move(*report), assignment, took)
                                     : followers(std::move(*report), assignment, took);
}

std::string with_notes(std::string line, const std::vector<std::string>& notes) {
  constexpr std::string_view kBegin = " note=\"", kEnd = "\"";
  if (notes.empty() || line.size() + kBegin.size() + kEnd.size() >= kMaxLineBytes) return line;
  const std::size_t room = kMaxLineBytes - line.size() - kBegin.size() - kEnd.size();
  std::string text = printable(fmt::format("{}", fmt::join(notes, "; ")), std::min(room, kMaxNoteBytes));
  std::ranges::replace(text, '"', '\'');  // as in judge/line.cpp: no end of the value, no other tool's part
  std::ranges::replace(text, '|', '/');
  return line + std::string(kBegin) + text + std::string(kEnd);
}

std::map<std::string, std::string> environment_of(const Outcome& outcome,
                                                  const session::Assignment& assignment,
                                                  const std::string& record) {
  std::map<std::string, std::string> environment = {
      {"NETCHECK_VERDICT", outcome.verdict},
      {"NETCHECK_FABRIC", assignment.policy.fabric},
      {"NETCHECK_NODES", std::to_string(assignment.roster.nodes.size())},
      {"NETCHECK_RECORD", record}};
  if (assignment.policy.min) environment["NETCHECK_MIN_GBPS"] = gigabits(*assignment.policy.min);
  if (outcome.judged) add_judged(environment, *outcome.judged, assignment.roster.nodes);
  return environment;
}

}  // namespace netcheck::prolog
