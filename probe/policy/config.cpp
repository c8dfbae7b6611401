// netcheck.toml as text → what the site wants. Pure: whoever opens the file has checked who may write it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/nearest.h"
#include "policy/profiles.h"
#include "policy/settings.h"
#include "policy/together.h"
#include "policy/values.h"

namespace netcheck {

namespace {

using policy::all_settings;
using policy::Scope;
using policy::Setting;

/// The largest file looked at: the documented one is 20 KiB.
constexpr std::size_t kMaxConfigBytes = 1 << 20;
/// A site has a handful of partitions; each rule is held against each other one.
constexpr std::size_t kMaxRules = 256;
constexpr std::string_view kRule = "rule";
constexpr std::array<std::string_view, 5> kConditions{"partition", "account", "nodes", "gpu", "hardware"};
/// What people call a condition for whom its name is not the nearest word.
struct OtherName {
  std::string_view word, condition;
};
constexpr std::array<OtherName, 5> kOtherNames{{{"model", "gpu"},
                                                {"gpu_model", "gpu"},
                                                {"machine", "hardware"},
                                                {"class", "hardware"},
                                                {"queue", "partition"}}};
constexpr const char* kAttempted = "read the configuration";

struct Reading {
  std::string_view file;
  Site site;

  [[nodiscard]] std::string where(const toml::source_region& source) const {
    return fmt::format("{}:{}", file, source.begin.line);
  }
  [[nodiscard]] tl::unexpected<Error> refuse(const toml::source_region& source, std::string reason,
                                             std::string remedy = {}) const {
    return fail(kAttempted, where(source), std::move(reason), std::move(remedy));
  }
};

std::string did_you_mean(std::string_view meant) {
  return meant.empty() ? std::string() : fmt::format("did you mean '{}'?", meant);
}

const Setting* find_key(std::string_view key) {
  const auto& all = all_settings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Setting& one) { return one.key == key; });
  return found == all.end() ? nullptr : &*found;
}

tl::unexpected<Error> unknown_section(const Reading& reading, const toml::key& key) {
  if (const Setting* known = find_key(key.str()))
    return reading.refuse(key.source(), fmt::format("'{}' stands outside its section", key.str()),
                          fmt::format("it belongs under [{}]", known->section));
  std::vector<std::string_view> sections;
  for (const Setting& setting : all_settings())
    if (sections.empty() || sections.back() != setting.section) sections.push_back(setting.section);
  sections.push_back(kRule);
  std::string remedy = did_you_mean(nearest(key.str(), sections));
  if (remedy.empty()) remedy = fmt::format("they are {}", fmt::join(sections, ", "));
  return reading.refuse(key.source(), fmt::format("unknown section '{}'", printable(key.str(), 64)), remedy);
}

tl::unexpected<Error> unknown_key(const Reading& reading, std::string_view section, const toml::key& key) {
  std::vector<std::string_view> here;
  for (const Setting& setting : all_settings())
    if (setting.section == section) here.push_back(setting.key);
  const Setting* elsewhere = find_key(key.str());
  std::string remedy = elsewhere == nullptr ? did_you_mean(nearest(key.str(), here))
                                            : fmt::format("it belongs under [{}]", elsewhere->section);
  if (remedy.empty()) remedy = fmt::format("[{}] has {}", section, fmt::join(here, ", "));
  return reading.refuse(key.source(), fmt::format("unknown key '{}'", printable(key.str(), 64)), remedy);
}

/// A profile's values, beneath what stands beside its name.
void set_profile(Policy& policy, std::map<std::string, std::string>& sources, const std::string& source) {
  const Profile* profile = find_profile(policy.profile);
  if (profile == nullptr) return;
  const std::string from = fmt::format("profile {} at {}", profile->name, source);
  if (profile->min) {
    policy.min = policy.site_min = profile->min;
    sources["threshold.min"] = from;
  }
  if (profile->min_per_rail) {
    policy.min_per_rail = profile->min_per_rail;
    sources["threshold.min_per_rail"] = from;
  }
}

Result<void> read_section(Reading& reading, const toml::key& section, const toml::node& node) {
  const auto& all = all_settings();
  const bool known =
      std::any_of(all.begin(), all.end(), [&](const Setting& one) { return one.section == section.str(); });
  if (!known) return unknown_section(reading, section);
  const auto* table = node.as_table();
  if (table == nullptr)
    return reading.refuse(section.source(), fmt::format("'{}' is a section", section.str()),
                          fmt::format("write [{}] on a line of its own", section.str()));
  for (const auto& [toml_key, value] : *table) {
    const toml::key& key = toml_key;  // a lambda may not hold a structured binding before clang 16
    const Setting* setting = find_key(key.str());
    if (setting == nullptr || setting->section != section.str())
      return unknown_key(reading, section.str(), key);
  }
  Policy& policy = reading.site.defaults;
  for (const Setting& setting : all) {  // in the table's order: a profile comes before what stands beside it
    if (setting.section != section.str()) continue;
    const toml::node* value = table->get(setting.key);
    if (value == nullptr) continue;
    if (std::string wrong = setting.value.read(policy, *value); !wrong.empty())
      return reading.refuse(value->source(), fmt::format("'{}' {}", setting.key, wrong));
    const std::string source = reading.where(value->source());
    policy.sources[setting.name()] = source;
    if (setting.key == "profile") set_profile(policy, policy.sources, source);
  }
  return {};
}

