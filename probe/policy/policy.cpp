// The user's request on top of the site's policy, and what all nodes must agree on. Pure.
#include "policy/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/settings.h"

namespace netcheck {

namespace {

using policy::kRequested;
using policy::written;

void apply_min(Policy& policy, Rate wanted, std::vector<Wish>& wishes) {
  const auto refuse = [&](Wish::Kind kind, const char* what, Rate bound) {
    wishes.push_back({kind,
                      fmt::format("min={}: {} {}", format_rate(wanted, true), what, format_rate(bound, true)),
                      policy.min ? format_rate(*policy.min, true) : "no threshold"});
  };
  if (policy.site_min && wanted < *policy.site_min)
    return refuse(Wish::Kind::min_below_site, "the site's minimum is", *policy.site_min);
  if (policy.lowest_min && wanted < *policy.lowest_min)
    return refuse(Wish::Kind::min_too_low, "the lowest that the site takes is", *policy.lowest_min);
  if (policy.highest_min && wanted > *policy.highest_min)
    return refuse(Wish::Kind::min_too_high, "the highest that the site takes is", *policy.highest_min);
  if (policy.site_min && wanted == *policy.site_min) return;
  policy.min = wanted;
  policy.sources["threshold.min"] = kRequested;
}

void apply_time(Policy& policy, Ns wanted, std::vector<Wish>& wishes) {
  Ns granted = wanted;
  if (wanted > policy.max_time) {
    granted = policy.max_time;
    wishes.push_back(
        {Wish::Kind::time_above,
         fmt::format("time={}: the site's maximum is {}", written(wanted), written(policy.max_time)),
         written(policy.max_time)});
  }
  // A deadline costs nothing when it is not needed; a shorter one only turns verdicts into inconclusive.
  if (granted < policy.time) {
    wishes.push_back({Wish::Kind::time_below,
                      fmt::format("time={}: the site's time is {}", written(wanted), written(policy.time)),
                      written(policy.time)});
    return;
  }
  if (granted == policy.time) return;
  policy.time = granted;
  policy.sources["check.time"] = kRequested;
}

void apply_action(Policy& policy, Action wanted, std::vector<Wish>& wishes) {
  if (wanted == policy.action) return;
  const auto& granted = policy.user_actions;
  if (std::find(granted.begin(), granted.end(), wanted) == granted.end()) {
    std::string choice(name(policy.action));
    for (const Action action : granted)
      if (action != policy.action) choice += fmt::format(", {}", name(action));
    wishes.push_back({Wish::Kind::action, fmt::format("action={}: the site allows {}", name(wanted), choice),
                      std::string(name(policy.action))});
    return;
  }
  policy.action = wanted;
  policy.sources["action.action"] = kRequested;
}

// FNV-1a, 64 bit (http://www.isthe.com/chongo/tech/comp/fnv/). It tells apart what honest nodes read and
// wrote; that peers are honest is what their credentials are for.
std::string hash_of(const std::vector<std::string>& terms) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& term : terms) {
    for (const char c : term + "\n") {
      hash ^= static_cast<std::uint8_t>(c);
      hash *= 0x100000001b3;
    }
  }
  return fmt::format("{:016x}", hash);
}

std::string term(const std::optional<Rate>& rate) {
  return rate ? fmt::format("{}", rate->bits_per_second) : "none";
}

/// What is asked of the hardware.
std::string hardware_term(const Policy& policy) {
  const auto part = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string("none");
  };
  const auto count = [](const std::optional<std::uint32_t>& value) {
    return value ? std::to_string(*value) : std::string("none");
  };
  return fmt::format(
      "hardware=min_fraction {}, min_fraction_per_rail {}, nominal {}, gpus {}, ports {}, "
      "nccl_topology {}, findings {}",
      part(policy.min_fraction), part(policy.min_fraction_per_rail), term(policy.nominal), count(policy.gpus),
      count(policy.ports), policy.nccl_topology, to_json(policy.findings).dump());
}

/// How the fabric over GPUs measures. Where its libraries lie is each node's own affair.
void add_nccl(const Policy& policy, std::vector<std::string>& terms) {
  terms.push_back(fmt::format("nccl.algorithm={}", policy.nccl_algorithm));
  terms.push_back(fmt::format("nccl.max_world={}", policy.max_world));
  terms.push_back(fmt::format("nccl.mig={}", name(policy.mig)));
  terms.push_back(fmt::format("nccl.busy={}", name(policy.busy)));
  terms.push_back(fmt::format("nccl.require_transport={}", policy.require_transport));
  for (const auto& [variable, value] : policy.nccl_env)
    terms.push_back(fmt::format("{}={}", variable, value));
}

}  // namespace

