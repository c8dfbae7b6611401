// Reads a machine or two, and hands them to the rooms that judge and draw them. As whoever runs it.
#include "main/topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "contract/wire.h"
#include "judge/contradiction.h"
#include "judge/fleet.h"
#include "judge/hardware.h"
#include "measure/limits.h"
#include "measure/other_tree.h"
#include "picture/picture.h"
#include "policy/policy.h"
#include "prolog/folder.h"
#include "prolog/premises.h"
#include "topology/machine.h"

namespace netcheck {

namespace {

constexpr std::size_t kMaxSiteBytes = 1U << 20;

/// The driver may have to be loaded first, GPU by GPU; a person waits for it.
constexpr Ns kDriverPatience = std::chrono::seconds(10);

/// What the site says of its machines.
struct SitesWord {
  topology::PortGlobs globs;
  judge::Expected expected;
  std::string nccl, nvml, nccl_library;
};

/// The site's; but the command line's globs and file where it has some. Of a recording of some other machine
/// the site's only where it is named.
Result<SitesWord> word_of_site(const TopoQuestion& question, const Machine& machine) {
  const bool recorded = !question.xml.empty() || !question.fsroot.empty() || !question.compare.empty();
  const bool told = !question.include.empty() || !question.exclude.empty();
  SitesWord word{{question.include, question.exclude}, {}, "", "", ""};
  if (question.config.empty() || (recorded && !question.must_exist)) return word;
  std::error_code error;
  if (question.must_exist && !std::filesystem::exists(question.config, error) && !error)
    return fail("read the configuration", question.config, "there is no such file");
  const auto text = prolog::read_trusted(question.config, kMaxSiteBytes, "");
  if (!text) return tl::unexpected(text.error());
  const auto site = parse_config(*text, question.config);
  if (!site) return tl::unexpected(site.error());
  JobKind kind;  // of a job on such nodes alone
  kind.hardware = machine.product;
  kind.gpu = machine.gpus.empty() ? "" : machine.gpus.front().model;
  const auto policy = resolve(*site, kind);
  if (!policy) return tl::unexpected(policy.error());
  if (!told) word.globs = {policy->devices, policy->exclude};
  word.expected = {policy->gpus, policy->ports};
  word.nccl = policy->nccl_topology;
  word.nvml = policy->nccl_watcher;
  word.nccl_library = policy->nccl_library;
  // They are loaded as whoever runs this, who may be root.
  for (const auto& library : {word.nvml, word.nccl_library})
    if (auto trusted = prolog::check_library(library); !trusted) return tl::unexpected(trusted.error());
  return word;
}

struct Seen {
  Machine machine;
  judge::Expected expected;
  std::vector<judge::Finding> contradictions;  ///< between the machine and NCCL's file
};

Result<Seen> look(const TopoQuestion& question) {
  auto machine =
      question.xml.empty() ? topology::read_machine(question.fsroot) : topology::read_recording(question.xml);
  if (!machine) return tl::unexpected(machine.error());
  const auto site = word_of_site(question, *machine);
  if (!site) return tl::unexpected(site.error());
  const bool live = question.xml.empty() && question.fsroot.empty();
  if (live) {
    topology::ask_driver(*machine, kDriverPatience, site->nvml);
    topology::ask_libraries(*machine, kDriverPatience, site->nccl_library);
  }
  topology::tell_roles(*machine, site->globs);
  if (question.nccl.empty() && site->nccl.empty()) return Seen{std::move(*machine), site->expected, {}};
  const auto file = question.nccl.empty() ? topology::read_trusted_recording(site->nccl)
                                          : topology::read_recording(question.nccl);
  if (!file) return tl::unexpected(file.error());
  Seen seen{with_tree_of(*machine, *file), site->expected, judge::contradictions(*machine, *file)};
  topology::tell_roles(seen.machine, site->globs);
  return seen;
}

tl::unexpected<Error> no_list(const std::string& text) {
  return fail("read the list of GPUs", text, "it is no list of numbers", "like 0-3,6");
}

/// "0-3,6" → indices, each once, all of them in the machine.
Result<std::vector<std::uint32_t>> parse_gpus(const std::string& text, std::size_t there) {
  std::vector<bool> wanted(there, false);
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::uint32_t& value) {
    const auto [rest, error] = std::from_chars(at, end, value);
    at = rest;
    return error == std::errc();
  };
  while (true) {
    std::uint32_t first = 0, last = 0;
    if (!number(first)) return no_list(text);
    last = first;
    if (at != end && *at == '-' && (++at, !number(last))) return no_list(text);
    if (last < first) return no_list(text);
    if (last >= there)
      return fail("take GPU", std::to_string(last), fmt::format("this machine has {}", there));
    for (std::uint32_t gpu = first; gpu <= last; ++gpu)
      wanted[gpu] = true;
    if (at == end) break;
    if (*at++ != ',') return no_list(text);
  }
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t i = 0; i < there; ++i)
    if (wanted[i]) gpus.push_back(i);
  return gpus;
}

