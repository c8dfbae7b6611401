// What the kernel has handed to an interface, as its queueing discipline counts: each packet with headers of
// its own, also those that a sender gave it as one. A virtual interface's own counter leaves those headers
// out. In the fabric child; needs no privilege.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "system/descriptor.h"

namespace netcheck::fabric {

class Queue {
 public:
  explicit Queue(const std::string& interface);
  /// Bytes since the discipline was set up; always 0 where the interface has none (noqueue). nullopt: the
  /// kernel does not say. Takes some ten microseconds.
  [[nodiscard]] std::optional<std::uint64_t> sent() const;

 private:
  int interface_;  ///< the kernel's index; 0: there is no such interface
  system::Descriptor socket_;
};

}  // namespace netcheck::fabric
