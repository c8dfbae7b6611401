// What one node tells the others of its hardware: traits to be compared, what it sees wrong with itself, and
// how fast its rails are built to be. Some hundred bytes, since every node of a job sends its own. Pure.
//
// It comes from a node that may lie: whatever it says, it says of itself alone, and no text of it stands in
// the line (flaws.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/flaw.h"
#include "judge/fleet.h"
#include "judge/hardware.h"

namespace netcheck::judge {

/// One rail, as it is built: of those that the check opened, and of those that it would have if they were up.
struct RailSpeed {
  std::string lane;  ///< as fabric::Options name it: "mlx5_0:1", "eth0"
  bool rdma = false;
  std::optional<Rate> nominal;    ///< with all of the node's rails busy; nullopt: unknown
  std::vector<std::string> gpus;  ///< lanes that go over it, where lanes are GPUs
  friend bool operator==(const RailSpeed&, const RailSpeed&) = default;
};

struct OwnFlaw {
  Flaw flaw = Flaw::port_down;
  std::string culprit;  ///< "mlx5_3", "GPU 3"
  std::string what;     ///< in one line; for records
  friend bool operator==(const OwnFlaw&, const OwnFlaw&) = default;
};

struct NodeHardware {
  std::vector<Trait> traits;
  std::vector<OwnFlaw> flaws;  ///< worst first, at most kMaxOwnFlaws
  std::vector<RailSpeed> rails;
  friend bool operator==(const NodeHardware&, const NodeHardware&) = default;
};
/// A node with so many has troubles that nobody reads about in a line.
inline constexpr std::size_t kMaxOwnFlaws = 8;

/// Of a machine whose fabric ports are told (topology::tell_roles), and the lanes that the check opens on it.
/// A rail that is down counts as one of the check's, as it would be had it not gone down. Where lanes are
/// GPUs (by their PCI addresses) the rails are the ports that serve them. `expected`: what the site says of
/// such nodes; `contradicted`: where its description of them and the machine differ.
[[nodiscard]] NodeHardware hardware_of(const Machine& machine, const std::vector<std::string>& lanes,
                                       const Expected& expected = {},
                                       const std::vector<Finding>& contradicted = {});

[[nodiscard]] Json to_json(const NodeHardware& hardware);
/// Throws Malformed.
[[nodiscard]] NodeHardware hardware_from_json(const Json& value);

}  // namespace netcheck::judge
