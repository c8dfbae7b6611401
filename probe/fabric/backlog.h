// Whether the kernel has turned connections away on this node before any process could take them: a stranger
// who connects often enough, and says nothing, fills a listener's queue, and then nobody's bytes come
// through. In the fabric child, as the probe user.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace netcheck::fabric {

/// Of /proc/net/netstat: connections that found a listener's queue full, of all listeners in the network
/// namespace, since it began. nullopt: it does not say. Pure.
[[nodiscard]] std::optional<std::uint64_t> refused_for_want_of_room(std::string_view netstat);

class Backlog {
 public:
  /// Counts from now on.
  Backlog();
  [[nodiscard]] bool overflowed() const;

 private:
  std::optional<std::uint64_t> before_;
};

}  // namespace netcheck::fabric
