// See site.h.
#include "doctor/site.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

constexpr const char* kConfiguration = "configuration";

void add_names(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
}

bool fits_any(const Rule& rule, const std::vector<std::string>& partitions) {
  return std::ranges::any_of(partitions, [&](const std::string& partition) {
    std::string why;
    // Its other conditions are not known here; a partition that does not fit outweighs that.
    return matches(rule, {.partition = partition}, why) != Match::no;
  });
}

Finding unknown(const char* key, const std::vector<std::string>& names, const char* kind) {
  return {Level::warn, kConfiguration,
          fmt::format("{} names {}: no such {} is known", key,
                      printable(fmt::format("{}", fmt::join(names, ", "))), kind),
          fmt::format("mend {} in netcheck.toml: a name that nobody has lets nobody's jobs be checked", key)};
}

/// Where an action is set that puts jobs back into the queue; empty: nowhere.
std::string requeues_at(const Policy& policy) {
  const auto back = [](Action action) { return action == Action::requeue || action == Action::hold; };
  const char* key = back(policy.action)                                      ? "action.action"
                    : back(policy.requeue_fallback)                          ? "action.requeue_fallback"
                    : policy.on_inconclusive == OnInconclusive::requeue_once ? "action.on_inconclusive"
                                                                             : "";
  const auto source = policy.sources.find(key);
  return source == policy.sources.end() ? std::string(key) : source->second;
}

}  // namespace

AllowedNames allowed_names(const Site& site) {
  AllowedNames all;
  const auto add = [&](const Policy& policy) {
    add_names(all.users, policy.allow_users);
    add_names(all.groups, policy.allow_groups);
    add_names(all.accounts, policy.allow_accounts);
  };
  add(site.defaults);
  for (const Rule& rule : site.rules)
    add(rule.values);
  return all;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Findings check_site(const Site& site, const SiteFacts& facts) {
  Findings findings;
  if (!facts.unknown_users.empty()) findings.push_back(unknown("allow_users", facts.unknown_users, "user"));
  if (!facts.unknown_groups.empty())
    findings.push_back(unknown("allow_groups", facts.unknown_groups, "group"));
  if (facts.accounts) {
    std::vector<std::string> missing = allowed_names(site).accounts;
    std::erase_if(missing, [&](const std::string& name) {
      return std::ranges::find(*facts.accounts, name) != facts.accounts->end();
    });
    if (!missing.empty()) findings.push_back(unknown("allow_accounts", missing, "account of Slurm's"));
  }
  if (!facts.partitions || facts.partitions->empty()) return findings;
  for (const Rule& rule : site.rules)
    if (!rule.partition.empty() && !fits_any(rule, *facts.partitions))
      findings.push_back(
          {Level::warn, kConfiguration,
           fmt::format("{} is for partition {}, and sinfo shows no such partition", rule.source,
                       printable(fmt::format("{}", fmt::join(rule.partition, ", ")))),
           fmt::format("the partitions are {}",
                       printable(fmt::format("{}", fmt::join(*facts.partitions, ", ")), 400))});
  return findings;
}

std::vector<std::string> plain_modules(const Site& site) {
  std::vector<std::string> modules{fabric_of(site.defaults, false)};
  for (const Rule& rule : site.rules)
    if (rule.sets.contains("fabric.fabric") && rule.values.fabric != kNccl)
      add_names(modules, {fabric_of(rule.values, false)});
  return modules;
}

bool measures_gpus(const Site& site) {
  return fabric_of(site.defaults, true) == kNccl || std::ranges::any_of(site.rules, [](const Rule& rule) {
           return rule.sets.contains("fabric.fabric") && fabric_of(rule.values, true) == kNccl;
         });
}

Findings for_rules_alone(Findings findings) {
  for (Finding& finding : findings) {
    if (finding.level != Level::fail) continue;
    finding.level = Level::warn;
    finding.why += "; only rules of the configuration need it, which may be for other nodes";
  }
  return findings;
}

Findings check_requeue(const SlurmConfig& config, const Site& site) {
  if (value_of(config, "JobRequeue") != "0") return {};
  std::string where = requeues_at(site.defaults);
  for (const Rule& rule : site.rules)
    if (where.empty()) where = requeues_at(rule.values);
  if (where.empty()) return {};
  return {{Level::warn, "JobRequeue",
           fmt::format(
               "0: Slurm neither requeues nor holds a job that was not submitted with --requeue, so what {} "
               "asks for is not done (brake=no-requeue)",
               where),
           "set JobRequeue=1 in slurm.conf, or have users submit with --requeue"}};
}

}  // namespace netcheck::doctor
