// What a node publishes so that others can form a communicator with it: NCCL's version, the unique id where
// this node made it, and the addresses its packets come from. Pure. Used by the module.
//
// The card holds a secret, the unique id: it travels in the session's sealed channel alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "fabric/nccl/abi.h"
#include "fabric/source.h"

namespace netcheck::fabric::nccl {

struct Card {
  std::string version;           ///< of NCCL, "2.28.9"
  std::optional<NcclId> id;      ///< the team's first node's
  std::vector<Address> sources;  ///< that its packets may come from
};

[[nodiscard]] Bytes encode(const Card& card);
/// Strict. `from` names the node in errors.
[[nodiscard]] Result<Card> decode_card(const Bytes& frame, const std::string& from);

/// Where the other ranks will look for the first: NCCL keeps a socket address in its unique id.
struct Bootstrap {
  std::string address;  ///< "10.1.0.7:34567", "[fe80::1]:34567"; "" where NCCL keeps it in another way
  bool loopback = false;
};
[[nodiscard]] Bootstrap bootstrap_of(const NcclId& id);

}  // namespace netcheck::fabric::nccl
