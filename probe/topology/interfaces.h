// The network interfaces of this process's own network namespace and their addresses. As the probe user.
//
// The kernel is asked (getifaddrs), not /sys/class/net: a sysfs mounted in another network namespace lists
// the interfaces of that one. Tests pass a list of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/inventory.h"

namespace netcheck::topology {

struct Interface {
  std::string name;
  std::uint32_t index = 0;
  std::string mac;  ///< "02:42:ac:11:00:02"; empty where the link has none
  bool loopback = false;
  bool running = false;                ///< administratively up, and with a carrier
  std::vector<std::string> addresses;  ///< numeric, global ones only: neither loopback nor link-local
  std::optional<std::uint32_t> mtu;
};

/// In the kernel's order (by index). Empty when it cannot be asked.
[[nodiscard]] std::vector<Interface> list_interfaces();

/// The NICs among `interfaces`, with what `fsroot`/sys/class/net knows of them, then the RDMA ports of
/// `fsroot`/sys/class/infiniband. `exclude`: the site's globs.
[[nodiscard]] std::vector<Nic> list_nics(const std::vector<Interface>& interfaces,
                                         const std::vector<std::string>& exclude, const std::string& fsroot);

/// The fastest link mode that the card behind `interface` supports, whatever it runs at; nullopt where its
/// driver tells of none (InfiniBand, virtual cards).
[[nodiscard]] std::optional<Rate> fastest_supported(const std::string& interface);
/// Of a set of modes as ETHTOOL_GLINKSETTINGS has it.
[[nodiscard]] std::optional<Rate> fastest_mode(std::span<const std::uint32_t> modes);

/// Whether `text` fits one of the globs (fnmatch(3)).
[[nodiscard]] bool matches_any(const std::vector<std::string>& globs, const std::string& text);

/// First line of a small file without its line end; nullopt when it cannot be read. sysfs answers some reads
/// with EINVAL ("speed" of a link that is down): unknown, no error.
[[nodiscard]] std::optional<std::string> first_line(const std::string& path);

inline constexpr const char* kExcluded = "excluded by the site";
inline constexpr const char* kFunction = "SR-IOV function";

}  // namespace netcheck::topology
