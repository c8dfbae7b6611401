// What a network device carries in all, the check's own bytes and everybody else's: the kernel's counters. In
// the fabric child. What others carried while a way was measured was not to be had by the check, and nobody
// is to blame for it: judge/standing.h says what follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/queue.h"
#include "system/descriptor.h"

namespace netcheck::fabric {

/// Bytes into and out of a device.
struct Octets {
  std::uint64_t in = 0, out = 0;
  friend bool operator==(const Octets&, const Octets&) = default;
};

class Meter {
 public:
  /// `device`: "eth0", or "mlx5_0:1" with a port. Of a bond, a VLAN or a macvlan the devices below it are
  /// read: others may use those without it. `sys`: where sysfs is.
  explicit Meter(const std::string& device, const std::string& sys = "/sys");
  /// Since the device came up. nullopt: the kernel does not say. Takes some ten microseconds.
  [[nodiscard]] std::optional<Octets> read() const;
  /// Bytes out as the interfaces' queues count them, which know of headers that a virtual device leaves out.
  /// nullopt: not all of them have a queue that counts.
  [[nodiscard]] std::optional<std::uint64_t> queued() const;
  /// Whether it is read of network interfaces, which may count several packets as one. An RDMA port counts
  /// what is on the wire.
  [[nodiscard]] bool of_interfaces() const { return of_interfaces_; }

 private:
  struct Counter {
    system::Descriptor in, out;
    std::uint64_t unit = 1;  // bytes
  };
  void add(const std::string& folder, const char* in, const char* out, std::uint64_t unit);
  void add_interface(const std::string& interfaces, const std::string& name, int depth);

  std::vector<Counter> counters_;
  std::vector<Queue> queues_;
  bool of_interfaces_ = false;
};

/// A device and this process's own payload on it, at one moment.
struct Load {
  std::optional<Octets> device;
  std::optional<std::uint64_t> queued;  ///< Meter::queued()
  Octets own;
};

/// What others carried from one moment to a later one: rather less than the truth, since of the check's own
/// traffic only the payload is known. 0 where a device does not say. `uncounted`: bytes that came in besides,
/// of all devices (arrivals.h).
[[nodiscard]] Octets others_between(const Load& before, const Load& after, std::uint64_t uncounted = 0);

}  // namespace netcheck::fabric
