// The assignment as JSON, and back. Written by the supervisor as root, read by the probe as the probe user.
#include "session/assignment.h"

#include <set>
#include <utility>

#include "contract/wire.h"

namespace netcheck::session {
namespace {

constexpr std::size_t kMaxText = 4'096;    // paths, names
constexpr std::size_t kMaxList = 1'024;    // globs, exceptions
constexpr std::size_t kMaxNodeName = 255;  // DNS

void write_rate(Json& value, const char* key, const std::optional<Rate>& rate) {
  if (rate) value[key] = rate->bits_per_second;
}
std::optional<Rate> read_rate(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  const double bits_per_second = fields.finite(key);
  if (bits_per_second <= 0) throw Malformed{std::string(key) + " is not a rate"};
  return Rate{bits_per_second};
}

void write_part(Json& value, const char* key, const std::optional<double>& part) {
  if (part) value[key] = *part;
}
std::optional<double> read_part(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  const double part = fields.finite(key);
  if (!(part > 0 && part <= 1)) throw Malformed{std::string(key) + " is not a part"};
  return part;
}

std::vector<std::string> read_texts(const Fields& fields, const char* key, std::size_t max_size,
                                    std::size_t max_bytes) {
  std::vector<std::string> texts;
  for (const Json& text : fields.array(key, max_size)) {
    if (!text.is_string() || text.get_ref<const std::string&>().size() > max_bytes)
      throw Malformed{std::string(key) + " holds something that is not a short text"};
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::uint16_t read_port(const Fields& fields, const char* key) {
  return static_cast<std::uint16_t>(fields.u32(key, UINT16_MAX));
}

void write_count(Json& value, const char* key, const std::optional<std::uint32_t>& count) {
  if (count) value[key] = *count;
}
std::optional<std::uint32_t> read_count(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  return fields.u32(key);
}

Json write(const Policy& policy) {
  // Sources stay with the supervisor: they are for its record.
  Json value = {{"op", policy.op},
                {"time", policy.time.count()},
                {"max_time", policy.max_time.count()},
                {"rendezvous", policy.rendezvous.count()},
                {"slice", policy.slice.count()},
                {"group_size", policy.group_size},
                {"probe_user", policy.probe_user},
                {"module_directory", policy.module_directory},
                {"memory", policy.memory},
                {"first_port", policy.first_port},
                {"last_port", policy.last_port},
                {"address", policy.address},
                {"addresses", policy.addresses},
                {"credential", policy.credential},
                {"key_file", policy.key_file},
                {"munge_socket", policy.munge_socket},
                {"fabric", policy.fabric},
                {"devices", policy.devices},
                {"exclude", policy.exclude},
                {"nccl_library", policy.nccl_library},
                {"nccl_driver", policy.nccl_driver},
                {"nccl_watcher", policy.nccl_watcher},
                {"nccl_env", policy.nccl_env},
                {"nccl_algorithm", policy.nccl_algorithm},
                {"max_world", policy.max_world},
                {"mig", name(policy.mig)},
                {"busy", name(policy.busy)},
                {"require_transport", policy.require_transport},
                {"run_directory", policy.run_directory},
                {"annotate", policy.annotate}};
  write_rate(value, "min", policy.min);
  write_rate(value, "site_min", policy.site_min);
  write_rate(value, "min_per_rail", policy.min_per_rail);
  write_rate(value, "min_per_pair", policy.min_per_pair);
  write_rate(value, "nominal", policy.nominal);
  write_part(value, "min_fraction", policy.min_fraction);
  write_part(value, "min_fraction_per_rail", policy.min_fraction_per_rail);
  write_count(value, "gpus", policy.gpus);
  write_count(value, "ports", policy.ports);
  value["nccl_topology"] = policy.nccl_topology;
  value["findings"] = netcheck::to_json(policy.findings);
  return value;
}

OnGpu read_on_gpu(const Fields& fields, const char* key) {
  const std::string word = fields.text(key, kMaxText);
  for (const OnGpu action : {OnGpu::refuse, OnGpu::measure})
    if (word == name(action)) return action;
  throw Malformed{std::string(key) + ": no such word"};
}

void read_nccl(const Fields& fields, Policy& policy) {
  policy.nccl_library = fields.text("nccl_library", kMaxText);
  policy.nccl_driver = fields.text("nccl_driver", kMaxText);
  policy.nccl_watcher = fields.text("nccl_watcher", kMaxText);
  for (const auto& [variable, setting] : fields.object("nccl_env").items()) {
    if (!setting.is_string()) throw Malformed{"nccl_env holds something that is not a text"};
    policy.nccl_env[variable] = setting.get<std::string>();
  }
  policy.nccl_algorithm = fields.text("nccl_algorithm", kMaxText);
  policy.max_world = fields.u32("max_world");
  policy.mig = read_on_gpu(fields, "mig");
  policy.busy = read_on_gpu(fields, "busy");
  policy.require_transport = fields.text("require_transport", kMaxText);
}

Policy read_policy(const Json& value) {
  const Fields fields(value, "policy");
  Policy policy;
  policy.min = read_rate(fields, "min");
  policy.site_min = read_rate(fields, "site_min");
  policy.min_per_rail = read_rate(fields, "min_per_rail");
  policy.min_per_pair = read_rate(fields, "min_per_pair");
  policy.nominal = read_rate(fields, "nominal");
  policy.min_fraction = read_part(fields, "min_fraction");
  policy.min_fraction_per_rail = read_part(fields, "min_fraction_per_rail");
  policy.findings = weights_from_json(fields.object("findings"));
  policy.gpus = read_count(fields, "gpus");
  policy.ports = read_count(fields, "ports");
  policy.nccl_topology = fields.text("nccl_topology", kMaxText);
  policy.op = fields.text("op", kMaxText);
  policy.time = fields.duration("time");
  policy.max_time = fields.duration("max_time");
  policy.rendezvous = fields.duration("rendezvous");
  policy.slice = fields.duration("slice");
  policy.group_size = fields.u32("group_size");
  policy.probe_user = fields.text("probe_user", kMaxText);
  policy.module_directory = fields.text("module_directory", kMaxText);
  policy.memory = fields.count("memory", UINT64_MAX);
  policy.first_port = read_port(fields, "first_port");
  policy.last_port = read_port(fields, "last_port");
  policy.address = fields.text("address", kMaxText);
  for (const auto& [node, address] : fields.object("addresses").items()) {
    if (!address.is_string()) throw Malformed{"addresses holds something that is not a text"};
    policy.addresses[node] = address.get<std::string>();
  }
  policy.credential = fields.text("credential", kMaxText);
  policy.key_file = fields.text("key_file", kMaxText);
  policy.munge_socket = fields.text("munge_socket", kMaxText);
  policy.fabric = fields.text("fabric", kMaxText);
  policy.devices = read_texts(fields, "devices", kMaxList, kMaxText);
  policy.exclude = read_texts(fields, "exclude", kMaxList, kMaxText);
  read_nccl(fields, policy);
  policy.run_directory = fields.text("run_directory", kMaxText);
  policy.annotate = fields.flag("annotate");
  return policy;
}

Roster read_roster(const Fields& fields) {
  Roster roster;
  roster.run = {.cluster = fields.text("cluster", kMaxText),
                .job = fields.u32("job"),
                .restart = fields.u32("restart")};
  roster.nodes = read_texts(fields, "nodes", kMaxNodes, kMaxNodeName);
  if (roster.nodes.empty()) throw Malformed{"no nodes"};
  if (std::set(roster.nodes.begin(), roster.nodes.end()).size() != roster.nodes.size())
    throw Malformed{"a node is named twice"};
  roster.self = fields.u32("self", static_cast<std::uint32_t>(roster.nodes.size() - 1));
  return roster;
}

}  // namespace

Json to_json(const Assignment& assignment) {
  const Roster& roster = assignment.roster;
  return {{"cluster", roster.run.cluster},
          {"job", roster.run.job},
          {"restart", roster.run.restart},
          {"nodes", roster.nodes},
          {"self", roster.self},
          {"policy", write(assignment.policy)},
          {"deadline", assignment.deadline.time_since_epoch().count()},
          {"rendezvous_deadline", assignment.rendezvous_deadline.time_since_epoch().count()},
          {"not_measured", assignment.not_measured},
          {"agreement", assignment.agreement},
          {"declined", assignment.declined},
          {"gpus", assignment.gpus}};
}

Assignment assignment_from_json(const Json& value) {
  const Fields fields(value, "assignment");
  return {.roster = read_roster(fields),
          .policy = read_policy(fields.object("policy")),
          .deadline = Time(fields.duration("deadline")),
          .rendezvous_deadline = Time(fields.duration("rendezvous_deadline")),
          .not_measured = fields.text("not_measured", kMaxText),
          .agreement = fields.text("agreement", kMaxText),
          .declined = fields.text("declined", kMaxText),
          .gpus = read_texts(fields, "gpus", kMaxList, kMaxNodeName)};
}

}  // namespace netcheck::session
