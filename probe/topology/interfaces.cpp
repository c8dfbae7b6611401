// getifaddrs(3) and one ioctl. As the probe user.
#include "topology/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "system/descriptor.h"

namespace netcheck::topology {
namespace {

Interface& entry(std::vector<Interface>& interfaces, const std::string& name) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const Interface& interface) { return interface.name == name; });
  if (found != interfaces.end()) return *found;
  interfaces.push_back({});
  interfaces.back().name = name;
  return interfaces.back();
}

// ifaddrs hands out sockaddr*; copying out is the way that neither aliasing nor alignment rules forbid.
template <typename Address>
Address copy_of(const sockaddr* address) {
  Address copy{};
  std::memcpy(&copy, address, sizeof copy);
  return copy;
}

std::optional<std::string> global_address(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto v4 = copy_of<sockaddr_in>(address);
    const std::uint32_t host = ntohl(v4.sin_addr.s_addr);
    const bool loopback = (host >> 24) == 127;
    const bool link_local = (host >> 16) == 0xA9FE;  // 169.254.0.0/16, RFC 3927
    if (loopback || link_local) return std::nullopt;
    return inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  }
  const auto v6 = copy_of<sockaddr_in6>(address);
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return std::nullopt;
  return inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
}

std::string mac_of(const sockaddr_ll& link) {
  std::string text;
  const std::size_t length = std::min<std::size_t>(link.sll_halen, sizeof link.sll_addr);
  for (std::size_t i = 0; i < length; ++i)
    text += fmt::format("{}{:02x}", i == 0 ? "" : ":", link.sll_addr[i]);
  return text;
}

void ask_mtu(std::vector<Interface>& interfaces) {
  const system::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  for (Interface& interface : interfaces) {
    ifreq request{};
    interface.name.copy(request.ifr_name, IFNAMSIZ - 1);
    if (::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0)
      interface.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
  }
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
    Interface& interface = entry(interfaces, at->ifa_name);
    interface.loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
    interface.running = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING) != 0;
    if (at->ifa_addr == nullptr) continue;
    if (at->ifa_addr->sa_family == AF_PACKET) {
      const auto link = copy_of<sockaddr_ll>(at->ifa_addr);
      interface.index = static_cast<std::uint32_t>(link.sll_ifindex);
      interface.mac = mac_of(link);
    } else if (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6) {
      if (auto address = global_address(at->ifa_addr)) interface.addresses.push_back(std::move(*address));
    }
  }
  ask_mtu(interfaces);
  return interfaces;
}

}  // namespace netcheck::topology
