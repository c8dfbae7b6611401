// Inside picture: the tree of a machine without what a reader need not see. Ports of bridges with one thing
// below them fold into it; a switch stays, since it is where GPUs and NICs meet. Pure; shared by text and
// SVG.
#pragma once

#include <string>
#include <vector>

#include "contract/machine.h"
#include "measure/locality.h"

namespace netcheck::picture {

enum class Part : std::uint8_t { socket, numa, bridge, switch_, gpu, port, nic, nvswitch };

struct Node {
  Part part = Part::bridge;
  std::string name;      ///< "GPU 0", "mlx5_0 (ib0)", "switch", "NUMA 0"
  std::string place;     ///< PCI address; empty of what has none
  std::string about;     ///< model; or rate, state and MTU of a port
  std::string link;      ///< to what is above: "Gen5 x16 = 504 Gb/s"; "Gen3 x8 of Gen5 x16"
  bool trouble = false;  ///< link or port worse than it could be
  std::vector<Node> below;
};

/// Sockets, or NUMA nodes where sockets are not known; last what has no known place.
[[nodiscard]] std::vector<Node> outline(const Machine& machine);

/// Bonds, bridges, loopback: ports without a card. "bond0 = eth2 + eth3, 200 Gb/s"
[[nodiscard]] std::vector<std::string> ports_without_card(const Machine& machine);

/// "GPU 3"; of a port its name, and "mlx5_0 (ib0)" where its interface is called otherwise.
[[nodiscard]] std::string name_of(const NetworkPort& port);

}  // namespace netcheck::picture
