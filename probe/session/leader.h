// The leader's part of a check, as a state machine: events in, actions out, no I/O, no clock of its own. It
// meets the followers, asks judge::next what to measure, gathers, and ends with a Report. Node 0's own
// follower speaks to it like all others. Called by the driver (probe.cpp) and by the simulator.
//
//   rendezvous   Present of every node by rendezvous_deadline ── missing, unlike or declined → close
//   open         Opened of every node ── Broken → close
//   then what judge::next asks for, until it says Stop:
//     form       Invite → Cards, Connect → Answers
//     measure    Run → Answers
//   close        judge::decide → Close to all → Report
//
// A node that falls silent or goes away is Missing, and that ends the check at once, wherever it is. What is
// decided before all have come is told to the others as they come, until the rendezvous is over.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "session/events.h"
#include "session/messages.h"

namespace netcheck::session {

struct FromNode {
  std::uint32_t node = 0;
  Message message;
};
/// Its channel ended, or said something that cannot be read.
struct NodeGone {
  std::uint32_t node = 0;
  std::string why;
};
using LeaderEvent = std::variant<FromNode, NodeGone, Heed, Interrupted, Tick>;

struct ToNode {
  std::uint32_t node = 0;
  Message message;
};
using LeaderAction = std::variant<ToNode, Finish>;

class Leader {
 public:
  Leader(Assignment assignment, Time start);
  Leader(Leader&&) noexcept;
  ~Leader();
  [[nodiscard]] std::vector<LeaderAction> on(LeaderEvent event, Time now);
  /// When it wants a Tick. Never later than the assignment's deadline.
  [[nodiscard]] Time wake() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace netcheck::session
