// What a node publishes so that others can reach its lanes: UCX worker addresses and the version that made
// them; and the key by which they know its connections, a secret, so a card travels sealed. Pure. Used by the
// module.
#pragma once

#include <string>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "fabric/source.h"

namespace netcheck::fabric::ucx {

struct Card {
  std::string version;           ///< of UCX, "1.13.1"
  std::vector<Bytes> addresses;  ///< by lane; empty: the lane is down
  Key key{};                     ///< that its connections begin with
};

[[nodiscard]] Bytes encode(const Card& card);
/// Strict. `from` names the node in errors. Beyond the form an address is UCX's own secret: a wrong one may
/// crash it, which is why UCX lives in a process of its own.
[[nodiscard]] Result<Card> decode_card(const Bytes& frame, const std::string& from);

/// UCX keeps its wire format within a minor version; between others it promises nothing before 1.16.
[[nodiscard]] bool speak_together(const std::string& one, const std::string& other);

}  // namespace netcheck::fabric::ucx
