// Why a node's part of a step did not end well; the seam between evidence about the network and none. Pure.
#pragma once

#include <cstdint>

namespace netcheck::judge {

enum class Trouble : std::uint8_t {
  no_bytes,    ///< its fabric lives and waits; bytes did not come: evidence about the network
  late,        ///< its fabric lives, and a step of its own (forming a team) did not end in time: no evidence
  child_died,  ///< the fabric process ended: no evidence
  child_silent,  ///< the fabric process gives no sign of life: no evidence
  refused        ///< the library refused (device, memory, version): no evidence
};

}  // namespace netcheck::judge
