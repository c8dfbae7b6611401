// Which ways NCCL's bytes take, and what forming a communicator was spent on, from its own log: the only
// place where it says so. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contract/units.h"

namespace netcheck::fabric::nccl {

/// Of a log at level INFO, the connections made from byte `since` on: "IB/mlx5_0+GDR", "RoCE/mlx5_1",
/// "Socket/eth0", "AWS Libfabric/2+GDR" (a plugin's device by its number), "P2P/CUMEM", "SHM", "NVLS",
/// "CollNet"; each once, in the order of the log. The devices' names may stand anywhere in it.
[[nodiscard]] std::vector<std::string> transports_in(std::string_view log, std::size_t since = 0);

/// What the ranks of this process say from byte `since` on of the parts of their init, the longest of each:
/// "total", "kernels", "bootstrap", "topo", … Hundredths of a second; NCCL 2.20 and later. Empty: nothing.
[[nodiscard]] std::map<std::string, Ns> init_parts_in(std::string_view log, std::size_t since = 0);

}  // namespace netcheck::fabric::nccl
