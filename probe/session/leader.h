// The leader's part of a check, as a state machine: events in, actions out, no I/O, no clock of its own. It
// meets the followers, asks judge::next what to measure, gathers, and ends with a Report. Node 0's own
// follower speaks to it like all others.
//
//   rendezvous: Present and Opened of every node by rendezvous_deadline ── missing, or unlike → finish
//   form:       Invite → Cards → Connect → Answers
//   measure:    Run → Answers
//   finish:     judge::decide → Close to all → Report
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "session/messages.h"
#include "session/report.h"

namespace netcheck::session {

struct FromNode {
  std::uint32_t node = 0;
  Message message;
};
struct NodeGone {
  std::uint32_t node = 0;
  std::string why;
};
struct Heed {
  std::string text;
};  ///< something for the log (a dropped stranger), and for the reason should rendezvous fail
struct Tick {};
using LeaderEvent = std::variant<FromNode, NodeGone, Heed, Tick>;

struct ToNode {
  std::uint32_t node = 0;
  Message message;
};
struct Finish {
  Report report;
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

/// Time kept back at the end for Close to reach the followers and for the report: 150 ms, some RTTs of a
/// loaded node.
inline constexpr Ns kClosing = std::chrono::milliseconds(150);
/// What an answer may take beyond its step's allowance: control frames share the measured links, tbf queues
/// hold 50 ms.
inline constexpr Ns kAnswerGrace = std::chrono::milliseconds(400);

}  // namespace netcheck::session
