// This node's inventory: sysfs and hwloc → contract's Inventory. As the probe user; needs no root. `fsroot`
// replaces "/" in tests.
#pragma once

#include <string>
#include <vector>

#include "contract/inventory.h"

namespace netcheck::topology {

struct Wanted {
  std::vector<std::string> devices;  ///< the site's globs in rail order; empty: choose
  std::vector<std::string> exclude;  ///< the site's globs
};

/// What is known; what is not stays unknown and is no error. NICs that are no fabric NICs carry why_not:
/// loopback, container and virtual bridges (docker*, br-*, virbr*, veth* with a peer in another namespace and
/// a container's name), down, no address.
[[nodiscard]] Inventory take_inventory(const std::string& node, const Wanted& wanted,
                                       const std::string& fsroot = "/");

/// The class of hardware: the board's name, or the CPU's where nobody filled that in.
[[nodiscard]] std::string machine_of(const std::string& fsroot = "/");
/// The model of the node's first NVIDIA GPU as its driver names it; "" where the driver knows of none.
[[nodiscard]] std::string gpu_model_of(const std::string& fsroot = "/");

/// The lanes to open, in order: the site's devices where given (each glob must match; Error names the one
/// that does not); else all active RDMA ports; else the one interface that has `local_address` (the one that
/// leads to the other nodes).
[[nodiscard]] Result<std::vector<std::string>> choose_lanes(const Inventory& inventory, const Wanted& wanted,
                                                            const std::string& local_address);

}  // namespace netcheck::topology
