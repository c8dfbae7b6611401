// How long a fabric's steps may take. Pure. Used by leader and follower, who count on each other by it.
#pragma once

#include <string>

#include "contract/units.h"

namespace netcheck::session {

/// Each is cut to what is left of the check (Leader, Follower).
struct Patience {
  Ns open{};     ///< until the fabric is ready
  Ns invite{};   ///< local work, but a fabric given up on a moment ago may first have to open again
  Ns join{};     ///< until a team is formed
  Ns forming{};  ///< what the script counts for a team: Plan::forming
  /// What a team's forming did not bring is no bytes, and so says something about the network. Over NCCL it
  /// does not: its init waits for whoever is late in whatever it does.
  bool joining_tells = true;
};

[[nodiscard]] Patience patience_with(const std::string& fabric);

}  // namespace netcheck::session
