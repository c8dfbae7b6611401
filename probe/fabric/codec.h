// What the probe and its fabric child say to each other over their socket: requests one way, replies the
// other. CBOR, read strictly on both sides: the probe does not trust what a crashing library left in a frame.
// Used by child.cpp (as the probe user, in the probe) and host.cpp (in the child).
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "fabric/fabric.h"

namespace netcheck::fabric {

struct Open {
  Options options;
};
struct Invite {
  Team team;
  std::uint32_t self = 0;
};
struct Run {
  Batch batch;
};
struct Leave {
  std::uint32_t team = 0;
};
using Request = std::variant<Open, Invite, Join, Run, Leave>;

/// A sign of life, with the samples so far of every running batch: (batch id, sample).
struct Alive {
  std::vector<std::pair<std::uint32_t, Sample>> partial;
};
using Reply = std::variant<Event, Alive>;

/// Largest frame either way: the cards of a team of 4,096 nodes with 8 rails of RDMA addresses (≤ 400 bytes
/// each) fit, and so do the samples of 64 lanes with 4,096 iterations.
inline constexpr std::size_t kMaxFrame = std::size_t{16} << 20U;
/// Longest text of a failure that is passed on.
inline constexpr std::size_t kMaxDetail = 512;

[[nodiscard]] Bytes encode(const Request& request);
[[nodiscard]] Bytes encode(const Reply& reply);
/// Strict: the kind is known, every field is there, of its type and within its bounds.
[[nodiscard]] Result<Request> decode_request(const Bytes& frame);
[[nodiscard]] Result<Reply> decode_reply(const Bytes& frame);

}  // namespace netcheck::fabric
