// See line.h.
#include "judge/line.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/job.h"
#include "contract/wire.h"
#include "judge/groups.h"
#include "judge/job_flaws.h"
#include "judge/names.h"

namespace netcheck::judge {
namespace {

/// Slurm keeps comments of any length, but `sacct` and `squeue` lines are read by people: 1 KiB in all.
constexpr std::size_t kLineBytes = 1'024;
/// Parts that could grow with the job are cut, so that what comes last is still there.
constexpr std::size_t kMissingBytes = 160, kListBytes = 320, kLaneBytes = 32;
/// Of a line that has culprits and a reason as well.
constexpr std::size_t kBadBytes = 96, kAsideBytes = 64, kOneBytes = 112;

std::string rate_words(Rate rate) {
  return rate.bits_per_second > 0 ? format_rate(rate) : "0Gbps";
}

/// "a,b,c", cut with "+N" when longer than max_bytes. At least one is shown.
std::string listed(const std::vector<std::string>& items, std::size_t max_bytes) {
  std::string list;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!list.empty() && list.size() + 1 + items[i].size() > max_bytes)
      return fmt::format("{},+{}", list, items.size() - i);
    list += (list.empty() ? "" : ",") + items[i];
  }
  return list;
}

/// A value without blanks: a plugin calls itself what it likes.
std::string one_word(std::string_view text) {
  std::string word = plain(text, kLaneBytes);
  std::ranges::replace(word, ' ', '_');
  return word;
}

void add_figures(std::string& line, const std::optional<Figures>& figures, const Plan& plan, bool dead) {
  if (dead)
    line += " busbw=0Gbps";
  else if (figures)
    line += " busbw=" + rate_words(figures->busbw);
  if (plan.thresholds.min) line += " min=" + format_rate(*plan.thresholds.min, true);
  if (plan.thresholds.min_per_rail)
    line += " min_per_rail=" + format_rate(*plan.thresholds.min_per_rail, true);
  if (plan.thresholds.min_per_pair)
    line += " min_per_pair=" + format_rate(*plan.thresholds.min_per_pair, true);
  if (const auto limit = limit_to_tell(plan, figures)) line += " limit=" + rate_words(*limit);
  line += fmt::format(" op={}", netcheck::name(figures ? figures->op : plan.op));
  if (figures && !figures->algorithm.empty()) line += " algo=" + plain(figures->algorithm, kLaneBytes);
}

std::size_t all_lanes(const Plan& plan) {
  std::size_t lanes = 0;
  for (const NodePlan& node : plan.nodes)
    lanes += node.lanes.size();
  return lanes;
}

void add_size(std::string& line, const std::optional<Figures>& figures, const Plan& plan) {
  line += fmt::format(" nodes={}", plan.nodes.size());
  if (plan.teaming == Teaming::over_lanes && rails(plan) > 0)
    line += fmt::format(" gpus={}", all_lanes(plan));
  else if (rails(plan) > 1)
    line += fmt::format(" rails={}", rails(plan));
  if (figures && figures->groups > 1) line += fmt::format(" groups={}", figures->groups);
  if (figures && figures->noisy) line += " noisy=yes";
}

void add_end(std::string& line, Ns took, const std::string& reason) {
  line += " time=" + format_duration(took);
  if (!reason.empty()) line += fmt::format(" reason=\"{}\"", plain(reason, kReasonBytes));
}

std::vector<std::string> described(const std::vector<Culprit>& culprits, const Plan& plan) {
  std::vector<std::string> words;
  words.reserve(culprits.size());
  for (const Culprit& culprit : culprits)
    words.push_back(describe(culprit, plan));
  return words;
}

/// What there is to say beside another verdict than pass; what fails the check stands under bad=.
void add_warnings(std::string& line, const Plan& plan, const std::vector<Flawed>& told) {
  std::vector<std::string> warnings = hardware_warnings(plan, std::nullopt);
  std::erase_if(warnings, [&](const std::string& word) {
    return std::ranges::find(told, word, &Flawed::words) != told.end();
  });
  if (!warnings.empty()) line += " warn=" + plain(listed(warnings, kAsideBytes), kOneBytes);
}

std::string words(const Pass& pass, const Plan& plan, Ns took) {
  std::string line = "netcheck=pass";
  add_figures(line, pass.figures, plan, false);
  add_size(line, pass.figures, plan);
  std::vector<std::string> warnings = pass.warnings;
  for (std::string& word : hardware_warnings(plan, pass.figures))
    warnings.push_back(std::move(word));
  if (!warnings.empty()) line += " warn=" + plain(listed(warnings, kListBytes), kListBytes + 160);
  add_end(line, took, "");
  return line;
}

