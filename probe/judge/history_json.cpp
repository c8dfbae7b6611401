// Plan and History as JSON for the record and the probe's report. The reader is strict: what the probe says
// is checked against the plan before the supervisor, as root, judges it. See history.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "contract/job.h"
#include "contract/wire.h"
#include "judge/history.h"
#include "judge/names.h"

namespace netcheck::judge {
namespace {

// Bounds of a report. Names: Slurm's limit for hostnames is 64; details are cut to 256 by those who write
// them. 64 lanes: the largest nodes have 16 NICs. Steps: kMaxSteps and room for those of an open that failed.
constexpr std::size_t kMaxName = 256, kMaxDetail = 512, kMaxLanes = 64, kMaxDone = 128;
constexpr std::size_t kMaxTeams = 131'072, kMaxOutcomes = kMaxNodes, kMaxSamples = 256;
constexpr Ns kMaxTime = std::chrono::hours(1);
constexpr double kMaxRate = 1e15;  ///< as parse_rate

template <typename List, typename Write>
Json list_of(const List& values, Write write) {
  Json list = Json::array();
  for (const auto& value : values)
    list.push_back(write(value));
  return list;
}

template <typename Read>
auto read_list(const Json& list, Read read) {
  std::vector<decltype(read(list))> values;
  values.reserve(list.size());
  for (const Json& value : list)
    values.push_back(read(value));
  return values;
}

/// Reverse of name() for the enumerations of this room.
template <typename Word, std::size_t N>
Word word_of(const Fields& fields, std::string_view key, const std::array<Word, N>& words) {
  const std::string text = fields.text(key, kMaxName);
  for (const Word word : words)
    if (name(word) == text) return word;
  throw Malformed{fmt::format("unknown {}: '{}'", key, printable(text, 64))};
}

constexpr std::array kPhases{Phase::start, Phase::rendezvous, Phase::open,  Phase::connect,
                             Phase::gate,  Phase::blame,      Phase::finish};
constexpr std::array kTroubles{Trouble::no_bytes, Trouble::late, Trouble::child_died, Trouble::child_silent,
                               Trouble::refused};

constexpr std::size_t kMaxSpent = 16;  // NCCL tells of nine
constexpr std::array kTeamings{Teaming::per_lane, Teaming::over_lanes};

Rate rate_from(const Fields& fields, std::string_view key) {
  const double value = fields.finite(key);
  if (value < 0 || value > kMaxRate) throw Malformed{fmt::format("{} is out of range", key)};
  return {value};
}

/// Elements of lists have no key: the strictness of Fields::count by hand.
std::uint32_t number_from(const Json& value) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<std::int64_t>() < 0))
    throw Malformed{"a list of numbers holds something else"};
  const auto number = value.get<std::uint64_t>();
  if (number > UINT32_MAX) throw Malformed{"a number in a list is too large"};
  return static_cast<std::uint32_t>(number);
}

/// Times are bounded so that sums and products of them cannot overflow: a check takes seconds.
Ns time_from(const Fields& fields, std::string_view key) {
  const Ns time = fields.duration(key);
  if (time > kMaxTime) throw Malformed{fmt::format("{} is longer than an hour", key)};
  return time;
}

// --- steps ----------------------------------------------------------------------------------------------

Json write(const Step& step) {
  if (const auto* form = std::get_if<Form>(&step))
    return {{"kind", "form"},
            {"phase", name(form->phase)},
            {"teams", list_of(form->teams, [](const Team& team) { return netcheck::to_json(team); })}};
  if (const auto* measure = std::get_if<Measure>(&step))
    return {
        {"kind", "measure"},
        {"phase", name(measure->phase)},
        {"batches", list_of(measure->batches, [](const Batch& batch) { return netcheck::to_json(batch); })},
        {"allowance", measure->allowance.count()},
        {"round", measure->round},
        {"back", measure->back},
        {"inside", measure->inside}};
  return {{"kind", "stop"}};
}

/// Sizes of the teams formed so far, by id: what later batches and samples must fit into.
using Formed = std::map<std::uint32_t, Team>;

