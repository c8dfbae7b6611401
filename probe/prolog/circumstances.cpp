#include "prolog/circumstances.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "prolog/controller.h"
#include "prolog/passes.h"
#include "system/process.h"
#include "topology/inventory.h"

namespace netcheck::prolog {
namespace {

using std::chrono::seconds;

// Columns of squeue's answer; wider than any number, limit or word in them.
constexpr std::size_t kFactColumn = 24;
constexpr std::array<const char*, 3> kFactFields = {"JobID", "TimeLimit", "OverSubscribe"};

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

std::optional<std::string> share_word(std::string_view text) {
  for (const char* word : {"NO", "OK", "YES", "USER", "MCS", "TOPO"})
    if (text == word) return std::string(word);
  return std::nullopt;
}

// Whether each of "4(x3),2" is at least `wanted`.
bool has_all(std::string_view cpus_per_node, std::uint32_t wanted) {
  for (bool more = true; more;) {
    const std::size_t comma = cpus_per_node.find(',');
    const std::string_view part = cpus_per_node.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) cpus_per_node.remove_prefix(comma + 1);
    const auto cpus = whole_number(part.substr(0, part.find('(')));
    if (!cpus || *cpus < wanted) return false;
  }
  return true;
}

Ns since_boot() {
  timespec ts{};
  ::clock_gettime(CLOCK_BOOTTIME, &ts);
  return seconds(ts.tv_sec) + Ns(ts.tv_nsec);
}

}  // namespace

SlurmFacts facts_from_environment(const std::function<const char*(const char*)>& get) {
  const auto value = [&](const char* name) -> std::string_view {
    const char* text = get(name);
    return text == nullptr ? "" : text;
  };
  SlurmFacts facts;
  const auto start = whole_number(value("SLURM_JOB_START_TIME")),
             end = whole_number(value("SLURM_JOB_END_TIME"));
  // A job without a limit is given one of a year by slurmctld.
  if (start && end && *end > *start) facts.walltime = seconds(*end - *start);
  facts.share = share_word(value("SLURM_JOB_OVERSUBSCRIBE"));
  return facts;
}

std::string facts_format() {
  std::string format;
  for (const char* field : kFactFields)
    format += fmt::format("{}{}:{}", format.empty() ? "" : ",", field, kFactColumn);
  return format;
}

SlurmFacts read_facts(std::string_view text, std::uint32_t job) {
  std::optional<SlurmFacts> facts;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.size() <= 2 * kFactColumn || whole_number(without_spaces(line.substr(0, kFactColumn))) != job)
      continue;
    if (facts) return {};
    facts = SlurmFacts{parse_time_limit(without_spaces(line.substr(kFactColumn, kFactColumn))),
                       share_word(without_spaces(line.substr(2 * kFactColumn)))};
  }
  return facts.value_or(SlurmFacts{});
}

std::optional<Ns> parse_time_limit(std::string_view text) {
  if (text == "UNLIMITED") return kUnlimited;
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto value = whole_number(text.substr(0, dash));
    constexpr std::int64_t kMostDays = 36'500;
    if (!value || *value > kMostDays) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (bool more = true; more;) {
    const std::size_t colon = text.find(':');
    const auto value = whole_number(text.substr(0, colon));
    constexpr std::int64_t kMost = 1'000'000;
    if (!value || *value > kMost) return std::nullopt;
    parts.push_back(*value);
    more = colon != std::string_view::npos;
    if (more) text.remove_prefix(colon + 1);
  }
  constexpr std::int64_t kMinute = 60, kHour = 3'600, kDay = 86'400;
  if (parts.size() == 3) return seconds(days * kDay + parts[0] * kHour + parts[1] * kMinute + parts[2]);
  if (dash != std::string_view::npos) return std::nullopt;  // squeue always writes all three then
  if (parts.size() == 2) return seconds(parts[0] * kMinute + parts[1]);
  return parts.size() == 1 ? std::optional<Ns>(seconds(parts[0] * kMinute)) : std::nullopt;
}

std::optional<bool> owns_nodes(const std::optional<std::string>& share, std::string_view cpus_per_node,
                               std::uint32_t cpus_here) {
  // "USER": the neighbours, if any, are the user's own.
  if (share == "NO" || share == "USER" || share == "TOPO") return true;
  if (share != "YES" && cpus_here > 0 && has_all(cpus_per_node, cpus_here)) return true;
  if (!share) return std::nullopt;
  return false;
}

JobKind kind_of(const Job& job) {
  return {.partition = job.partition,
          .account = job.account,
          .nodes = static_cast<std::uint32_t>(job.roster.nodes.size()),
          .gpu = topology::gpu_model_of(),
          .hardware = topology::machine_of()};
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

Circumstances known_to_all(const Job& job, bool asked, const Policy& policy, Time deadline) {
  Circumstances known;
  known.asked = asked;
  known.switched_off = !policy.kill_switch.empty() && exists(policy.kill_switch);
  known.nodes = static_cast<std::uint32_t>(job.roster.nodes.size());
  known.user = job.user;
  known.account = job.account;
  if (!policy.allow_groups.empty() && !job.user.empty())
    known.groups = system::find_groups(job.user, job.gid, deadline);
  return known;
}

Conduct conduct_of_first(Circumstances known, const Job& job, const Policy& policy, Controller& controller,
                         Time deadline, std::vector<std::string>& remarks) {
  const std::uint32_t id = job.roster.run.job;
  SlurmFacts facts = facts_from_environment([](const char* name) { return std::getenv(name); });
  const char* cpus = std::getenv("SLURM_JOB_CPUS_PER_NODE");
  const auto here = static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L));
  const auto owner = [&] { return owns_nodes(facts.share, cpus == nullptr ? "" : cpus, here); };
  const bool limit_wanted = policy.min_walltime > Ns::zero() && !facts.walltime;
  const bool owner_wanted = policy.shared == Shared::skip && !owner();
  if (limit_wanted || owner_wanted) {
    const auto answer = controller.call(
        "squeue", {"--noheader", "--jobs=" + std::to_string(id), "--Format=" + facts_format()}, deadline);
    const SlurmFacts said = answer ? read_facts(*answer, id) : SlurmFacts{};
    if (!facts.walltime) facts.walltime = said.walltime;
    if (!facts.share) facts.share = said.share;
    if (!answer && !has_ended(answer.error()))
      remarks.push_back("time limit and owner of the nodes are not known: " + describe(answer.error()));
  }
  known.walltime = facts.walltime;
  known.owns_nodes = owner();
  known.up = since_boot();
  const bool remembers = policy.min_interval > Ns::zero();
  return when(policy, known, remembers ? last_pass(policy.run_directory, job.roster.nodes) : std::nullopt);
}

}  // namespace netcheck::prolog
