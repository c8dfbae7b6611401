// What this node's kernel has run out of while a fabric was open: memory for TCP, room for neighbours, room
// to track connections. Anybody with an account on the node can bring that about, for instance by a job's
// process that was left running; the check's own bytes then come late or not at all, and no counter of its
// device shows why. In the fabric child, as the probe user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "measure/batch.h"

namespace netcheck::fabric {

// Pure, of the kernel's own texts; nullopt: it does not say.
/// Of /proc/net/protocols: whether TCP is under pressure for memory, all of the machine's sockets together.
/// It is from tcp_mem[1] on, and until half of the most, tcp_mem[0], is reached again.
[[nodiscard]] std::optional<bool> tcp_is_pressed(std::string_view protocols);
/// Of /proc/net/stat/arp_cache, a line for each processor: how often there was no room for a neighbour, of
/// all of the machine's, since it was started.
[[nodiscard]] std::optional<std::uint64_t> times_full(std::string_view neighbours);

/// Whether a team's transport, as modules name it ("tcp/eth0,tcp/eth1", "Socket/eth0", "rdma/mlx5_0:1",
/// "IB/mlx5_0+GDR,P2P/CUMEM"), may need the kernel's TCP: all but those of RDMA alone. Pure.
[[nodiscard]] bool may_need_tcp(std::string_view transport);

class Shortage {
 public:
  /// From now on. `proc`: where procfs is.
  explicit Shortage(std::string proc = "/proc");
  /// Looks again: some hundred microseconds. To be called some ten times a second while something is
  /// measured.
  void look();
  /// The first that was seen to be lacking.
  [[nodiscard]] Lack seen() const { return seen_; }

 private:
  [[nodiscard]] Lack now() const;

  std::string proc_;
  std::optional<std::uint64_t> times_full_;
  Lack seen_ = Lack::nothing;
};

}  // namespace netcheck::fabric
