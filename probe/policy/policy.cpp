// The user's request on top of the site's policy, and what all nodes must agree on. Pure.
#include "policy/policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace netcheck {

namespace {

constexpr const char* kRequested = "the job's request";

/// "20s", "1.5s", "500ms": as a person writes it in the request.
std::string written(Ns duration) {
  std::string text = format_duration(duration);
  if (const auto zero = text.find(".0s"); zero != std::string::npos) text.erase(zero, 2);
  return text;
}

void apply_min(Policy& policy, Rate wanted, std::vector<std::string>& notes) {
  if (policy.site_min && wanted < *policy.site_min) {
    notes.push_back(fmt::format("min={}: the site's minimum is {}", format_rate(wanted, true),
                                format_rate(*policy.site_min, true)));
    return;
  }
  if (policy.site_min && wanted == *policy.site_min) return;
  policy.min = wanted;
  policy.sources["threshold.min"] = kRequested;
}

void apply_time(Policy& policy, Ns wanted, std::vector<std::string>& notes) {
  Ns granted = wanted;
  if (wanted > policy.max_time) {
    granted = policy.max_time;
    notes.push_back(
        fmt::format("time={}: the site's maximum is {}", written(wanted), written(policy.max_time)));
  }
  // A deadline costs nothing when it is not needed; a shorter one only turns verdicts into inconclusive.
  if (granted < policy.time) {
    notes.push_back(fmt::format("time={}: the site's time is {}", written(wanted), written(policy.time)));
    return;
  }
  if (granted == policy.time) return;
  policy.time = granted;
  policy.sources["check.time"] = kRequested;
}

}  // namespace

Policy apply(Policy site, const Request& request, std::vector<std::string>& notes) {
  if (request.min) apply_min(site, *request.min, notes);
  if (request.time) apply_time(site, *request.time, notes);
  if (request.op && *request.op != site.op) {
    site.op = *request.op;
    site.sources["check.op"] = kRequested;
  }
  return site;
}

std::vector<std::string> agreement_terms(const Policy& policy) {
  const auto rate = [](const std::optional<Rate>& value) {
    return value ? fmt::format("{}", value->bits_per_second) : std::string("none");
  };
  return {fmt::format("threshold.min={}", rate(policy.min)),
          fmt::format("threshold.site_min={}", rate(policy.site_min)),
          fmt::format("check.op={}", policy.op),
          fmt::format("check.time={}ns", policy.time.count()),
          fmt::format("check.rendezvous={}ns", policy.rendezvous.count()),
          fmt::format("check.slice={}ns", policy.slice.count()),
          fmt::format("check.group_size={}", policy.group_size),
          fmt::format("probe.memory={}", policy.memory),
          fmt::format("fabric.fabric={}", policy.fabric)};
}

std::string agreement(const Policy& policy) {
  // FNV-1a, 64 bit (http://www.isthe.com/chongo/tech/comp/fnv/). It tells honest nodes apart whose files
  // differ; that peers are honest is what their credentials are for.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& term : agreement_terms(policy)) {
    for (const char c : term + "\n") {
      hash ^= static_cast<std::uint8_t>(c);
      hash *= 0x100000001b3;
    }
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace netcheck
