// What no single value can be blamed for. Private to this room.
#pragma once

#include <string_view>

#include "policy/policy.h"

namespace netcheck::policy {

/// Error: values that do not fit together, at the place of one that was set.
[[nodiscard]] Result<void> check_together(const Policy& policy, std::string_view file);

}  // namespace netcheck::policy
