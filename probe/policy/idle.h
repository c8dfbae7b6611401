// An action that waits for a fail which nothing measured can bring about. Pure. For `netcheck policy` and
// `netcheck doctor`.
#pragma once

#include <string>

#include "policy/policy.h"

namespace netcheck {

/// "FILE:LINE: action follows only …" where an action or a drain is set and no threshold is; "" otherwise.
[[nodiscard]] std::string action_without_threshold(const Policy& policy);
/// The same of the site's file: "" where any rule sets a threshold, since that may be the one for these jobs.
[[nodiscard]] std::string action_without_threshold(const Site& site);

}  // namespace netcheck
