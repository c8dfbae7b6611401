// Which of NCCL's own settings (NCCL_*) a site may set. Pure. Asked by the policy, so that a wrong one is
// named with its line of the file, and by the NCCL module, which trusts nobody's.
#pragma once

#include <string>
#include <string_view>

namespace netcheck {

/// Longest value: a list of devices of a large node.
inline constexpr std::size_t kMaxNcclValue = 255;

/// Why it cannot be set, as a clause ("netcheck sets it itself"); "" where it can.
[[nodiscard]] std::string wrong_nccl_variable(std::string_view name, std::string_view value);

}  // namespace netcheck