// --- rules
// ---------------------------------------------------------------------------------------------------

/// "8", "2-8", "16-", "-8" → least and most.
bool read_range(std::string_view text, std::uint32_t& least, std::uint32_t& most) {
  const auto number = [](std::string_view digits, std::uint32_t& out) {
    constexpr std::size_t kMaxDigits = 6;  // no cluster has a million nodes
    if (digits.empty()) return true;
    if (digits.size() > kMaxDigits || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    out = static_cast<std::uint32_t>(std::stoul(std::string(digits)));
    return true;
  };
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const bool fine = !text.empty() && number(text, least);
    most = least;
    return fine && least > 0;
  }
  return text.size() > 1 && number(text.substr(0, dash), least) && number(text.substr(dash + 1), most) &&
         least <= most && most > 0;
}

std::string read_nodes(Rule& rule, const toml::node& node) {
  constexpr const char* kForm =
      "must be a number of nodes, or a range in quotes: \"8\", \"2-8\", \"16-\" or \"-8\"";
  std::string text;
  if (const auto* number = node.as_integer()) text = std::to_string(number->get());
  if (const auto* range = node.as_string()) text = range->get();
  return read_range(text, rule.least_nodes, rule.most_nodes) ? "" : kForm;
}

/// What is wrong with it; "" when it was taken.
std::string read_condition(Rule& rule, std::string_view key, const toml::node& node) {
  if (key == "nodes") return read_nodes(rule, node);
  std::vector<std::string>& field = key == "partition" ? rule.partition
                                    : key == "account" ? rule.account
                                    : key == "gpu"     ? rule.gpu
                                                       : rule.hardware;
  const std::string example = key == "gpu" ? "\"*H100*\"" : "\"gpu*\" or [\"gpu\", \"dgx\"]";
  constexpr const char* kExtra = "_-.*? ()/:@+";
  if (const auto* one = node.as_string()) {
    constexpr std::size_t kMaxPattern = 64;
    if (one->get().empty() || one->get().size() > kMaxPattern || !policy::made_of(one->get(), kExtra))
      return fmt::format("must be a name or glob, for example {}", example);
    field = {one->get()};
    return {};
  }
  std::string wrong = policy::read_texts(node, "names or globs", example, kExtra, field);
  return wrong.empty() && field.empty() ? "must not be empty" : wrong;
}

bool is_condition(std::string_view key) {
  return std::find(kConditions.begin(), kConditions.end(), key) != kConditions.end();
}

/// The condition or key that was meant by `word` in a rule; "" where none comes near.
std::string_view meant_in_rule(std::string_view word) {
  for (const OtherName& other : kOtherNames)
    if (other.word == word) return other.condition;
  std::vector<std::string_view> known(kConditions.begin(), kConditions.end());
  for (const Setting& one : all_settings())
    if (one.scope == Scope::job) known.push_back(one.key);
  return nearest(word, known);
}

/// Whether a rule may have this key.
Result<void> check_rule_key(const Reading& reading, const toml::key& key) {
  if (is_condition(key.str())) return {};
  const Setting* setting = find_key(key.str());
  if (setting != nullptr && setting->scope == Scope::job) return {};
  if (setting != nullptr)
    return reading.refuse(
        key.source(), fmt::format("a rule cannot set '{}'", key.str()),
        fmt::format("it is the same for every job: it belongs under [{}]", setting->section));
  std::string remedy = did_you_mean(meant_in_rule(key.str()));
  if (remedy.empty())
    remedy = fmt::format("a rule has the conditions {}, and keys of the sections, without their names",
                         fmt::join(kConditions, ", "));
  return reading.refuse(key.source(), fmt::format("unknown key '{}'", printable(key.str(), 64)), remedy);
}

bool same_conditions(const Rule& a, const Rule& b) {
  return a.partition == b.partition && a.account == b.account && a.gpu == b.gpu && a.hardware == b.hardware &&
         a.least_nodes == b.least_nodes && a.most_nodes == b.most_nodes;
}

/// Two rules for the very same jobs that set the same key: one of them is a slip.
Result<void> check_conflict(const Reading& reading, const Rule& rule, const toml::source_region& source) {
  for (const Rule& earlier : reading.site.rules) {
    if (!same_conditions(earlier, rule)) continue;
    for (const auto& [name, where] : rule.sets)
      if (earlier.sets.contains(name))
        return reading.refuse(
            source, fmt::format("this rule sets '{}' for the very jobs of {}", name, earlier.source),
            "make it one rule");
  }
  return {};
}

