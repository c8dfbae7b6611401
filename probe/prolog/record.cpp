// Record and notice as files. As root.
#include "prolog/record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "contract/wire.h"
#include "judge/line.h"
#include "policy/show.h"
#include "prolog/folder.h"

namespace netcheck::prolog {
namespace {

constexpr mode_t kOpenFolder = 0755, kPrivateFolder = 0700;
constexpr mode_t kRecordMode = 0600;
constexpr std::size_t kMaxNodeBytes = 64;  // HOST_NAME_MAX
constexpr const char* kRecords = "records";
constexpr const char* kNotices = "notices";

Json nanoseconds(const std::map<std::string, Ns>& phases) {
  Json value = Json::object();
  for (const auto& [phase, took] : phases)
    value[phase] = took.count();
  return value;
}

Result<Folder> records_of(const Record& record) {
  auto base = Folder::open(record.assignment.policy.run_directory, kOpenFolder);
  if (!base) return base;
  return base->inner(kRecords, kPrivateFolder);
}

// The node whose record this is; nullopt: it does not say, or is longer than any that has just begun.
std::optional<std::string> node_of(const Folder& records, const std::string& name) {
  constexpr std::size_t kMaxBegun = 1u << 20;  // the settings, with an exception for every node
  const auto text = records.read(name, kMaxBegun);
  if (!text) return std::nullopt;
  const Json record = Json::parse(*text, nullptr, false);
  if (!record.is_object() || !record.contains("node") || !record.at("node").is_string()) return std::nullopt;
  return record.at("node").get<std::string>();
}

}  // namespace

Json to_json(const Record& record) {
  const Roster& roster = record.job.roster;
  Json value = {{"schema", kRecordSchema},
                {"version", NETCHECK_VERSION},
                {"cluster", roster.run.cluster},
                {"job", roster.run.job},
                {"restart", roster.run.restart},
                {"node", roster.nodes.empty() ? "" : roster.nodes.at(roster.self)},
                {"leader", roster.self == 0},
                {"nodes", roster.nodes},
                {"uid", record.job.uid},
                {"partition", record.job.partition},
                {"account", record.job.account},
                {"unix_time", record.unix_time},
                {"request", printable(record.request)},
                {"policy", session::to_json(record.assignment).at("policy")},
                {"settings", settings_to_json(record.assignment.policy)},
                {"sources", record.assignment.policy.sources},
                {"agreement", record.assignment.agreement},
                {"verdict", record.verdict},
                {"line", record.line},
                {"remarks", record.remarks},
                {"action", record.action},
                {"action_result", record.action_result},
                {"time", record.time.count()},
                {"took", record.took.count()},
                {"phases", nanoseconds(record.phases)}};
  if (record.report) value["report"] = session::to_json(*record.report);
  const judge::Plan none;
  if (record.judged)
    value["judged"] = judge::to_json(*record.judged, record.report ? record.report->plan : none);
  return value;
}

std::string record_name(const JobRun& run) {
  return fmt::format("{}-{}-{}.json", run.cluster, run.job, run.restart);
}

std::string record_path(const std::string& run_directory, const JobRun& run) {
  return fmt::format("{}/{}/{}", run_directory, kRecords, record_name(run));
}

// What is no UTF-8 is replaced: a record must not be lost to one bad byte.
std::string text_of(const Record& record) {
  return to_json(record).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Begun> begin_record(const Record& record) {
  auto records = records_of(record);
  if (!records) return tl::unexpected(records.error());
  const std::string name = record_name(record.job.roster.run), text = text_of(record);
  const Folder::Owner ours{::geteuid(), ::getegid()};
  auto first = records->create(name, text, kRecordMode, ours);
  if (!first) return tl::unexpected(first.error());
  if (*first) return Begun{};
  const auto written = records->written_at(name);
  if (written && std::abs(std::time(nullptr) - *written) < kSameRunSeconds) {
    const std::string own = record.job.roster.nodes.at(record.job.roster.self);
    const std::string node = node_of(*records, name).value_or(own);
    if (node != own) return Begun{Begun::Whose::another_nodes, printable(node, kMaxNodeBytes)};
    return Begun{Begun::Whose::this_runs, own};
  }
  records->remove(name);
  first = records->create(name, text, kRecordMode, ours);
  if (!first) return tl::unexpected(first.error());
  return Begun{*first ? Begun::Whose::first : Begun::Whose::this_runs, {}};
}

Result<std::string> write_record(const Record& record) {
  auto records = records_of(record);
  if (!records) return tl::unexpected(records.error());
  const std::string text = text_of(record);
  const std::string name = record_name(record.job.roster.run);
  // Room is made first, so that a full folder does not stay full; then for the new one.
  records->rotate(kMaxRecords - 1, kMaxRecordBytes - std::min<std::uint64_t>(text.size(), kMaxRecordBytes),
                  name);
  if (auto written = records->write(name, text, kRecordMode, {::geteuid(), ::getegid()}); !written)
    return tl::unexpected(written.error());
  return records->path() + "/" + name;
}

Result<void> write_notice_file(const std::string& run_directory, const Notice& notice) {
  auto base = Folder::open(run_directory, kOpenFolder);
  if (!base) return tl::unexpected(base.error());
  auto notices = base->inner(kNotices, kOpenFolder);
  if (!notices) return tl::unexpected(notices.error());
  const std::string name = std::to_string(notice.run.job);
  notices->rotate(kMaxRecords - 1, kMaxRecords * kNoticeMaxBytes, name);
  return notices->write(name, write_notice(notice), 0400, {::geteuid(), ::getegid()});
}

void remove_notice(const std::string& run_directory, std::uint32_t job) noexcept {
  try {
    auto base = Folder::open(run_directory, kOpenFolder);
    if (!base) return;
    if (auto notices = base->inner(kNotices, kOpenFolder)) notices->remove(std::to_string(job));
  } catch (...) {  // out of memory: the notice is bound to the run all the same
    return;
  }
}

}  // namespace netcheck::prolog