Form form_from(const Fields& fields, const Plan& plan, Formed& formed) {
  Form form{.phase = word_of(fields, "phase", kPhases),
            .teams = read_list(fields.array("teams", kMaxTeams), team_from_json)};
  std::set<Rank> taken;
  for (const Team& team : form.teams) {
    for (const Rank& rank : team.ranks) {
      if (rank.node >= plan.nodes.size() || rank.lane >= plan.nodes[rank.node].lanes.size())
        throw Malformed{fmt::format("team {} has a rank that the plan does not", team.id)};
      if (!taken.insert(rank).second) throw Malformed{"a rank is in two teams"};
    }
    if (team.ranks.size() < 2) throw Malformed{fmt::format("team {} has fewer than two ranks", team.id)};
    if (!formed.emplace(team.id, team).second)
      throw Malformed{fmt::format("team {} is formed twice", team.id)};
  }
  return form;
}

Measure measure_from(const Fields& fields, const Formed& formed, std::set<std::uint32_t>& batch_ids) {
  Measure measure{.phase = word_of(fields, "phase", kPhases),
                  .batches = read_list(fields.array("batches", kMaxTeams), batch_from_json),
                  .allowance = time_from(fields, "allowance"),
                  .round = fields.u32("round", kMaxDone),
                  .back = fields.flag("back"),
                  .inside = fields.has("inside") && fields.flag("inside")};
  for (const Batch& batch : measure.batches) {
    const auto team = formed.find(batch.team);
    if (team == formed.end()) throw Malformed{fmt::format("batch {} has no team", batch.id)};
    const std::size_t ranks = team->second.ranks.size();
    if (batch.root >= ranks) throw Malformed{fmt::format("batch {} has a root outside its team", batch.id)};
    for (const Edge& edge : batch.edges)
      if (edge.from >= ranks || edge.to >= ranks)
        throw Malformed{fmt::format("batch {} has an edge outside its team", batch.id)};
    if (!batch_ids.insert(batch.id).second) throw Malformed{fmt::format("batch {} appears twice", batch.id)};
  }
  return measure;
}

// --- outcomes -------------------------------------------------------------------------------------------

Json write(const NodeOutcome& outcome) {
  Json json{
      {"node", outcome.node},
      {"samples", list_of(outcome.samples, [](const Sample& sample) { return netcheck::to_json(sample); })},
      {"batch", outcome.batch},
      {"detail", outcome.detail},
      {"took", outcome.took.count()}};
  if (outcome.trouble) json["trouble"] = name(*outcome.trouble);
  if (!outcome.transport.empty()) json["transport"] = outcome.transport;
  if (!outcome.spent.empty()) json["spent"] = durations_to_json(outcome.spent);
  return json;
}

NodeOutcome outcome_from(const Json& value, const Plan& plan) {
  const Fields fields(value, "outcome");
  if (plan.nodes.empty()) throw Malformed{"outcome: the plan has no nodes"};
  NodeOutcome outcome;
  outcome.node = fields.u32("node", static_cast<std::uint32_t>(plan.nodes.size() - 1));
  outcome.samples = read_list(fields.array("samples", kMaxSamples), sample_from_json);
  outcome.batch = read_list(fields.array("batch", kMaxSamples), number_from);
  if (outcome.samples.size() != outcome.batch.size()) throw Malformed{"outcome: samples without their batch"};
  outcome.detail = fields.text("detail", kMaxDetail);
  outcome.took = time_from(fields, "took");
  if (fields.has("trouble")) outcome.trouble = word_of(fields, "trouble", kTroubles);
  if (fields.has("transport")) outcome.transport = fields.text("transport", kMaxDetail);
  outcome.spent = fields.durations("spent", kMaxSpent);
  return outcome;
}

/// Every sample belongs to a rank of its node in a batch of the step, once, with no more completions than
/// were asked for.
void check_samples(const NodeOutcome& outcome, const Step& step, const Formed& formed) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  const auto* measure = std::get_if<Measure>(&step);
  for (std::size_t i = 0; i < outcome.samples.size(); ++i) {
    const Sample& sample = outcome.samples[i];
    if (measure == nullptr) throw Malformed{"outcome: samples of a step that measured nothing"};
    const auto batch = std::ranges::find(measure->batches, outcome.batch[i], &Batch::id);
    if (batch == measure->batches.end()) throw Malformed{"outcome: a sample of a batch that was not run"};
    const auto& ranks = formed.at(batch->team).ranks;
    if (sample.rank >= ranks.size() || ranks[sample.rank].node != outcome.node)
      throw Malformed{fmt::format("outcome: node {} reports for a rank that is not its own", outcome.node)};
    if (!seen.insert({batch->id, sample.rank}).second) throw Malformed{"outcome: a rank reports twice"};
    if (sample.done.size() > batch->iterations) throw Malformed{"outcome: more completions than iterations"};
    if (!sample.done.empty() && sample.done.back() > kMaxTime)
      throw Malformed{"outcome: a completion after an hour"};
  }
}

