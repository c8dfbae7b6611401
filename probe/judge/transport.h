// What bytes went over between nodes, against what the site demands. Pure. A fabric that falls back to
// sockets without a word is no slow network, and no node's fault: its check fails, and nobody is blamed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// Of "IB/mlx5_0+GDR,P2P/CUMEM" the words for ways between nodes: "IB/mlx5_0+GDR".
[[nodiscard]] std::vector<std::string> ways_between_nodes(std::string_view transport);

/// "Socket/eth0", where Thresholds::transport is not what carries the bytes; nullopt: it is, or nothing is
/// demanded, or nothing is known.
[[nodiscard]] std::optional<std::string> other_transport(const Plan& plan, const History& history);

/// Something is demanded, teams were formed, and nobody said what carries the bytes.
[[nodiscard]] bool transport_unknown(const Plan& plan, const History& history);

}  // namespace netcheck::judge
