// One node's part of a check, as a state machine: does what the leader says with its Fabric, decides nothing
// but when a local wait is over. Every node has one, the leader's too.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "fabric/fabric.h"
#include "session/leader.h"
#include "session/messages.h"

namespace netcheck::session {

struct FromLeader {
  Message message;
};
struct LeaderFound {};  ///< proved itself; from now on messages may go to it
struct LeaderGone {
  std::string why;
};
using FollowerEvent = std::variant<LeaderFound, FromLeader, LeaderGone, Heed, fabric::Event, Tick>;

struct ToLeader {
  Message message;
};
// Orders to the fabric; the driver passes them on.
struct OpenFabric {
  fabric::Options options;
};
struct InviteFabric {
  Team team;
};
struct JoinFabric {
  fabric::Join join;
};
struct RunFabric {
  Batch batch;
};
struct LeaveFabric {
  std::uint32_t team = 0;
};
struct AbandonFabric {};
using FollowerAction = std::variant<ToLeader, OpenFabric, InviteFabric, JoinFabric, RunFabric, LeaveFabric,
                                    AbandonFabric, Finish>;

class Follower {
 public:
  /// `options`: what its fabric shall open. On node 0 the report of Finish is ignored: the leader's counts.
  Follower(Assignment assignment, Inventory inventory, fabric::Options options, Time start);
  Follower(Follower&&) noexcept;
  ~Follower();
  [[nodiscard]] std::vector<FollowerAction> on(FollowerEvent event, Time now);
  [[nodiscard]] Time wake() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace netcheck::session
