// Every key of netcheck.toml: where it stands, what it may be, what it is for. Private to this room:
// config.cpp walks the file, settings.cpp has the table, values.cpp knows the kinds of values.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/wire.h"
#include "policy/policy.h"

namespace netcheck::policy {

/// Who may set it beside the file's sections.
enum class Scope : std::uint8_t {
  job,  ///< a rule may
  site  ///< nobody: it is the same for every job
};

/// One kind of value, bound to its field.
struct Value {
  std::string form;  ///< "a time from 1s to 60s"
  /// Puts the value into the policy. What is wrong with it, as a clause ("must be …"); "" when it was taken.
  std::function<std::string(Policy&, const toml::node&)> read;
  std::function<void(Policy& to, const Policy& from)> copy;
  std::function<Json(const Policy&)> show;  ///< as it stands in the file
};

struct Setting {
  std::string_view section, key;
  Scope scope = Scope::job;
  std::string_view about;  ///< what it is for, one line; etc/netcheck.toml says more
  Value value;

  [[nodiscard]] std::string name() const { return std::string(section) + "." + std::string(key); }
};

/// All of them, in the order of etc/netcheck.toml. No two keys are alike: rules name them without a section.
[[nodiscard]] const std::vector<Setting>& all_settings();

/// The setting of this name ("check.time"), which must exist.
[[nodiscard]] const Setting& setting(std::string_view name);

/// Where a value that nobody set comes from.
inline constexpr const char* kBuiltIn = "built-in";
inline constexpr const char* kRequested = "the job's request";

/// "20s", "1.5s", "500ms", "2min": as a person writes it.
[[nodiscard]] std::string written(Ns duration);

}  // namespace netcheck::policy
