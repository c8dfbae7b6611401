#include "main/replay.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "contract/wire.h"
#include "judge/job_limit.h"
#include "judge/line.h"
#include "judge/verdict.h"
#include "policy/policy.h"
#include "prolog/premises.h"
#include "prolog/record.h"
#include "session/plan.h"
#include "session/report.h"

namespace netcheck {
namespace {

constexpr std::size_t kMaxNode = 64;         // HOST_NAME_MAX
constexpr std::size_t kMaxRequest = 16'384;  // longer than any that Slurm passes on and netcheck reads
constexpr std::size_t kMaxNodes = 65'536;    // of one job: more than any cluster has

struct Judged {
  judge::Verdict verdict;
  std::string line;
};

// The program does not read the site's file for this: a record may come from anywhere.
constexpr const char* kWhere =
    "records lie in /run/netcheck/records, or below the site's run_directory, on each node of the job; the "
    "samples "
    "are in the first node's";

tl::unexpected<Error> not_there(const std::string& path) {
  const bool number = !path.empty() && path.find_first_not_of("0123456789") == std::string::npos;
  if (!number) return fail("read the record", path, "there is no such file", kWhere);
  return fail("read the record", path, "this is no file, and replay wants the path of one",
              fmt::format("on the job's first node look for /run/netcheck/records/*-{}-*.json", path));
}

Result<Json> read_json(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) return not_there(path);
  if (kind != std::filesystem::file_type::regular && !error)
    return fail("read the record", path, "it is no regular file");  // a pipe would be waited for
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("read the record", path, "it cannot be opened", "records are root's: try sudo");
  // Of a file that is too large as much as shows it: from_json_text then says so.
  constexpr std::size_t kMost = 2 * session::kReportMaxBytes, kChunk = 1u << 16;
  std::string text;
  while (file && text.size() <= kMost) {
    const std::size_t had = text.size();
    text.resize(had + kChunk);
    file.read(text.data() + had, kChunk);
    text.resize(had + static_cast<std::size_t>(file.gcount()));
  }
  return from_json_text(text, path, kMost);
}

// Of a record that somebody may have written by hand.
std::string first_node(const Fields& record) {
  const Json& nodes = record.array("nodes", kMaxNodes);
  return nodes.empty() || !nodes.front().is_string() ? "it"
                                                     : printable(nodes.front().get<std::string>(), kMaxNode);
}

/// What the site's file asks of this job, its user's request included. Rules by GPU are left out: a record
/// does not tell their model.
Result<Policy> policy_of(const Fields& record, const judge::Plan& plan, const std::string& config) {
  std::error_code error;
  if (!std::filesystem::exists(config, error) && !error)
    return fail("read the configuration", config, "there is no such file");
  const auto site = prolog::read_site(config);
  if (!site) return tl::unexpected(site.error());
  const auto request = parse_request(record.text("request", kMaxRequest));
  if (!request) return tl::unexpected(request.error());
  JobKind kind{.partition = record.text("partition", kMaxNode),
               .account = record.text("account", kMaxNode),
               .nodes = static_cast<std::uint32_t>(plan.nodes.size()),
               .gpu = std::nullopt,
               .hardware = std::nullopt};
  if (!plan.nodes.empty()) kind.hardware = plan.nodes.front().machine;
  auto policy = resolve(*site, kind);
  if (!policy) return tl::unexpected(policy.error());
  std::vector<Wish> wishes;
  return apply(std::move(*policy), *request, wishes);
}

Result<Judged> judge_again(const std::string& path, const std::optional<std::string>& config) {
  const auto value = read_json(path);
  if (!value) return tl::unexpected(value.error());
  try {
    const Fields record(*value, "record");
    if (const auto schema = record.u32("schema"); schema != prolog::kRecordSchema)
      return fail(
          "replay", path,
          fmt::format("it is of schema {}, and this netcheck reads {}", schema, prolog::kRecordSchema),
          "use the netcheck of the version that wrote it");
    if (!record.flag("leader"))
      return fail(
          "replay", path, fmt::format("it is that of {}", record.text("node", kMaxNode)),
          fmt::format("the samples are in the record of the job's first node, on {}", first_node(record)));
    if (!record.has("report"))
      return fail("replay", path, "it holds no samples", "its line says why nothing was measured");
    const Fields report(record.object("report"), "report");
    judge::Plan plan = judge::plan_from_json(report.object("plan"));
    if (config) {
      auto policy = policy_of(record, plan, *config);
      if (!policy) return tl::unexpected(policy.error());
      policy->fabric = plan.teaming == judge::Teaming::over_lanes ? "nccl" : "ucx";  // as it was measured
      plan.thresholds = session::thresholds_of(*policy);
      plan.weights = policy->findings;
      judge::set_bars(plan);
    }
    const judge::Verdict verdict =
        judge::decide(plan, judge::history_from_json(report.object("history"), plan));
    // What was measured is judged again; how long it took is part of that.
    return Judged{verdict, judge::line(verdict, plan, record.duration(record.has("time") ? "time" : "took"))};
  } catch (const Malformed& malformed) {
    return fail("replay", path, malformed.reason);
  } catch (const Json::exception& error) {
    return fail("replay", path, error.what());
  }
}

}  // namespace

int replay(const std::string& path, const std::optional<std::string>& config) {
  const auto judged = judge_again(path, config);
  if (!judged) {
    fmt::print(stderr, "netcheck: {}\n", describe(judged.error()));
    return static_cast<int>(ExitCode::usage);
  }
  fmt::print("{}\n", judged->line);
  return static_cast<int>(judge::exit_code(judged->verdict));
}

}  // namespace netcheck
