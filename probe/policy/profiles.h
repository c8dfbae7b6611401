// Thresholds by name, from published guidance and published figures. Pure. Sources and arithmetic:
// profiles.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "policy/policy.h"

namespace netcheck {

struct Profile {
  std::string_view name;
  std::optional<Rate> min, min_per_rail;
  std::string_view source;  ///< who says so
};

[[nodiscard]] std::span<const Profile> profiles();
/// nullptr: there is none of this name.
[[nodiscard]] const Profile* find_profile(std::string_view name);
/// "\"none\", \"a\" or \"b\"", for messages.
[[nodiscard]] std::string profile_names();

}  // namespace netcheck
