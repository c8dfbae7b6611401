// Names, sizes and strict JSON of the measuring vocabulary. Pure. Used by every process of a check, as root
// in the supervisor (which trusts no sample) and as the probe user elsewhere.
#include "measure/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "contract/job.h"
#include "contract/wire.h"

namespace netcheck {
namespace {

// Bounds of what another process may say. 65,536 ranks: kMaxNodes nodes of four lanes, far above a group of
// eight; 4,096 iterations: 32 KiB of samples per rank; 1 TiB: above any accelerator's memory.
constexpr std::uint32_t kMaxRanks = 65'536;
constexpr std::uint32_t kMaxIterations = 4'096;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40U;
constexpr std::uint64_t kMaxOthers = std::uint64_t{1} << 50U;  // 1.6 Tb/s for more than an hour
constexpr std::size_t kMaxAlgorithm = 32;                      // the longest name in use is "doubling"

constexpr std::array kOps = {
    std::pair{Op::all_reduce, std::string_view("all_reduce")},
    std::pair{Op::all_gather, std::string_view("all_gather")},
    std::pair{Op::reduce_scatter, std::string_view("reduce_scatter")},
    std::pair{Op::alltoall, std::string_view("alltoall")},
    std::pair{Op::broadcast, std::string_view("broadcast")},
    std::pair{Op::reduce, std::string_view("reduce")},
    std::pair{Op::gather, std::string_view("gather")},
    std::pair{Op::scatter, std::string_view("scatter")},
    std::pair{Op::transfer, std::string_view("transfer")},
};
constexpr std::array kTypes = {
    std::pair{Type::u8, std::string_view("u8")},
    std::pair{Type::i32, std::string_view("i32")},
    std::pair{Type::f32, std::string_view("f32")},
    std::pair{Type::bf16, std::string_view("bf16")},
};

constexpr std::array kLacks = {
    std::pair{Lack::nothing, std::string_view("nothing")},
    std::pair{Lack::tcp_memory, std::string_view("tcp_memory")},
    std::pair{Lack::neighbours, std::string_view("neighbours")},
    std::pair{Lack::connections, std::string_view("connections")},
};

template <typename Table, typename Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [candidate, text] : table)
    if (candidate == value) return text;
  return "unknown";
}

template <typename Value, typename Table>
Result<Value> parse_in(const Table& table, std::string_view what, std::string_view text) {
  std::string known;
  for (const auto& [candidate, label] : table) {
    if (label == text) return candidate;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", label);
  }
  return fail(fmt::format("read the {}", what), printable(text, 64), "no such " + std::string(what),
              "one of " + known);
}

/// Array elements have no key, so Fields cannot read them: the same strictness, by hand.
std::uint64_t element(const Json& value, std::uint64_t max, std::string_view what) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<std::int64_t>() < 0))
    throw Malformed{fmt::format("{}: not an unsigned integer", what)};
  const auto number = value.get<std::uint64_t>();
  if (number > max) throw Malformed{fmt::format("{}: {} is above {}", what, number, max)};
  return number;
}

std::pair<std::uint32_t, std::uint32_t> pair_of(const Json& value, std::uint32_t max_first,
                                                std::uint32_t max_second, std::string_view what) {
  if (!value.is_array() || value.size() != 2) throw Malformed{fmt::format("{}: not a pair of numbers", what)};
  return {static_cast<std::uint32_t>(element(value[0], max_first, what)),
          static_cast<std::uint32_t>(element(value[1], max_second, what))};
}

template <typename Value>
bool has_repeats(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

std::vector<Edge> edges_from(const Json& list) {
  std::vector<Edge> edges;
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> to;
  for (const auto& value : list) {
    const auto [sender, receiver] = pair_of(value, kMaxRanks - 1, kMaxRanks - 1, "batch edge");
    if (sender == receiver) throw Malformed{fmt::format("batch edge: rank {} to itself", sender)};
    edges.push_back({sender, receiver});
    from.push_back(sender);
    to.push_back(receiver);
  }
  if (has_repeats(from) || has_repeats(to))
    throw Malformed{"batch edges: two edges out of one rank, or two into one"};
  return edges;
}

template <typename Value, typename Parse>
Value named(const Fields& fields, std::string_view key, Parse parse) {
  const Result<Value> value = parse(fields.text(key, 32));
  if (!value) throw Malformed{describe(value.error())};
  return *value;
}

}  // namespace