Result<void> read_rule(Reading& reading, const toml::table& table) {
  Rule rule;
  rule.source = fmt::format("rule {} at {}", reading.site.rules.size() + 1, reading.where(table.source()));
  bool conditions = false;
  for (const auto& [toml_key, value] : table) {
    const toml::key& key = toml_key;
    if (auto checked = check_rule_key(reading, key); !checked) return checked;
    if (!is_condition(key.str())) continue;
    conditions = true;
    if (std::string wrong = read_condition(rule, key.str(), value); !wrong.empty())
      return reading.refuse(value.source(), fmt::format("'{}' {}", key.str(), wrong));
  }
  if (!conditions)
    return reading.refuse(table.source(), "this rule has no condition",
                          "what holds for every job belongs under its section");
  for (const Setting& setting : all_settings()) {
    const toml::node* value = table.get(setting.key);
    if (value == nullptr) continue;
    if (std::string wrong = setting.value.read(rule.values, *value); !wrong.empty())
      return reading.refuse(value->source(), fmt::format("'{}' {}", setting.key, wrong));
    const std::string source =
        fmt::format("rule {} at {}", reading.site.rules.size() + 1, reading.where(value->source()));
    rule.sets[setting.name()] = source;
    if (setting.key == "profile") set_profile(rule.values, rule.sets, source);
  }
  if (rule.sets.empty()) return reading.refuse(table.source(), "this rule sets nothing");
  if (auto checked = check_conflict(reading, rule, table.source()); !checked) return checked;
  reading.site.rules.push_back(std::move(rule));
  return {};
}

Result<void> read_rules(Reading& reading, const toml::key& key, const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr)
    return reading.refuse(key.source(), "a rule begins with [[rule]]", "two brackets on each side");
  if (list->size() > kMaxRules)
    return reading.refuse(key.source(), fmt::format("more than {} rules", kMaxRules));
  for (const toml::node& entry : *list) {
    const auto* table = entry.as_table();
    if (table == nullptr) return reading.refuse(key.source(), "a rule begins with [[rule]]");
    if (auto read = read_rule(reading, *table); !read) return read;
  }
  return {};
}

/// What to do about a line that is no TOML, where it gives a rate, a time or a share without quotes; "": it
/// does not.
std::string quoting(std::string_view toml, std::size_t line) {
  constexpr std::string_view kBlank = " \t\r";
  for (; line > 1 && !toml.empty(); --line)
    toml.remove_prefix(std::min(toml.find('\n'), toml.size() - 1) + 1);
  toml = toml.substr(0, toml.find_first_of("\n#"));
  const std::size_t equals = toml.find('=');
  if (equals == std::string_view::npos) return {};
  toml.remove_prefix(equals + 1);
  toml.remove_prefix(std::min(toml.find_first_not_of(kBlank), toml.size()));
  while (!toml.empty() && kBlank.find(toml.back()) != std::string_view::npos)
    toml.remove_suffix(1);
  constexpr std::size_t kLongest = 32;
  const bool number = !toml.empty() && toml.front() >= '0' && toml.front() <= '9';
  if (!number || toml.size() > kLongest || toml.find('"') != std::string_view::npos) return {};
  return fmt::format("put it in quotes: \"{}\"", printable(toml, kLongest));
}

/// The TOML library follows a dotted key part by part on the stack: fifty thousand parts overflow it.
std::optional<std::size_t> line_of_endless_key(std::string_view toml) {
  constexpr std::size_t kMostDots = 100;
  std::size_t line = 1, dots = 0;
  bool comment = false;
  for (const char c : toml) {
    if (c == '\n') ++line;
    if (c == '\n' || c == '=' || c == ',') dots = 0;
    comment = c != '\n' && (comment || c == '#');
    if (c == '.' && !comment && ++dots > kMostDots) return line;
  }
  return std::nullopt;
}

}  // namespace

Result<Site> parse_config(std::string_view toml, std::string_view file_name) {
  if (const auto line = line_of_endless_key(toml))
    return fail(kAttempted, fmt::format("{}:{}", file_name, *line), "a key of more than a hundred parts",
                "no key has more than one dot");
  if (toml.size() > kMaxConfigBytes)
    return fail(kAttempted, std::string(file_name),
                fmt::format("it is larger than {} bytes", kMaxConfigBytes));
  try {
    Reading reading{.file = file_name, .site = {}};
    reading.site.file = file_name;
    for (const Setting& setting : all_settings())
      reading.site.defaults.sources[setting.name()] = policy::kBuiltIn;
    const toml::table table = toml::parse(toml, file_name);
    for (const auto& [section, node] : table)
      if (section.str() != kRule)
        if (auto read = read_section(reading, section, node); !read) return tl::unexpected(read.error());
    for (const auto& [section, node] : table)
      if (section.str() == kRule)
        if (auto read = read_rules(reading, section, node); !read) return tl::unexpected(read.error());
    if (auto fits = policy::check_together(reading.site.defaults, file_name); !fits)
      return tl::unexpected(fits.error());
    return std::move(reading.site);
  } catch (const toml::parse_error& error) {
    return fail(kAttempted, fmt::format("{}:{}", file_name, error.source().begin.line),
                std::string(error.description()), quoting(toml, error.source().begin.line));
  } catch (const std::exception& error) {
    return fail(kAttempted, std::string(file_name), error.what());
  }
}

}  // namespace netcheck
