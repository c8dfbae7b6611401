// One node's part of a check, as a state machine: does what the leader says with its Fabric, decides nothing
// but when a local wait is over. Every node has one, the leader's too. Called by the driver (probe.cpp) and
// by the simulator.
//
//   LeaderFound  → Present, and nothing more where the assignment declines
//   LanesChosen  → open the fabric → Opened, or Broken; Opened once the hardware has been looked at, too
//   Invite       → leave the former teams, invite → Cards
//   Connect      → join → Answer
//   Run          → run → Answer
//   Close        → Finish with the leader's verdict
//
// What is not done within its allowance is given up on: the fabric is abandoned, the trouble and the partial
// samples are the answer, and the fabric opens again at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fabric/fabric.h"
#include "session/events.h"
#include "session/messages.h"

namespace netcheck::session {

/// The leader proved itself; from now on messages may go to it.
struct LeaderFound {};
/// What the fabric shall open, once it is known which interface leads to the others; or why nothing can be.
struct LanesChosen {
  Result<fabric::Options> options;
  /// So long the leader hears nothing of the open fabric while the hardware is looked at (HardwareSeen).
  Time hardware_until{};
};
/// What there is to say of this node's hardware; nullopt, and why: it could not be looked at.
struct HardwareSeen {
  std::optional<judge::NodeHardware> hardware;
  std::string why_not;
};
struct FromLeader {
  Message message;
};
/// Its channel ended, or said something that cannot be read.
struct LeaderGone {
  std::string why;
};
using FollowerEvent = std::variant<LeaderFound, LanesChosen, HardwareSeen, FromLeader, LeaderGone, Heed,
                                   Interrupted, fabric::Event, Tick>;

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
  /// On node 0 the report of Finish is ignored: the leader's counts.
  Follower(Assignment assignment, Inventory inventory, Time start);
  Follower(Follower&&) noexcept;
  ~Follower();
  [[nodiscard]] std::vector<FollowerAction> on(FollowerEvent event, Time now);
  /// When it wants a Tick. Never later than the assignment's deadline.
  [[nodiscard]] Time wake() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How long an abandoned fabric may take to say what became of its work. Killing and reaping a process takes
/// milliseconds; half of kAnswerGrace still leaves time for the answer's way.
inline constexpr Ns kAbandonGrace = kAnswerGrace / 2;

}  // namespace netcheck::session
