// A policy for people: each value as it would stand in netcheck.toml, with its source. Pure.
#pragma once

#include <string>
#include <vector>

#include "contract/wire.h"
#include "policy/policy.h"

namespace netcheck {

/// One setting in effect.
struct Shown {
  std::string section, key;
  std::string about;   ///< what it is for, one line
  std::string form;    ///< what it may be
  Json value;          ///< as in the file
  std::string source;  ///< "built-in", "FILE:LINE", …
};
/// All of them, in the order of etc/netcheck.toml.
[[nodiscard]] std::vector<Shown> show(const Policy& policy);

/// The same as a netcheck.toml that means it, each line with its source as a comment.
[[nodiscard]] std::string as_toml(const Policy& policy);

/// "check.time" → "8s": for the record.
[[nodiscard]] Json settings_to_json(const Policy& policy);

}  // namespace netcheck
