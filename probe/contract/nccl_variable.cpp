// See nccl_variable.h.
#include "contract/nccl_variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "contract/error.h"

namespace netcheck {
namespace {

/// The team's addresses come with its cards; the log is read by the module.
constexpr std::array<std::string_view, 6> kOurs{"NCCL_COMM_ID",       "NCCL_DEBUG",
                                                "NCCL_DEBUG_FILE",    "NCCL_DEBUG_SUBSYS",
                                                "NCCL_COMM_BLOCKING", "NCCL_DEBUG_TIMESTAMP_FORMAT"};
constexpr std::size_t kMaxName = 64;

bool is_variable(std::string_view name) {
  const auto allowed = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return name.size() > std::string_view("NCCL_").size() && name.size() <= kMaxName &&
         name.starts_with("NCCL_") && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

std::string wrong_nccl_variable(std::string_view name, std::string_view value) {
  if (!is_variable(name)) return "it is none of NCCL's variables (NCCL_*, in capitals)";
  if (std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end()) return "netcheck sets it itself";
  if (value.size() > kMaxNcclValue || printable(value, kMaxNcclValue) != value)
    return fmt::format("its value must be one line of at most {} bytes", kMaxNcclValue);
  return {};
}

}  // namespace netcheck
