// What /proc says of processes. For process.cpp and whoever must end a whole tree.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace netcheck::system {

struct ProcessStat {
  pid_t pid = 0, parent = 0;
  char state = '?';              ///< as in proc(5): 'Z' has ended
  std::uint64_t start_time = 0;  ///< clock ticks since boot
};

/// The text of /proc/PID/stat. The command in it is anything its owner likes, parentheses and spaces
/// included.
[[nodiscard]] std::optional<ProcessStat> parse_stat(std::string_view text);
[[nodiscard]] std::optional<ProcessStat> stat_of(pid_t pid);
/// Every process below `ancestor`, from one pass over /proc.
[[nodiscard]] std::vector<ProcessStat> descendants_of(pid_t ancestor);

}  // namespace netcheck::system
