// What is wrong with a machine before a byte is sent: links down, slow or narrow, GPUs far from their ports,
// settings that are known to halve peer-to-peer. Pure. What is unknown is no finding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/machine.h"
#include "measure/limits.h"

namespace netcheck::judge {

enum class Severity : std::uint8_t {
  note,     ///< worth knowing; nothing is broken
  warning,  ///< costs bandwidth, or will under load
  fault     ///< broken: less than this machine is built for
};
[[nodiscard]] const char* name_of(Severity severity);

struct Finding {
  Severity severity = Severity::note;
  std::string code;     ///< stable, for rules: "port-down"
  std::string culprit;  ///< "mlx5_3", "0000:5d:00.0", "GPU 3"
  std::string what;     ///< in one line
  std::string remedy;
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// What the site says that a node has; where it says nothing, nothing is missing.
struct Expected {
  std::optional<std::uint32_t> gpus, ports;  ///< ports of the fabric, those that are down among them
};

/// Worst first. `limits`: of the job's GPUs.
[[nodiscard]] std::vector<Finding> findings_of(const Machine& machine, const Limits& limits,
                                               const Expected& expected = {});

}  // namespace netcheck::judge