std::string_view name(Op op) {
  return name_in(kOps, op);
}
std::string_view name(Type type) {
  return name_in(kTypes, type);
}
Result<Op> parse_op(std::string_view text) {
  return parse_in<Op>(kOps, "operation", text);
}
Result<Type> parse_type(std::string_view text) {
  return parse_in<Type>(kTypes, "element type", text);
}
std::string_view name(Lack lack) {
  return name_in(kLacks, lack);
}
Result<Lack> parse_lack(std::string_view text) {
  return parse_in<Lack>(kLacks, "lack", text);
}

std::size_t size_of(Type type) {
  switch (type) {
    case Type::u8:
      return 1;
    case Type::bf16:
      return 2;
    case Type::i32:
    case Type::f32:
      return 4;
  }
  return 1;
}

Json to_json(const Team& team) {
  Json ranks = Json::array();
  for (const auto& rank : team.ranks)
    ranks.push_back(Json::array({rank.node, rank.lane}));
  return {{"id", team.id}, {"ranks", std::move(ranks)}};
}

Json to_json(const Batch& batch) {
  Json edges = Json::array();
  for (const auto& edge : batch.edges)
    edges.push_back(Json::array({edge.from, edge.to}));
  return {{"id", batch.id},
          {"team", batch.team},
          {"root", batch.root},
          {"op", name(batch.op)},
          {"type", name(batch.type)},
          {"bytes", batch.bytes},
          {"warmup", batch.warmup},
          {"iterations", batch.iterations},
          {"edges", std::move(edges)},
          {"algorithm", batch.algorithm},
          {"seed", batch.seed},
          {"verify", batch.verify}};
}

Json to_json(const Sample& sample) {
  Json done = Json::array();
  for (const auto& time : sample.done)
    done.push_back(time.count());
  Json json{{"rank", sample.rank},
            {"done", std::move(done)},
            {"received", sample.received},
            {"wrong", sample.wrong},
            {"kept", sample.kept.count()},
            {"others_in", sample.others_in},
            {"others_out", sample.others_out}};
  if (sample.lack != Lack::nothing) json["lack"] = name(sample.lack);
  return json;
}

Team team_from_json(const Json& value) {
  const Fields fields(value, "team");
  Team team;
  team.id = fields.u32("id");
  for (const auto& entry : fields.array("ranks", kMaxRanks)) {
    const auto [node, lane] = pair_of(entry, kMaxNodes - 1, UINT16_MAX, "team rank");
    team.ranks.push_back({node, static_cast<std::uint16_t>(lane)});
  }
  if (has_repeats(team.ranks)) throw Malformed{"team: a rank appears twice"};
  return team;
}

Batch batch_from_json(const Json& value) {
  const Fields fields(value, "batch");
  Batch batch;
  batch.id = fields.u32("id");
  batch.team = fields.u32("team");
  batch.root = fields.u32("root", kMaxRanks - 1);
  batch.op = named<Op>(fields, "op", parse_op);
  batch.type = named<Type>(fields, "type", parse_type);
  batch.bytes = fields.count("bytes", kMaxBytes);
  batch.warmup = fields.u32("warmup", kMaxIterations);
  batch.iterations = fields.u32("iterations", kMaxIterations);
  batch.edges = edges_from(fields.array("edges", kMaxRanks));
  if (!batch.edges.empty() && batch.op != Op::transfer)
    throw Malformed{fmt::format("batch: edges belong to transfer, not to {}", name(batch.op))};
  batch.algorithm = fields.text("algorithm", kMaxAlgorithm);
  batch.seed = fields.count("seed", UINT64_MAX);
  batch.verify = fields.flag("verify");
  return batch;
}

Sample sample_from_json(const Json& value) {
  const Fields fields(value, "sample");
  Sample sample;
  sample.rank = fields.u32("rank", kMaxRanks - 1);
  for (const auto& entry : fields.array("done", kMaxIterations)) {
    const Ns time{static_cast<std::int64_t>(element(entry, INT64_MAX, "sample time"))};
    if (!sample.done.empty() && time < sample.done.back()) throw Malformed{"sample: completion times fall"};
    sample.done.push_back(time);
  }
  sample.received = fields.count("received", kMaxBytes * 2 * kMaxIterations);  // warm-up and timed
  sample.wrong = fields.count("wrong", kMaxBytes);
  sample.kept = fields.duration("kept");
  sample.others_in = fields.count("others_in", kMaxOthers);
  sample.others_out = fields.count("others_out", kMaxOthers);
  if (fields.has("lack")) sample.lack = named<Lack>(fields, "lack", parse_lack);
  return sample;
}

}  // namespace netcheck
