// Numeric addresses: text to sockaddr and back, and which of them never leave a node. No look-ups. Used by
// lead.cpp, follow.cpp and clerk_worker.cpp, as the probe user.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "system/descriptor.h"

namespace netcheck::peers {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};

/// "10.0.0.3", "fe80::1%eth0". nullopt: not a number.
[[nodiscard]] std::optional<Address> parse_address(const std::string& number, std::uint16_t port);
/// "10.0.0.3": without the port. "?" when it is of no known family.
[[nodiscard]] std::string host_of(const Address& address);
/// "10.0.0.3:703", "[fe80::1%eth0]:703".
[[nodiscard]] std::string endpoint_text(const std::string& number, std::uint16_t port);
/// 127.0.0.0/8, ::1, and the unspecified addresses, which connect to loopback too; also mapped into IPv6.
[[nodiscard]] bool stays_on_node(const Address& address);
/// The address of our end of a connected socket, without the port.
[[nodiscard]] std::string local_address_of(int socket);

/// A non-blocking TCP socket on its way to `address`: writable once connected or refused (SO_ERROR says
/// which). Error text: why it could not even begin.
struct Connecting {
  system::Descriptor socket;
  std::string error;
};
[[nodiscard]] Connecting start_connecting(const Address& address);

/// What every connection between peers has: no delay, and an end when the other host vanishes.
void set_peer_options(int socket) noexcept;

}  // namespace netcheck::peers
