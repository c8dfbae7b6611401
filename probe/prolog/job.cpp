// The prolog's environment → which job this is. As root. slurmd builds these variables itself and a job
// cannot set them (SPANK_* and comments, which it can, are not read); each is checked all the same.
#include "prolog/job.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace netcheck::prolog {
namespace {

// A NodeList of 16,384 names without any ranges: 64 bytes each (HOST_NAME_MAX).
constexpr std::size_t kMaxNodeListBytes = 1u << 20;
constexpr std::size_t kMaxNameBytes = 64;  // a cluster's, as contract/job.h says; a host's is at most this

using Get = std::function<const char*(const char*)>;

constexpr const char* kAttempted = "read the job from";

Result<std::string> value_of(const Get& get, const char* name, std::size_t max_bytes) {
  const char* value = get(name);
  if (value == nullptr)
    return fail(kAttempted, name, "it is not set", "run from Slurm's prolog, where slurmd sets it");
  if (*value == '\0') return fail(kAttempted, name, "it is empty");
  if (::strnlen(value, max_bytes + 1) > max_bytes)
    return fail(kAttempted, name, "it is longer than " + std::to_string(max_bytes) + " bytes");
  return std::string(value);
}

Result<std::uint32_t> number_of(const Get& get, const char* name) {
  auto text = value_of(get, name, 32);
  if (!text) return tl::unexpected(text.error());
  std::uint32_t value = 0;
  const char* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || at != end)
    return fail(kAttempted, name, "'" + printable(*text, 40) + "' is not a number from 0 to 4294967295");
  return value;
}

bool plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '.' || c == '-';
  });
}

Result<std::string> name_of(const Get& get, const char* name) {
  auto text = value_of(get, name, kMaxNameBytes);
  if (text && !plain(*text))
    return fail(kAttempted, name, "'" + printable(*text) + "' has characters outside A-Z a-z 0-9 _ . -");
  return text;
}

Result<JobRun> run_of(const Get& get) {
  JobRun run;
  auto job = number_of(get, "SLURM_JOB_ID");
  if (!job) return tl::unexpected(job.error());
  if (*job == 0) return fail(kAttempted, "SLURM_JOB_ID", "no job has the id 0");
  run.job = *job;
  auto cluster = name_of(get, "SLURM_CLUSTER_NAME");
  if (!cluster) return tl::unexpected(cluster.error());
  run.cluster = std::move(*cluster);
  if (get("SLURM_JOB_RESTART_COUNT") != nullptr) {
    auto restart = number_of(get, "SLURM_JOB_RESTART_COUNT");
    if (!restart) return tl::unexpected(restart.error());
    run.restart = *restart;
  }
  return run;
}

Result<Roster> roster_of(const Get& get) {
  Roster roster;
  auto run = run_of(get);
  if (!run) return tl::unexpected(run.error());
  roster.run = std::move(*run);
  // The first is set by every version of Slurm, the second only from 23.02 on.
  const char* list_name = get("SLURM_NODELIST") != nullptr ? "SLURM_NODELIST" : "SLURM_JOB_NODELIST";
  auto list = value_of(get, list_name, kMaxNodeListBytes);
  if (!list) return tl::unexpected(list.error());
  auto nodes = expand_node_list(*list);
  if (!nodes) return tl::unexpected(nodes.error());
  roster.nodes = std::move(*nodes);
  auto self = name_of(get, "SLURMD_NODENAME");
  if (!self) return tl::unexpected(self.error());
  const auto at = std::find(roster.nodes.begin(), roster.nodes.end(), *self);
  if (at == roster.nodes.end())
    return fail(kAttempted, "SLURMD_NODENAME",
                *self + " is not among the job's nodes, " + fold_node_list(roster.nodes));
  roster.self = static_cast<std::uint32_t>(at - roster.nodes.begin());
  std::vector<std::string> sorted = roster.nodes;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return fail(kAttempted, list_name, *twice + " is in it twice");
  return roster;
}

// A node of today has 16 GPUs; Slurm itself takes 1,024 of a kind.
constexpr std::uint32_t kMaxGpuNumber = 1'023;
constexpr std::size_t kMaxGpuListBytes = 8'192;
constexpr std::string_view kGpuPrefix = "gpu:";

std::optional<std::uint32_t> gpu_number(std::string_view digits) {
  std::uint32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc() || at != end || value > kMaxGpuNumber) return std::nullopt;
  return value;
}

// "3", "0-3"
std::optional<std::pair<std::uint32_t, std::uint32_t>> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = gpu_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : gpu_number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

Result<std::vector<std::string>> gpus_from(std::string_view list) {
  const auto refuse = [&](std::string reason, std::string remedy = {}) {
    return fail(kAttempted, "SLURM_JOB_GPUS", std::move(reason), std::move(remedy));
  };
  const auto no_list = [&] { return refuse("'" + printable(list, 64) + "' is no list of GPUs"); };
  if (list.empty()) return std::vector<std::string>();
  if (list.size() > kMaxGpuListBytes) return refuse("it is too long");
  std::set<std::uint32_t> numbers;
  for (std::string_view rest = list; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view piece = rest.substr(0, comma);
    if (comma + 1 == rest.size()) return no_list();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (piece.starts_with("MIG-"))
      return refuse(
          "the job has slices of GPUs (" + printable(piece, 48) + "), on which NCCL is not measured",
          "[fabric] fabric = \"ucx\" measures such jobs without their GPUs");
    if (piece.starts_with(kGpuPrefix)) piece.remove_prefix(kGpuPrefix.size());
    const auto range = range_of(piece);
    if (!range) return no_list();
    for (std::uint32_t number = range->first; number <= range->second; ++number)
      numbers.insert(number);
  }
  std::vector<std::string> gpus;
  gpus.reserve(numbers.size());
  for (const std::uint32_t number : numbers)
    gpus.push_back(std::string(kGpuPrefix) + std::to_string(number));
  return gpus;
}

Result<Job> job_from_environment(const Get& get) {
  Job job;
  auto roster = roster_of(get);
  if (!roster) return tl::unexpected(roster.error());
  job.roster = std::move(*roster);
  auto uid = number_of(get, "SLURM_JOB_UID");
  if (!uid) return tl::unexpected(uid.error());
  auto gid = number_of(get, "SLURM_JOB_GID");
  if (!gid) return tl::unexpected(gid.error());
  // 2^32-1 is "no id" to the kernel: chown would leave the owner as it is.
  constexpr std::uint32_t kNoId = std::numeric_limits<std::uint32_t>::max();
  if (*uid == kNoId) return fail(kAttempted, "SLURM_JOB_UID", "4294967295 is no user");
  if (*gid == kNoId) return fail(kAttempted, "SLURM_JOB_GID", "4294967295 is no group");
  job.uid = *uid;
  job.gid = *gid;
  if (const char* partition = get("SLURM_JOB_PARTITION")) job.partition = printable(partition, 128);
  if (const char* account = get("SLURM_JOB_ACCOUNT")) job.account = printable(account, 128);
  if (const char* user = get("SLURM_JOB_USER")) job.user = printable(user, 128);
  if (const char* gpus = get("SLURM_JOB_GPUS")) job.gpus = gpus_from(gpus);
  return job;
}

}  // namespace netcheck::prolog
