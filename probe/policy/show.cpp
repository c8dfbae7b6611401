#include "policy/show.h"

#include <fmt/format.h>

#include "policy/settings.h"

namespace netcheck {

namespace {

/// JSON and TOML write these kinds of values alike, but for tables.
std::string toml_text(const Json& value) {
  if (value.is_array()) {
    std::string text;
    for (const Json& part : value)
      text += (text.empty() ? "" : ", ") + toml_text(part);
    return "[" + text + "]";
  }
  if (!value.is_object()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const auto& [key, part] : value.items())
    text += fmt::format("{} {} = {}", text.empty() ? "" : ",", Json(key).dump(), toml_text(part));
  return text.empty() ? "{}" : "{" + text + " }";
}

}  // namespace

std::vector<Shown> show(const Policy& policy) {
  std::vector<Shown> all;
  for (const policy::Setting& setting : policy::all_settings()) {
    const auto source = policy.sources.find(setting.name());
    all.push_back({.section = std::string(setting.section),
                   .key = std::string(setting.key),
                   .about = std::string(setting.about),
                   .form = setting.value.form,
                   .value = setting.value.show(policy),
                   .source = source == policy.sources.end() ? policy::kBuiltIn : source->second});
  }
  return all;
}

std::string as_toml(const Policy& policy) {
  constexpr int kColumn = 40;  // where the sources begin; longer values push theirs on
  std::string text, section;
  for (const Shown& shown : show(policy)) {
    if (shown.section != section) {
      text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", shown.section);
      section = shown.section;
    }
    text += fmt::format("{:<{}}  # {}\n", fmt::format("{} = {}", shown.key, toml_text(shown.value)), kColumn,
                        shown.source);
  }
  return text;
}

Json settings_to_json(const Policy& policy) {
  Json settings = Json::object();
  for (const policy::Setting& setting : policy::all_settings())
    settings[setting.name()] = setting.value.show(policy);
  return settings;
}

}  // namespace netcheck
