// What one node is, as far as a network check needs it: its fabric NICs, its class of hardware, its versions.
// Filled by topology (root-free), carried in the follower's first message, kept in the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/json.h"
#include "contract/units.h"

namespace netcheck {

struct Nic {
  std::string name;        ///< "eth0", "mlx5_0"
  std::string ucx_device;  ///< as UCX_NET_DEVICES names it: "eth0", "mlx5_0:1"
  std::string address;     ///< first global IPv4/IPv6 address; empty where none
  bool rdma = false;
  bool up = false;            ///< operstate up / port ACTIVE
  std::optional<Rate> speed;  ///< rated; unknown for veth (its 10000 means nothing), -1, "Unknown"
  std::optional<std::uint32_t> mtu;
  std::optional<std::int32_t> numa;
  std::string why_not;  ///< empty: a fabric NIC. Else why it is none: "loopback", "container bridge",
                        ///< "excluded by the site"
};

struct Inventory {
  std::string node;
  std::string kernel;                                              ///< uname -r
  std::string version;                                             ///< of netcheck
  std::uint32_t sockets = 0, numa_nodes = 0, cores = 0, gpus = 0;  ///< 0: unknown
  std::string
      machine;  ///< class of hardware: model name of the board or CPU; nodes are compared within one class
  std::vector<Nic> nics;  ///< all of them, those that are no fabric NIC with their reason
};

[[nodiscard]] Json to_json(const Inventory& inventory);
/// Throws Malformed (for read_frame).
[[nodiscard]] Inventory inventory_from_json(const Json& value);

}  // namespace netcheck