Json write(const Done& done) {
  return {{"step", write(done.step)},
          {"outcomes", list_of(done.outcomes, [](const NodeOutcome& outcome) { return write(outcome); })},
          {"transport", done.transport},
          {"took", done.took.count()}};
}

Done done_from(const Json& value, const Plan& plan, Formed& formed, std::set<std::uint32_t>& batch_ids) {
  const Fields fields(value, "done");
  const Fields step(fields.object("step"), "step");
  const std::string kind = step.text("kind", kMaxName);
  Done done;
  if (kind == "form")
    done.step = form_from(step, plan, formed);
  else if (kind == "measure")
    done.step = measure_from(step, formed, batch_ids);
  else
    throw Malformed{fmt::format("step: unknown kind '{}'", printable(kind, 64))};
  std::set<std::uint32_t> nodes;
  for (const Json& entry : fields.array("outcomes", kMaxOutcomes)) {
    NodeOutcome outcome = outcome_from(entry, plan);
    if (!nodes.insert(outcome.node).second) throw Malformed{"done: a node answers twice"};
    check_samples(outcome, done.step, formed);
    done.outcomes.push_back(std::move(outcome));
  }
  done.transport = fields.text("transport", kMaxDetail);
  done.took = time_from(fields, "took");
  return done;
}

// --- plan -----------------------------------------------------------------------------------------------

Json write(const NodePlan& node) {
  Json json{{"name", node.name}, {"lanes", node.lanes}, {"machine", node.machine}};
  if (node.hardware) json["hardware"] = to_json(*node.hardware);
  return json;
}

std::string text_from(const Json& value) {
  if (!value.is_string()) throw Malformed{"a list of texts holds something else"};
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > kMaxName) throw Malformed{"a text in a list is too long"};
  return text;
}

NodePlan node_from(const Json& value) {
  const Fields fields(value, "node");
  return {.name = fields.text("name", kMaxName),
          .lanes = read_list(fields.array("lanes", kMaxLanes), text_from),
          .machine = fields.text("machine", kMaxName),
          .hardware = fields.has("hardware") ? std::optional(hardware_from_json(fields.object("hardware")))
                                             : std::nullopt};
}

Json write(const Thresholds& thresholds) {
  Json json = Json::object();
  if (thresholds.min) json["min"] = thresholds.min->bits_per_second;
  if (thresholds.site_floor) json["site_floor"] = thresholds.site_floor->bits_per_second;
  if (thresholds.min_per_rail) json["min_per_rail"] = thresholds.min_per_rail->bits_per_second;
  if (thresholds.min_per_pair) json["min_per_pair"] = thresholds.min_per_pair->bits_per_second;
  if (thresholds.min_fraction) json["min_fraction"] = *thresholds.min_fraction;
  if (thresholds.min_fraction_per_rail) json["min_fraction_per_rail"] = *thresholds.min_fraction_per_rail;
  if (thresholds.nominal) json["nominal"] = thresholds.nominal->bits_per_second;
  if (!thresholds.transport.empty()) json["transport"] = thresholds.transport;
  if (!thresholds.unattainable.empty()) json["unattainable"] = thresholds.unattainable;
  return json;
}

double part_from(const Fields& fields, std::string_view key) {
  const double value = fields.finite(key);
  if (!(value > 0 && value <= 1)) throw Malformed{fmt::format("{} is no part", key)};
  return value;
}