std::string words(const Fail& fail, const Plan& plan, Ns took) {
  std::string line = "netcheck=fail";
  add_figures(line, fail.figures, plan, fail.dead);
  add_size(line, fail.figures, plan);
  if (!fail.blame.culprits.empty())
    line += " slow=" + listed(described(fail.blame.culprits, plan), kListBytes);
  if (!fail.transport.empty())
    line += fmt::format(" transport={} required={}", one_word(fail.transport),
                        one_word(plan.thresholds.transport));
  std::vector<std::string> bad;
  for (const Flawed& flawed : fail.flawed)
    bad.push_back(flawed.words);
  if (!bad.empty()) line += " bad=" + plain(listed(bad, kBadBytes), 2 * kOneBytes);
  add_warnings(line, plan, fail.flawed);
  add_end(line, took, fail.reason);
  return line;
}

std::string words(const Inconclusive& verdict, const Plan& plan, Ns took) {
  std::string line = fmt::format("netcheck=inconclusive phase={}", name(verdict.phase));
  if (!verdict.missing.empty())
    line += " missing=" + plain(fold_node_list(verdict.missing, kMissingBytes), kMissingBytes);
  if (verdict.figures) line += " busbw=" + rate_words(verdict.figures->busbw);
  add_size(line, verdict.figures, plan);
  add_warnings(line, plan, {});
  add_end(line, took, verdict.reason);
  return line;
}

Json to_json(const Figures& figures) {
  Json rails = Json::array();
  for (const Rate rate : figures.per_rail)
    rails.push_back(rate.bits_per_second);
  return {{"busbw_bps", figures.busbw.bits_per_second},
          {"per_rail_bps", std::move(rails)},
          {"op", netcheck::name(figures.op)},
          {"algorithm", figures.algorithm},
          {"bytes", figures.bytes},
          {"groups", figures.groups},
          {"noisy", figures.noisy},
          {"kept", figures.most_kept_part}};
}

Json to_json(const Culprit& culprit, const Plan& plan) {
  Json json{{"node", node_name(plan, culprit.node)},
            {"direction", name(culprit.direction)},
            {"measured_bps", culprit.measured.bits_per_second},
            {"isolated", culprit.isolated}};
  if (culprit.peer) json["peer"] = node_name(plan, *culprit.peer);
  if (culprit.lane) json["lane"] = *culprit.lane;
  return json;
}

Json to_json(const Blame& blame, const Plan& plan) {
  Json culprits = Json::array();
  for (const Culprit& culprit : blame.culprits)
    culprits.push_back(to_json(culprit, plan));
  return {{"culprits", std::move(culprits)},
          {"fabric_wide", blame.fabric_wide},
          {"oversubscribed", blame.oversubscribed},
          {"explanation", printable(blame.explanation, kLineBytes)},
          {"median_bps", blame.median.bits_per_second},
          {"threshold_bps", blame.threshold.bits_per_second}};
}

Json details(const Pass& pass, const Plan& /*plan*/) {
  return {{"figures", to_json(pass.figures)}, {"warnings", pass.warnings}};
}

Json details(const Fail& fail, const Plan& plan) {
  Json flawed = Json::array();
  for (const Flawed& one : fail.flawed)
    flawed.push_back(one.words);
  Json json{{"blame", to_json(fail.blame, plan)},
            {"reason", fail.reason},
            {"dead", fail.dead},
            {"bad", std::move(flawed)}};
  if (fail.figures) json["figures"] = to_json(*fail.figures);
  if (!fail.transport.empty()) {
    json["transport"] = fail.transport;
    json["wanted"] = plan.thresholds.transport;
  }
  return json;
}

Json details(const Inconclusive& verdict, const Plan& /*plan*/) {
  Json json{{"phase", name(verdict.phase)}, {"missing", verdict.missing}, {"reason", verdict.reason}};
  if (verdict.figures) json["figures"] = to_json(*verdict.figures);
  return json;
}

}  // namespace

std::string describe(const Culprit& culprit, const Plan& plan) {
  std::string who = node_name(plan, culprit.node);
  if (culprit.peer) who += ">" + node_name(plan, *culprit.peer);
  if (culprit.lane) who += "/" + lane_name(plan, culprit.node, *culprit.lane);
  return fmt::format("{}({}: {})", who, culprit.peer ? "link" : name(culprit.direction),
                     rate_words(culprit.measured));
}

std::string line(const Verdict& verdict, const Plan& plan, Ns took) {
  return printable(std::visit([&](const auto& kind) { return words(kind, plan, took); }, verdict),
                   kLineBytes);
}

Json to_json(const Verdict& verdict, const Plan& plan) {
  Json json = std::visit([&](const auto& kind) { return details(kind, plan); }, verdict);
  json["verdict"] = name(verdict);
  json["hardware"] = hardware_to_json(plan);
  return json;
}

}  // namespace netcheck::judge
