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
#include "topology/machine.h"

namespace netcheck {

namespace {

constexpr std::size_t kMaxSiteBytes = 1U << 20;

/// The command line's; else the site's. Of a recording of some other machine the site's only where it is
/// named.
Result<topology::PortGlobs> globs_of(const TopoQuestion& question) {
  const bool recorded = !question.xml.empty() || !question.fsroot.empty() || !question.compare.empty();
  const bool told = !question.include.empty() || !question.exclude.empty();
  if (told || question.config.empty() || (recorded && !question.must_exist))
    return topology::PortGlobs{question.include, question.exclude};
  std::error_code error;
  if (question.must_exist && !std::filesystem::exists(question.config, error) && !error)
    return fail("read the configuration", question.config, "there is no such file");
  const auto text = prolog::read_trusted(question.config, kMaxSiteBytes, "");
  if (!text) return tl::unexpected(text.error());
  const auto site = parse_config(*text, question.config);
  if (!site) return tl::unexpected(site.error());
  const auto policy = resolve(*site, JobKind{});
  if (!policy) return tl::unexpected(policy.error());
  return topology::PortGlobs{policy->devices, policy->exclude};
}

struct Seen {
  Machine machine;
  std::vector<judge::Finding> contradictions;  ///< between the machine and NCCL's file
};

Result<Seen> look(const TopoQuestion& question) {
  const auto globs = globs_of(question);
  if (!globs) return tl::unexpected(globs.error());
  auto machine =
      question.xml.empty() ? topology::read_machine(question.fsroot) : topology::read_recording(question.xml);
  if (!machine) return tl::unexpected(machine.error());
  topology::tell_roles(*machine, *globs);
  if (question.nccl.empty()) return Seen{std::move(*machine), {}};
  const auto file = topology::read_recording(question.nccl);
  if (!file) return tl::unexpected(file.error());
  Seen seen{with_tree_of(*machine, *file), judge::contradictions(*machine, *file)};
  topology::tell_roles(seen.machine, *globs);
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

int compare(const TopoQuestion& question) {
  const auto globs = globs_of(question);
  if (!globs) return refuse(globs.error());
  std::vector<Machine> machines;
  for (const std::string& path : question.compare) {
    auto machine = topology::read_recording(path);
    if (!machine) return refuse(machine.error());
    topology::tell_roles(*machine, *globs);
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
  Limits limits = limits_of(machine);
  if (const std::string wanted = gpus_wanted(question); !wanted.empty()) {
    const auto gpus = parse_gpus(wanted, machine.gpus.size());
    if (!gpus) return refuse(gpus.error());
    limits = limits_of(machine, *gpus);
  }
  auto findings = judge::findings_of(machine, limits);
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