Thresholds thresholds_from(const Json& value) {
  const Fields fields(value, "thresholds");
  Thresholds thresholds;
  if (fields.has("min")) thresholds.min = rate_from(fields, "min");
  if (fields.has("site_floor")) thresholds.site_floor = rate_from(fields, "site_floor");
  if (fields.has("min_per_rail")) thresholds.min_per_rail = rate_from(fields, "min_per_rail");
  if (fields.has("min_per_pair")) thresholds.min_per_pair = rate_from(fields, "min_per_pair");
  if (fields.has("min_fraction")) thresholds.min_fraction = part_from(fields, "min_fraction");
  if (fields.has("min_fraction_per_rail"))
    thresholds.min_fraction_per_rail = part_from(fields, "min_fraction_per_rail");
  if (fields.has("nominal")) thresholds.nominal = rate_from(fields, "nominal");
  if (fields.has("transport")) thresholds.transport = fields.text("transport", kMaxName);
  constexpr std::size_t kMaxUnattainable = 3;
  if (fields.has("unattainable"))
    thresholds.unattainable = read_list(fields.array("unattainable", kMaxUnattainable), text_from);
  return thresholds;
}

}  // namespace

Json to_json(const Plan& plan) {
  return {{"nodes", list_of(plan.nodes, [](const NodePlan& node) { return write(node); })},
          {"thresholds", write(plan.thresholds)},
          {"weights", netcheck::to_json(plan.weights)},
          {"op", netcheck::name(plan.op)},
          {"type", netcheck::name(plan.type)},
          {"algorithm", plan.algorithm},
          {"slice", plan.slice.count()},
          {"budget", plan.budget.count()},
          {"group_size", plan.group_size},
          {"teaming", name(plan.teaming)},
          {"max_world", plan.max_world},
          {"forming", plan.forming.count()},
          {"max_bytes", plan.max_bytes},
          {"seed", plan.seed}};
}

Plan plan_from_json(const Json& value) {
  const Fields fields(value, "plan");
  Plan plan;
  plan.nodes = read_list(fields.array("nodes", kMaxNodes), node_from);
  plan.thresholds = thresholds_from(fields.object("thresholds"));
  plan.weights = weights_from_json(fields.object("weights"));
  const auto op = parse_op(fields.text("op", kMaxName));
  if (!op || *op == Op::transfer) throw Malformed{"plan: no such operation for a gate"};
  plan.op = *op;
  const auto type = parse_type(fields.text("type", kMaxName));
  if (!type) throw Malformed{describe(type.error())};
  plan.type = *type;
  plan.algorithm = fields.text("algorithm", kMaxName);
  plan.slice = time_from(fields, "slice");
  plan.budget = time_from(fields, "budget");
  plan.group_size = fields.u32("group_size");
  // Records of before there were teams over lanes have none of these.
  if (fields.has("teaming")) plan.teaming = word_of(fields, "teaming", kTeamings);
  if (fields.has("max_world")) plan.max_world = fields.u32("max_world");
  if (fields.has("forming")) plan.forming = time_from(fields, "forming");
  plan.max_bytes = fields.count("max_bytes", UINT64_MAX);
  plan.seed = fields.count("seed", UINT64_MAX);
  return plan;
}

Json to_json(const History& history) {
  Json json{
      {"done", list_of(history.done, [](const Done& done) { return write(done); })},
      {"missing", list_of(history.missing, [](const Missing& missing) {
         return Json{{"node", missing.node}, {"phase", name(missing.phase)}, {"detail", missing.detail}};
       })}};
  if (history.refusal)
    json["refusal"] = {{"phase", name(history.refusal->phase)}, {"why", history.refusal->why}};
  return json;
}

History history_from_json(const Json& value, const Plan& plan) {
  const Fields fields(value, "history");
  History history;
  Formed formed;
  std::set<std::uint32_t> batch_ids;
  for (const Json& entry : fields.array("done", kMaxDone))
    history.done.push_back(done_from(entry, plan, formed, batch_ids));
  for (const Json& entry : fields.array("missing", kMaxNodes)) {
    const Fields missing(entry, "missing");
    if (plan.nodes.empty()) throw Malformed{"missing: the plan has no nodes"};
    history.missing.push_back({.node = missing.u32("node", static_cast<std::uint32_t>(plan.nodes.size() - 1)),
                               .phase = word_of(missing, "phase", kPhases),
                               .detail = missing.text("detail", kMaxDetail)});
  }
  if (fields.has("refusal")) {
    const Fields refusal(fields.object("refusal"), "refusal");
    history.refusal = Refusal{word_of(refusal, "phase", kPhases), refusal.text("why", kMaxDetail)};
  }
  return history;
}

}  // namespace netcheck::judge
