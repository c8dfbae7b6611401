// The report as JSON, and back. Written by the probe as the probe user; read by the supervisor as root, which
// believes nothing in it that does not fit.
#include "session/report.h"

#include <utility>

#include "contract/wire.h"
#include "judge/names.h"

namespace netcheck::session {
namespace {

constexpr std::size_t kMaxLine = 1'024;    // the line in sacct
constexpr std::size_t kMaxReason = 1'024;  // one sentence
constexpr std::size_t kMaxLogLine = 1'024;
constexpr std::size_t kMaxPhases = 16;  // there are seven

judge::Phase read_phase(const std::string& text) {
  using judge::Phase;
  for (const Phase phase : {Phase::start, Phase::rendezvous, Phase::open, Phase::connect, Phase::gate,
                            Phase::blame, Phase::finish}) {
    if (text == judge::name(phase)) return phase;
  }
  throw Malformed{"no such phase: " + printable(text, 32)};
}

judge::Plan read_plan(const Json& value, const Assignment& assignment) {
  judge::Plan plan = judge::plan_from_json(value);
  const auto& names = assignment.roster.nodes;
  if (plan.nodes.size() != names.size()) throw Malformed{"the report's nodes are not this job's"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (plan.nodes[i].name != names[i]) throw Malformed{"the report's nodes are not this job's"};
  }
  return plan;
}

}  // namespace

void note(Report& report, std::string_view text) {
  if (report.log.size() < kMaxLogLines) report.log.push_back(printable(text));
}

Json to_json(const Report& report) {
  Json phases = Json::object();
  for (const auto& [phase, took] : report.phases)
    phases[phase] = took.count();
  Json value{{"leader", report.leader},
             {"plan", judge::to_json(report.plan)},
             {"history", judge::to_json(report.history)},
             {"claimed", report.claimed},
             {"line", report.line},
             {"reached", judge::name(report.reached)},
             {"reason", report.reason},
             {"phases", std::move(phases)},
             {"inventory", to_json(report.inventory)},
             {"log", report.log}};
  if (report.hardware) value["hardware"] = judge::to_json(*report.hardware);
  return value;
}

Report report_from_json(const Json& value, const Assignment& assignment) {
  const Fields fields(value, "report");
  Report report;
  report.leader = fields.flag("leader");
  report.plan = read_plan(fields.object("plan"), assignment);
  report.history = judge::history_from_json(fields.object("history"), report.plan);
  report.claimed = printable(fields.text("claimed", kMaxLine), kMaxLine);
  report.line = printable(fields.text("line", kMaxLine), kMaxLine);
  report.reached = read_phase(fields.text("reached", kMaxLine));
  report.reason = printable(fields.text("reason", kMaxReason), kMaxReason);
  const Json& phases = fields.object("phases");
  if (phases.size() > kMaxPhases) throw Malformed{"too many phases"};
  for (const auto& phase : phases.items()) {
    report.phases[std::string(judge::name(read_phase(phase.key())))] =
        Fields(phases, "phases").duration(phase.key());
  }
  report.inventory = inventory_from_json(fields.object("inventory"));
  if (fields.has("hardware")) report.hardware = judge::hardware_from_json(fields.object("hardware"));
  for (const Json& line : fields.array("log", kMaxLogLines)) {
    if (!line.is_string() || line.get_ref<const std::string&>().size() > kMaxLogLine)
      throw Malformed{"the log holds something that is not a line"};
    report.log.push_back(printable(line.get_ref<const std::string&>()));
  }
  return report;
}

}  // namespace netcheck::session