std::string_view name(Mode mode) {
  return mode == Mode::always ? "always" : "opt-in";
}

std::string_view name(Shared shared) {
  return shared == Shared::measure ? "measure" : "skip";
}

std::string_view name(OnGpu action) {
  return action == OnGpu::measure ? "measure" : "refuse";
}

std::string_view name(OnInconclusive action) {
  return action == OnInconclusive::requeue_once ? "requeue_once" : "annotate";
}

std::uint32_t Share::of(std::uint32_t total) const {
  if (percent <= 0) return count;
  constexpr double kHundred = 100;
  return std::max(1U, static_cast<std::uint32_t>(percent / kHundred * total));
}

Policy apply(Policy policy, const Request& request, std::vector<Wish>& wishes) {
  if (request.min) apply_min(policy, *request.min, wishes);
  if (request.action) apply_action(policy, *request.action, wishes);
  if (request.time) apply_time(policy, *request.time, wishes);
  if (request.op && *request.op != policy.op) {
    policy.op = *request.op;
    policy.sources["check.op"] = kRequested;
  }
  return policy;
}

std::string where_fractions_count(const Policy& policy) {
  if (!policy.min_fraction && !policy.min_fraction_per_rail) return {};
  return "min_fraction and min_fraction_per_rail count where RDMA carries the bytes and the rails' speed is "
         "known; a check's record says whether they did (judged.hardware.limit)";
}

std::vector<std::string> without_effect(const Policy& policy) {
  std::vector<std::string> lines;
  const auto say = [&](const char* section, const char* key, const char* why) {
    const auto source = policy.sources.find(fmt::format("{}.{}", section, key));
    lines.push_back(fmt::format("{}: {} has no effect{}",
                                source == policy.sources.end() ? policy::kBuiltIn : source->second, key,
                                why));
  };
  if (policy.annotate) return lines;
  // How often a job was sent away, and what was done in the last hour, stands in AdminComment alone.
  constexpr const char* kNoComment =
      ": annotate = false, and nothing is done that cannot be announced and counted in AdminComment";
  if (policy.action != Action::annotate) say("action", "action", kNoComment);
  if (policy.drain) say("action", "drain", kNoComment);
  if (policy.on_inconclusive != OnInconclusive::annotate) say("action", "on_inconclusive", kNoComment);
  if (!policy.user_actions.empty()) say("users", "user_actions", kNoComment);
  return lines;
}

std::vector<std::string> agreement_terms(const Policy& policy) {
  std::vector<std::string> terms = {fmt::format("threshold.min={}", term(policy.min)),
                                    fmt::format("threshold.site_min={}", term(policy.site_min)),
                                    fmt::format("threshold.min_per_rail={}", term(policy.min_per_rail)),
                                    fmt::format("threshold.min_per_pair={}", term(policy.min_per_pair)),
                                    hardware_term(policy),
                                    fmt::format("check.op={}", policy.op),
                                    fmt::format("check.time={}ns", policy.time.count()),
                                    fmt::format("check.rendezvous={}ns", policy.rendezvous.count()),
                                    fmt::format("check.slice={}ns", policy.slice.count()),
                                    fmt::format("check.group_size={}", policy.group_size),
                                    fmt::format("probe.memory={}", policy.memory),
                                    fmt::format("fabric.fabric={}", policy.fabric)};
  if (policy.fabric != "ucx") add_nccl(policy, terms);
  return terms;
}

std::string measured_with(const Policy& policy) {
  std::vector<std::string> terms = {fmt::format("fabric={}", policy.fabric),
                                    fmt::format("devices={}", fmt::join(policy.devices, ",")),
                                    fmt::format("exclude={}", fmt::join(policy.exclude, ",")),
                                    fmt::format("op={}", policy.op),
                                    fmt::format("group_size={}", policy.group_size),
                                    fmt::format("memory={}", policy.memory),
                                    fmt::format("slice={}ns", policy.slice.count()),
                                    hardware_term(policy)};
  if (policy.fabric != "ucx") add_nccl(policy, terms);
  return hash_of(terms);
}

std::string agreement(const Policy& policy) {
  return hash_of(agreement_terms(policy));
}

std::string fabric_of(const Policy& policy, bool has_gpus) {
  if (policy.fabric != "auto") return policy.fabric;
  return has_gpus ? "nccl" : "ucx";
}

std::string address_of(const Policy& policy, const std::string& node) {
  if (const auto exception = policy.addresses.find(node); exception != policy.addresses.end())
    return exception->second;
  std::string address = policy.address;
  constexpr std::string_view kPlace = "{node}";
  if (const auto place = address.find(kPlace); place != std::string::npos)
    address.replace(place, kPlace.size(), node);
  return address;
}

}  // namespace netcheck
