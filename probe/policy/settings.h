// Every key of netcheck.toml and how its value is read. Private to this room: config.cpp walks the file,
// settings.cpp knows the keys.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace netcheck::policy {

struct Setting {
  std::string_view section, key;
  /// Puts the value into the policy. What is wrong with it, as a clause ("must be …"); "" when it was taken.
  std::function<std::string(Policy&, const toml::node&)> read;

  [[nodiscard]] std::string name() const { return std::string(section) + "." + std::string(key); }
};

/// All of them, in the order of etc/netcheck.toml.
[[nodiscard]] std::vector<Setting> all_settings();

}  // namespace netcheck::policy
