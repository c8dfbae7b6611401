// netcheck.toml as text → the site's Policy. Pure: whoever opens the file has checked who may write it.
#include <fmt/format.h>

#include <algorithm>

#include "policy/nearest.h"
#include "policy/policy.h"
#include "policy/settings.h"

namespace netcheck {

namespace {

using policy::Setting;

/// The largest file looked at: the documented one is 10 KiB.
constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr const char* kBuiltIn = "built-in";

struct Reading {
  std::string_view file;
  std::vector<Setting> settings = policy::all_settings();
  Policy policy{};

  [[nodiscard]] std::string where(const toml::source_region& source) const {
    return fmt::format("{}:{}", file, source.begin.line);
  }
  [[nodiscard]] tl::unexpected<Error> refuse(const toml::source_region& source, std::string reason,
                                             std::string remedy = {}) const {
    return fail("read the configuration", where(source), std::move(reason), std::move(remedy));
  }
};

std::string did_you_mean(std::string_view meant) {
  return meant.empty() ? std::string() : fmt::format("did you mean '{}'?", meant);
}

tl::unexpected<Error> unknown_section(const Reading& reading, const toml::key& key) {
  std::vector<std::string_view> sections;
  for (const Setting& setting : reading.settings)
    if (sections.empty() || sections.back() != setting.section) sections.push_back(setting.section);
  for (const Setting& setting : reading.settings)
    if (setting.key == key.str())
      return reading.refuse(key.source(), fmt::format("'{}' stands outside its section", key.str()),
                            fmt::format("it belongs under [{}]", setting.section));
  std::string remedy = did_you_mean(nearest(key.str(), sections));
  if (remedy.empty()) remedy = fmt::format("they are {}", fmt::join(sections, ", "));
  return reading.refuse(key.source(), fmt::format("unknown section '{}'", printable(key.str(), 64)), remedy);
}

tl::unexpected<Error> unknown_key(const Reading& reading, std::string_view section, const toml::key& key) {
  std::vector<std::string_view> here;
  std::string_view elsewhere;
  for (const Setting& setting : reading.settings) {
    if (setting.section == section) here.push_back(setting.key);
    if (setting.key == key.str()) elsewhere = setting.section;
  }
  std::string remedy = elsewhere.empty() ? did_you_mean(nearest(key.str(), here))
                                         : fmt::format("it belongs under [{}]", elsewhere);
  if (remedy.empty()) remedy = fmt::format("[{}] has {}", section, fmt::join(here, ", "));
  return reading.refuse(key.source(), fmt::format("unknown key '{}'", printable(key.str(), 64)), remedy);
}

Result<void> read_section(Reading& reading, const toml::key& section, const toml::node& node) {
  const bool known = std::any_of(reading.settings.begin(), reading.settings.end(),
                                 [&](const Setting& setting) { return setting.section == section.str(); });
  if (!known) return unknown_section(reading, section);
  const auto* table = node.as_table();
  if (table == nullptr)
    return reading.refuse(section.source(), fmt::format("'{}' is a section", section.str()),
                          fmt::format("write [{}] on a line of its own", section.str()));
  for (const auto& [toml_key, value] : *table) {
    const toml::key& key = toml_key;  // a lambda may not hold a structured binding before clang 16
    const auto setting =
        std::find_if(reading.settings.begin(), reading.settings.end(), [&](const Setting& candidate) {
          return candidate.section == section.str() && candidate.key == key.str();
        });
    if (setting == reading.settings.end()) return unknown_key(reading, section.str(), key);
    if (std::string wrong = setting->read(reading.policy, value); !wrong.empty())
      return reading.refuse(value.source(), fmt::format("'{}' {}", key.str(), wrong));
    reading.policy.sources[setting->name()] = reading.where(value.source());
  }
  return {};
}

/// What no single value can be blamed for.
Result<void> check_together(const Reading& reading) {
  const Policy& policy = reading.policy;
  const auto refuse = [&](const char* key, std::string reason) {
    const std::string& source = policy.sources.at(key);
    return fail("read the configuration", source == kBuiltIn ? std::string(reading.file) : source,
                std::move(reason));
  };
  if (policy.time > policy.max_time)
    return refuse(policy.sources.at("check.time") == kBuiltIn ? "check.max_time" : "check.time",
                  fmt::format("'time' ({}) is above 'max_time' ({})", format_duration(policy.time),
                              format_duration(policy.max_time)));
  if (policy.rendezvous + policy.slice > policy.time)
    return refuse(policy.sources.at("check.rendezvous") == kBuiltIn ? "check.time" : "check.rendezvous",
                  fmt::format("'rendezvous' ({}) and 'slice' ({}) do not fit into 'time' ({})",
                              format_duration(policy.rendezvous), format_duration(policy.slice),
                              format_duration(policy.time)));
  if (policy.first_port > policy.last_port)
    return refuse(
        policy.sources.at("peers.first_port") == kBuiltIn ? "peers.last_port" : "peers.first_port",
        fmt::format("'first_port' ({}) is above 'last_port' ({})", policy.first_port, policy.last_port));
  if (policy.credential == "key" && policy.key_file.empty())
    return refuse("peers.credential", "credential = \"key\" needs 'key_file'");
  return {};
}

}  // namespace

Result<Policy> parse_config(std::string_view toml, std::string_view file_name) {
  if (toml.size() > kMaxConfigBytes)
    return fail("read the configuration", std::string(file_name),
                fmt::format("it is larger than {} bytes", kMaxConfigBytes));
  try {
    Reading reading{.file = file_name};
    for (const Setting& setting : reading.settings)
      reading.policy.sources[setting.name()] = kBuiltIn;
    const toml::table table = toml::parse(toml, file_name);
    for (const auto& [section, node] : table)
      if (auto read = read_section(reading, section, node); !read) return tl::unexpected(read.error());
    if (auto checked = check_together(reading); !checked) return tl::unexpected(checked.error());
    return std::move(reading.policy);
  } catch (const toml::parse_error& error) {
    return fail("read the configuration", fmt::format("{}:{}", file_name, error.source().begin.line),
                std::string(error.description()));
  } catch (const std::exception& error) {
    return fail("read the configuration", std::string(file_name), error.what());
  }
}

}  // namespace netcheck
