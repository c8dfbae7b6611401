// Which run of which job on which nodes: the identity every message, record and notice is bound to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"

namespace netcheck {

/// One run of one job. A restart is another run.
struct JobRun {
  std::string cluster;        ///< SLURM_CLUSTER_NAME; [A-Za-z0-9_.-]{1,64}
  std::uint32_t job = 0;      ///< SLURM_JOB_ID, the raw id
  std::uint32_t restart = 0;  ///< SLURM_JOB_RESTART_COUNT
  friend bool operator==(const JobRun&, const JobRun&) = default;
};

/// A run and its nodes in NodeList order: rank order everywhere. Node 0 leads.
struct Roster {
  JobRun run;
  std::vector<std::string> nodes;
  std::uint32_t self = 0;  ///< index of this node in `nodes`
};

/// Largest number of nodes a NodeList may name: 16,384 is above the largest Slurm clusters in production.
inline constexpr std::size_t kMaxNodes = 16'384;

/// "n[1-3,07-09],login1" → names in order. The whole grammar that `scontrol show hostnames` takes: commas,
/// ranges, zero padding, several brackets in a name. Refused: more than kMaxNodes, names outside
/// [A-Za-z0-9_.-], unbalanced brackets, falling ranges.
[[nodiscard]] Result<std::vector<std::string>> expand_node_list(std::string_view list);

/// The reverse, short enough for a line: "n[1-3]"; "n1,n3"; cut with "…(+12)" beyond `max_bytes`.
[[nodiscard]] std::string fold_node_list(const std::vector<std::string>& names, std::size_t max_bytes = 120);

}  // namespace netcheck
