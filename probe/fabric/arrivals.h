// What has come in that no device counted. A device that is given several packets as one (a sender's
// segments, to a virtual device) counts one packet and one header: with a byte of payload in each, a link
// that is full reads as a thirtieth of it. The kernel's IP knows how many packets there were. In the fabric
// child.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace netcheck::fabric {

/// On all devices of this network namespace, since it began.
struct Arrivals {
  std::uint64_t on_wire = 0;  ///< IP packets, as they were sent
  std::uint64_t counted = 0;  ///< packets, as the devices count
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

/// nullopt: the kernel does not say. Takes a tenth of a millisecond. `proc`: where procfs is.
[[nodiscard]] std::optional<Arrivals> arrivals(const std::string& proc = "/proc");

/// Bytes of headers from one moment to a later one, rather less than the truth: the check's own among them.
[[nodiscard]] std::uint64_t uncounted_between(const std::optional<Arrivals>& before,
                                              const std::optional<Arrivals>& after);

}  // namespace netcheck::fabric
