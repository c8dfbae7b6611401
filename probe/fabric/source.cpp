#include "fabric/source.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace netcheck::fabric {

namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

std::optional<Address> address_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  Address found{};
  if (address->sa_family == AF_INET) {
    const auto& four = *reinterpret_cast<const sockaddr_in*>(address);
    std::copy(kMapped.begin(), kMapped.end(), found.begin());
    std::memcpy(found.data() + kMapped.size(), &four.sin_addr, sizeof four.sin_addr);
    return found;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  std::memcpy(found.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, found.size());
  return found;
}

std::vector<Address> own_addresses() {
  std::vector<Address> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if ((one->ifa_flags & IFF_UP) != 0)
      if (const auto address = address_of(one->ifa_addr)) found.push_back(*address);
  ::freeifaddrs(all);
  return found;
}

}  // namespace netcheck::fabric
