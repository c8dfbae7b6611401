// Numeric addresses and TCP sockets. See address.h.
#include "peers/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace netcheck::peers {
namespace {

/// How long sent bytes may stay unacknowledged before the connection counts as broken. Control frames share
/// links with the measurement's own traffic, where a queue holds tenths of a second and a lost frame is sent
/// again after 0.2, 0.6, 1.4 s: five seconds is none of that, and ends within a default check.
constexpr unsigned kUserTimeoutMs = 5'000;
/// An idle connection is asked after this many seconds, then every second; kUserTimeoutMs ends it.
constexpr int kKeepIdleSeconds = 2;
constexpr int kKeepIntervalSeconds = 1;

bool v4_stays(std::uint32_t host_order) {
  return host_order >> 24U == 127 || host_order == 0;
}

}  // namespace

std::optional<Address> parse_address(const std::string& number, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(number.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  if (found == nullptr || found->ai_addrlen > sizeof(sockaddr_storage)) return std::nullopt;
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  return address;
}

std::string host_of(const Address& address) {
  std::array<char, NI_MAXHOST> host{};
  const int rc =
      ::getnameinfo(address.get(), address.size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  if (rc != 0) return "?";
  const std::string text(host.data());
  // A listener on [::] sees IPv4 peers as mapped addresses; people know them without the prefix.
  constexpr std::string_view kMapped = "::ffff:";
  return text.starts_with(kMapped) && text.find('.') != std::string::npos ? text.substr(kMapped.size())
                                                                          : text;
}

std::string endpoint_text(const std::string& number, std::uint16_t port) {
  return number.find(':') == std::string::npos ? fmt::format("{}:{}", number, port)
                                               : fmt::format("[{}]:{}", number, port);
}

bool stays_on_node(const Address& address) {
  if (address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return v4_stays(ntohl(v4.sin_addr.s_addr));
  }
  if (address.family() != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof v6);
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)) return true;
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return false;
  std::uint32_t last = 0;
  std::memcpy(&last, v6.sin6_addr.s6_addr + 12, sizeof last);
  return v4_stays(ntohl(last));
}

std::string local_address_of(int socket) {
  Address address;
  address.size = sizeof address.storage;
  auto* raw = reinterpret_cast<sockaddr*>(&address.storage);
  if (::getsockname(socket, raw, &address.size) != 0) return "?";
  return host_of(address);
}

Connecting start_connecting(const Address& address) {
  Connecting result;
  result.socket.reset(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!result.socket) {
    result.error = std::strerror(errno);
    return result;
  }
  set_peer_options(result.socket.get());
  if (::connect(result.socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    result.error = std::strerror(errno);
    result.socket.reset();
  }
  return result;
}

void set_peer_options(int socket) noexcept {
  const auto set = [socket](int level, int option, auto value) {
    // A kernel that refuses one of these serves without it: the session's deadlines hold all the same.
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
}

}  // namespace netcheck::peers
