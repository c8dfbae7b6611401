// Which rules are for which jobs, and what they make of the policy. Pure.
#include <fmt/format.h>

#include <algorithm>

#include "policy/policy.h"
#include "policy/settings.h"
#include "policy/together.h"

namespace netcheck {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// `*` any number of characters, `?` one; letters in any case: models are written as their makers please.
bool matches_glob(std::string_view glob, std::string_view text) {
  std::size_t star = std::string_view::npos, resume = 0, at = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < glob.size() && (glob[at] == '?' || lower(glob[at]) == lower(text[i]))) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string_view::npos;
}

struct Held {
  Match match = Match::yes;
  std::string why;
  /// One more condition: a known mismatch outweighs what is not known.
  void add(Match outcome, std::string reason) {
    if (match == Match::no || outcome == Match::yes) return;
    if (outcome == Match::unknown && match == Match::unknown) return;
    match = outcome;
    why = std::move(reason);
  }
};

void hold_text(Held& held, const char* what, const std::vector<std::string>& globs,
               const std::optional<std::string>& fact, const char* without) {
  if (globs.empty()) return;
  if (!fact) return held.add(Match::unknown, fmt::format("{} is not known", what));
  const bool any = std::any_of(globs.begin(), globs.end(),
                               [&](const std::string& glob) { return matches_glob(glob, *fact); });
  held.add(any ? Match::yes : Match::no,
           fact->empty() ? without : fmt::format("{} is '{}'", what, printable(*fact, 64)));
}

void hold_nodes(Held& held, const Rule& rule, const std::optional<std::uint32_t>& nodes) {
  if (rule.least_nodes == 0 && rule.most_nodes == UINT32_MAX) return;
  if (!nodes) return held.add(Match::unknown, "the number of nodes is not known");
  const bool inside = *nodes >= rule.least_nodes && *nodes <= rule.most_nodes;
  held.add(inside ? Match::yes : Match::no, fmt::format("the job has {} nodes", *nodes));
}

void apply_rule(Policy& policy, const Rule& rule) {
  for (const auto& [name, source] : rule.sets) {
    policy::setting(name).value.copy(policy, rule.values);
    policy.sources[name] = source;
  }
}

bool holds(const std::vector<Wish>& wishes, Wish::Kind kind) {
  return std::any_of(wishes.begin(), wishes.end(), [&](const Wish& wish) { return wish.kind == kind; });
}

}  // namespace

namespace policy {

Result<void> check_together(const Policy& policy, std::string_view file) {
  const auto built_in = [&](const char* key) { return policy.sources.at(key) == kBuiltIn; };
  // The place of the first of the two that somebody set.
  const auto refuse = [&](const char* key, const char* other, std::string reason) {
    const std::string& source = policy.sources.at(built_in(key) ? other : key);
    return fail("read the configuration", source == kBuiltIn ? std::string(file) : source, std::move(reason));
  };
  if (policy.time > policy.max_time)
    return refuse(
        "check.time", "check.max_time",
        fmt::format("'time' ({}) is above 'max_time' ({})", written(policy.time), written(policy.max_time)));
  if (policy.rendezvous + policy.slice > policy.time)
    return refuse("check.rendezvous", built_in("check.slice") ? "check.time" : "check.slice",
                  fmt::format("'rendezvous' ({}) and 'slice' ({}) do not fit into 'time' ({})",
                              written(policy.rendezvous), written(policy.slice), written(policy.time)));
  if (policy.first_port > policy.last_port)
    return refuse(
        "peers.first_port", "peers.last_port",
        fmt::format("'first_port' ({}) is above 'last_port' ({})", policy.first_port, policy.last_port));
  if (policy.credential == "key" && policy.key_file.empty())
    return refuse("peers.credential", "peers.key_file", "credential = \"key\" needs 'key_file'");
  if (policy.lowest_min && policy.highest_min && *policy.lowest_min > *policy.highest_min)
    return refuse("users.lowest_min", "users.highest_min",
                  fmt::format("'lowest_min' ({}) is above 'highest_min' ({})",
                              format_rate(*policy.lowest_min, true), format_rate(*policy.highest_min, true)));
  return {};
}

}  // namespace policy

Match matches(const Rule& rule, const JobKind& kind, std::string& why) {
  Held held;
  hold_text(held, "partition", rule.partition, kind.partition, "the job has no partition");
  hold_text(held, "account", rule.account, kind.account, "the job has no account");
  hold_nodes(held, rule, kind.nodes);
  hold_text(held, "gpu", rule.gpu, kind.gpu, "its first node has no GPU");
  hold_text(held, "hardware", rule.hardware, kind.hardware, "its first node tells no class of hardware");
  why = std::move(held.why);
  return held.match;
}

Result<Policy> resolve(const Site& site, const JobKind& kind) {
  Policy policy = site.defaults;
  std::string why;
  for (const Rule& rule : site.rules)
    if (matches(rule, kind, why) == Match::yes) apply_rule(policy, rule);
  if (auto fits = policy::check_together(policy, site.file); !fits) return tl::unexpected(fits.error());
  return policy;
}

std::vector<std::string> without_effect(const Site& site) {
  std::vector<std::string> lines = without_effect(site.defaults);
  for (const Rule& rule : site.rules) {
    Policy policy = site.defaults;
    apply_rule(policy, rule);
    for (std::string& line : without_effect(policy))
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<Wish> not_granted_for_sure(const Site& site, const JobKind& kind, const Request& request) {
  Policy known = site.defaults;
  std::string why;
  std::vector<const Rule*> possible;
  for (const Rule& rule : site.rules) {
    const Match match = matches(rule, kind, why);
    if (match == Match::yes) apply_rule(known, rule);
    if (match == Match::unknown) possible.push_back(&rule);
  }
  std::vector<Wish> wishes;
  static_cast<void>(apply(known, request, wishes));
  // A wish hangs on values that rules replace one by one: if no single rule grants it, several do not either.
  for (const Rule* rule : possible) {
    Policy otherwise = known;
    apply_rule(otherwise, *rule);
    std::vector<Wish> then;
    static_cast<void>(apply(otherwise, request, then));
    std::erase_if(wishes, [&](const Wish& wish) { return !holds(then, wish.kind); });
  }
  return wishes;
}

}  // namespace netcheck
