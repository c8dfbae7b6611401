// What is asked of who connects: where the packets come from (door.h), or a key (greeting.h). In the fabric
// child and its modules.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace netcheck::fabric {

/// As in IPv6, IPv4 mapped into it (RFC 4291, 2.5.5.2). Network order.
using Address = std::array<std::uint8_t, 16>;

/// What a process of the check says first wherever it connects. A secret of the check.
using Key = std::array<std::uint8_t, 32>;

/// nullopt: neither IPv4 nor IPv6.
[[nodiscard]] std::optional<Address> address_of(const sockaddr* address);
/// Of all interfaces of this node that are up: a peer's packets may carry any of them as their source.
[[nodiscard]] std::vector<Address> own_addresses();

}  // namespace netcheck::fabric
