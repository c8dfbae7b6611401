// The job's other nodes: rendezvous, proof of identity, an encrypted channel. The leader (node 0) listens on
// a descriptor that the supervisor bound; followers try its few ports until one proves to be their job's
// leader.
//
//   follower → leader   hello:   credential{run, sender, receiver, nonce}
//   leader → follower   welcome: credential{run, sender, receiver, both nonces, session key}
//   then secretstream frames both ways, keys derived from the session key; the follower's first one proves
//   that it read it.
//
// Frames are at most kMaxFrame bytes; before proof a connection may send kMaxHello bytes within
// kHelloPatience and at most kMaxStrangers connections are open. Whatever does not fit is dropped and named
// in the log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "contract/job.h"
#include "contract/units.h"
#include "peers/clerk.h"
#include "system/descriptor.h"
#include "system/loop.h"

namespace netcheck::peers {

struct Proven {
  std::uint32_t node = 0;
  std::string local_address;  ///< of our end: tells which interface leads to the others
};
struct Heard {
  std::uint32_t node = 0;
  Bytes message;
};
struct Gone {
  std::uint32_t node = 0;
  std::string why;
};  ///< after Proven only; once
/// Somebody else's failed attempt, or a reason why rendezvous does not get on: for the log and for a
/// verdict's reason.
struct Dropped {
  std::string from, why;
};
using Event = std::variant<Proven, Heard, Gone, Dropped>;
using Sink = std::function<void(Event)>;

inline constexpr std::size_t kMaxFrame =
    16u << 20;  ///< a leader's card scatter for 8 nodes is < 64 KiB; a thousand inventories come one by one
inline constexpr std::size_t kMaxHello = 64u << 10;  ///< a munge credential of 300 bytes is < 1 KiB

class Peers {
 public:
  virtual ~Peers() = default;
  /// Queued; silently nothing when that node is gone. Node 0 for a follower.
  virtual void send(std::uint32_t node, const Bytes& message) = 0;
  /// Everything queued for every node has been handed to the kernel.
  [[nodiscard]] virtual bool flushed() const = 0;
};

/// Ports a job's leader may listen on, in the order in which they are tried: `kPortsPerJob` consecutive ones
/// from the job id.
inline constexpr unsigned kPortsPerJob = 4;  ///< the leader takes the first that is free
[[nodiscard]] std::vector<std::uint16_t> ports_of(std::uint32_t job, std::uint16_t first, std::uint16_t last);

/// `listener`: bound and listening.
[[nodiscard]] std::unique_ptr<Peers> lead(system::Loop& loop, Clerk& clerk, Roster roster,
                                          system::Descriptor listener, Sink sink);
/// `address`: host name or number of the leader; looked up by the clerk; loopback results are refused when
/// there is more than one node (unless `allow_loopback`, for tests and single-machine use). Retries until
/// `deadline`.
[[nodiscard]] std::unique_ptr<Peers> follow(system::Loop& loop, Clerk& clerk, Roster roster,
                                            std::string address, std::vector<std::uint16_t> ports,
                                            bool allow_loopback, Time deadline, Sink sink);

}  // namespace netcheck::peers
