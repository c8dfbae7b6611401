// Which nodes share a leaf switch, from Slurm's topology.conf: what is slow only between leaf switches may be
// an uplink, which the traffic of other jobs shares, and not a node. Parsing is pure. Used by the leader's
// supervisor before a job is refused or a node drained, as root.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"

namespace netcheck::prolog {

class Switches {
 public:
  /// No switch is known: then all nodes are taken to share one.
  Switches() = default;
  /// Of topology.conf's text: the lines with SwitchName= (or BlockName=) and Nodes=. What has none of these
  /// says nothing of nodes. Error: a list of nodes that cannot be read, or an Include, which is not followed.
  [[nodiscard]] static Result<Switches> parse(std::string_view text);

  [[nodiscard]] bool share(const std::string& a, const std::string& b) const;
  /// Some two of them do not.
  [[nodiscard]] bool part(const std::vector<std::string>& nodes) const;

 private:
  std::map<std::string, std::set<std::string>> leaves_;  ///< by node
};

/// topology.conf of this node's Slurm: beside SLURM_CONF, also where slurmd fetched both from the controller.
[[nodiscard]] std::filesystem::path topology_file();
/// No switches where there is no such file. Error: it cannot be read or understood.
[[nodiscard]] Result<Switches> read_switches(const std::filesystem::path& file);

}  // namespace netcheck::prolog
