// From what the nodes said of themselves to the judge's Plan. See plan.h.
#include "session/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/job_limit.h"
#include "session/patience.h"

namespace netcheck::session {
namespace {

/// GPUs do what jobs do on them. On CPUs all_gather stands for it: the same bytes over each link, no
/// arithmetic that a CPU would be slow at (docs/measurement.md).
Op gate_op(const Policy& policy) {
  return parse_op(policy.op).value_or(policy.fabric == "nccl" ? Op::all_reduce : Op::all_gather);
}

/// One communicator over all GPUs, as NCCL's takes seconds to form. The module knows its algorithm in lower
/// case.
void plan_for_nccl(const Policy& policy, judge::Plan& plan) {
  plan.teaming = judge::Teaming::over_lanes;
  plan.max_world = policy.max_world;
  plan.algorithm = policy.nccl_algorithm;
  for (char& c : plan.algorithm)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
}

/// Data patterns differ between runs, so that a buffer left over from one never passes for another's.
std::uint64_t seed_of(const JobRun& run) {
  return (std::uint64_t{run.restart} << 32) | run.job;
}

/// "key=value" lines as a map.
std::map<std::string, std::string> by_key(const std::vector<std::string>& terms) {
  std::map<std::string, std::string> values;
  for (const std::string& term : terms) {
    const auto equals = term.find('=');
    values[term.substr(0, equals)] = equals == std::string::npos ? "" : term.substr(equals + 1);
  }
  return values;
}

std::string sentence(const Assignment& assignment, std::uint32_t node, std::uint32_t from,
                     std::string_view differences) {
  const auto& names = assignment.roster.nodes;
  return printable(fmt::format("{} differs from {}: {}", names[node], names[from], differences), 512);
}

std::string instead(std::string_view key, std::string_view there, std::string_view here) {
  const auto shown = [](std::string_view value) { return value.empty() ? std::string_view("unset") : value; };
  return fmt::format("{} is {} instead of {}", key, shown(there), shown(here));
}

}  // namespace

judge::Thresholds thresholds_of(const Policy& policy) {
  return {.min = policy.min,
          .site_floor = policy.site_min,
          .min_per_rail = policy.min_per_rail,
          .min_per_pair = policy.min_per_pair,
          .min_fraction = policy.min_fraction,
          .min_fraction_per_rail = policy.min_fraction_per_rail,
          .nominal = policy.nominal,
          .transport = policy.fabric == "nccl" ? policy.require_transport : "",
          .unattainable = {}};
}

judge::Plan plan_of(const Assignment& assignment) {
  const Policy& policy = assignment.policy;
  judge::Plan plan;
  for (const std::string& node : assignment.roster.nodes)
    plan.nodes.push_back({.name = node, .lanes = {}, .machine = {}});
  plan.thresholds = thresholds_of(policy);
  plan.weights = policy.findings;
  plan.op = gate_op(policy);
  plan.slice = policy.slice;
  plan.group_size = policy.group_size;
  plan.seed = seed_of(assignment.roster.run);
  plan.forming = patience_with(policy.fabric).forming;
  if (policy.fabric == "nccl") plan_for_nccl(policy, plan);
  return plan;
}

judge::Plan plan_of(const Assignment& assignment, const std::map<std::uint32_t, Present>& present,
                    const std::map<std::uint32_t, fabric::Ready>& ready,
                    const std::map<std::uint32_t, judge::NodeHardware>& hardware, Ns budget) {
  judge::Plan plan = plan_of(assignment);
  plan.budget = std::max(budget, Ns{0});
  plan.max_bytes = UINT64_MAX;
  for (const auto& [node, opened] : ready) {
    plan.nodes[node].lanes = opened.lanes;
    plan.nodes[node].machine = present.at(node).inventory.machine;
    plan.max_bytes = std::min(plan.max_bytes, opened.max_bytes);
  }
  for (const auto& [node, told] : hardware)
    plan.nodes[node].hardware = told;
  judge::set_bars(plan);
  return plan;
}

fabric::Options gpu_options(const Assignment& assignment) {
  const Policy& policy = assignment.policy;
  fabric::Options options{
      .devices = assignment.gpus, .max_bytes = policy.memory, .settings = policy.nccl_env};
  options.settings["NCCL_ALGO"] = policy.nccl_algorithm;
  const auto set = [&](const char* key, std::string value) {
    if (!value.empty()) options.settings[key] = std::move(value);
  };
  set("library", policy.nccl_library);
  set("driver", policy.nccl_driver);
  set("watcher", policy.nccl_watcher);
  set("mig", std::string(name(policy.mig)));
  set("busy", std::string(name(policy.busy)));
  return options;
}

std::optional<std::string> difference(const Assignment& assignment, std::uint32_t node,
                                      const Present& present) {
  std::string differences;
  const auto add = [&](const std::string& words) {
    differences += (differences.empty() ? "" : ", ") + words;
  };
  if (present.inventory.version != NETCHECK_VERSION)
    add(instead("netcheck", present.inventory.version, NETCHECK_VERSION));
  if (present.agreement != assignment.agreement) {
    auto theirs = by_key(present.terms);
    for (const auto& [key, ours] : by_key(agreement_terms(assignment.policy))) {
      if (theirs[key] != ours) add(instead(key, theirs[key], ours));
    }
    if (differences.empty()) add("its settings are others");
  }
  if (differences.empty()) return std::nullopt;
  return sentence(assignment, node, assignment.roster.self, differences);
}

std::optional<std::string> difference(const Assignment& assignment, std::uint32_t node,
                                      const fabric::Ready& ready, std::uint32_t known,
                                      const fabric::Ready& known_ready) {
  if (ready.module != known_ready.module)
    return sentence(assignment, node, known, instead("fabric", ready.module, known_ready.module));
  if (ready.version != known_ready.version)
    return sentence(assignment, node, known, instead(ready.module, ready.version, known_ready.version));
  if (ready.terms == known_ready.terms) return std::nullopt;
  auto theirs = by_key(ready.terms), ours = by_key(known_ready.terms);
  for (const auto& term : theirs)
    ours.try_emplace(term.first);
  std::string differences;
  for (const auto& [key, value] : ours)
    if (theirs[key] != value)
      differences += (differences.empty() ? "" : ", ") + instead(key, theirs[key], value);
  if (differences.empty()) return std::nullopt;
  return sentence(assignment, node, known, differences);
}

}  // namespace netcheck::session
