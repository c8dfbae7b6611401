// `netcheck policy`: which values are in effect for a job, and where each comes from. As anybody.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace netcheck {

struct PolicyQuestion {
  std::string config;
  bool must_exist = false;          ///< somebody named the file
  std::optional<std::string> spec;  ///< the value of --netcheck
  std::optional<std::string> partition, account, gpu, hardware;
  std::optional<std::uint32_t> nodes;
  bool json = false;
  bool submission = false;  ///< for the plugin: only "refuse TEXT" and "note TEXT" lines about the request
};

/// Exit code: 0; 2 with one line on stderr for a bad file, or a request that is malformed or forbidden.
[[nodiscard]] int print_policy(const PolicyQuestion& question);

}  // namespace netcheck
