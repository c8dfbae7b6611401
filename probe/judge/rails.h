// Which lanes share a rail. Over UCX a lane is a rail. A GPU is none: several may go through one port, one
// through several, and what is asked of a rail is asked of a port. Pure. Used by pairs and standing.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// Lanes whose bytes go over the same ports.
struct Rail {
  std::vector<std::uint16_t> lanes;  ///< of those that all nodes have; rising
  double ports = 1;                  ///< how many
  friend bool operator==(const Rail&, const Rail&) = default;
};

/// Of the lanes that all nodes have, by their first. As more than half of the nodes say of theirs: one that
/// lies changes nothing. Where nothing so is said, each lane is one.
[[nodiscard]] std::vector<Rail> rails_of(const Plan& plan);

}  // namespace netcheck::judge