// Inside a job the job's own; a recording is of some other machine.
std::string gpus_wanted(const TopoQuestion& question) {
  if (!question.gpus.empty() || !question.xml.empty() || !question.fsroot.empty()) return question.gpus;
  const char* job = std::getenv("SLURM_JOB_GPUS");
  return job == nullptr ? std::string() : job;
}

int refuse(const Error& error) {
  fmt::print(stderr, "netcheck: {}\n", describe(error));
  return static_cast<int>(ExitCode::usage);
}

Result<void> write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail("write", path, "it cannot be written");
  return {};
}

std::string as_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

void print_text(const Machine& machine, const Limits& limits, const std::vector<judge::Finding>& findings) {
  fmt::print("{}\n{}", picture::heading(machine), picture::tree(machine));
  if (const std::string matrix = picture::matrix(machine); !matrix.empty())
    fmt::print("\nDistances:\n{}", matrix);
  fmt::print("\nLimits:\n{}\nFindings:\n{}", picture::limits(machine, limits), picture::findings(findings));
}

/// Of the command line's globs; the site's may be meant for other nodes.
void note_slips(const TopoQuestion& question, const Machine& machine) {
  const auto note = [&](const char* option, const std::vector<std::string>& globs) {
    const std::vector<std::string> slips = topology::without_port(machine, globs);
    if (!slips.empty())
      fmt::print(stderr, "netcheck: note: {} {}: no port here is called that\n", option,
                 printable(fmt::format("{}", fmt::join(slips, " "))));
  };
  note("--include", question.include);
  note("--exclude", question.exclude);
}

int compare(const TopoQuestion& question) {
  std::vector<Machine> machines;
  for (const std::string& path : question.compare) {
    auto machine = topology::read_recording(path);
    if (!machine) return refuse(machine.error());
    const auto site = word_of_site(question, *machine);
    if (!site) return refuse(site.error());
    topology::tell_roles(*machine, site->globs);
    machines.push_back(std::move(*machine));
  }
  const auto differences = judge::differences(machines[0], machines[1]);
  if (question.json)
    fmt::print("{}", as_text(picture::as_json(differences)));
  else
    fmt::print("{}", picture::differences(machines[0], machines[1], differences));
  return static_cast<int>(differences.empty() ? ExitCode::pass : ExitCode::fail);
}

}  // namespace

int show_topology(const TopoQuestion& question) {
  if (!question.compare.empty()) return compare(question);
  const auto seen = look(question);
  if (!seen) return refuse(seen.error());
  const Machine& machine = seen->machine;
  note_slips(question, machine);
  Limits limits = limits_of(machine);
  if (const std::string wanted = gpus_wanted(question); !wanted.empty()) {
    const auto gpus = parse_gpus(wanted, machine.gpus.size());
    if (!gpus) return refuse(gpus.error());
    limits = limits_of(machine, *gpus);
  }
  auto findings = judge::findings_of(machine, limits, seen->expected);
  findings.insert(findings.end(), seen->contradictions.begin(), seen->contradictions.end());
  std::ranges::stable_sort(findings, std::greater<>(), &judge::Finding::severity);
  if (!question.save.empty())
    if (auto done = write(question.save, as_text(to_json(machine))); !done) return refuse(done.error());
  if (!question.svg.empty())
    if (auto done = write(question.svg, picture::svg(machine, limits, findings)); !done)
      return refuse(done.error());
  if (question.json)
    fmt::print("{}", as_text(picture::as_json(machine, limits, findings)));
  else
    print_text(machine, limits, findings);
  return 0;
}

}  // namespace netcheck
