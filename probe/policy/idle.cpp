#include "policy/idle.h"

#include <fmt/format.h>

#include <algorithm>

namespace netcheck {

namespace {

bool has_threshold(const Policy& policy) {
  return policy.min || policy.min_per_rail || policy.min_per_pair || policy.min_fraction ||
         policy.min_fraction_per_rail ||
         std::ranges::any_of(kAllFlaws, [&](Flaw flaw) { return policy.findings.of(flaw) == Weight::fail; });
}

}  // namespace

std::string action_without_threshold(const Policy& policy) {
  const bool acts = policy.action != Action::annotate;
  if (has_threshold(policy) || (!acts && !policy.drain)) return {};
  const char* key = acts ? "action" : "drain";
  const auto source = policy.sources.find(fmt::format("action.{}", key));
  return fmt::format(
      "{}{} follows only where a way carries nothing at all, or other bytes than were sent: no threshold is "
      "set "
      "(min under [threshold])",
      source == policy.sources.end() ? "" : source->second + ": ", key);
}

std::string action_without_threshold(const Site& site) {
  if (std::ranges::any_of(site.rules, [](const Rule& rule) { return has_threshold(rule.values); })) return {};
  if (std::string found = action_without_threshold(site.defaults);
      !found.empty() || has_threshold(site.defaults))
    return found;
  for (const Rule& rule : site.rules)
    if (const std::string found = action_without_threshold(rule.values); !found.empty())
      return rule.source + ": " + found;
  return {};
}

}  // namespace netcheck
