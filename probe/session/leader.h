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

#include "session/messages.h"
#include "session/report.h"

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
/// Something for the log (a dropped stranger), and for the reason should the rendezvous fail.
struct Heed {
  std::string text;
};
/// The check is to end now, from outside (SIGTERM).
struct Interrupted {
  std::string why;
};
struct Tick {};
using LeaderEvent = std::variant<FromNode, NodeGone, Heed, Interrupted, Tick>;

struct ToNode {
  std::uint32_t node = 0;
  Message message;
};
/// The last action of all; nothing follows it.
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

/// Time kept back at the end, twice: for Close to reach the followers, then for each node's report. 150 ms is
/// several round trips through a full shaper queue (50 ms).
inline constexpr Ns kClosing = std::chrono::milliseconds(150);
/// What an answer may take beyond its step's allowance: control frames share the measured links, whose queues
/// hold 50 ms, and a fabric child that is given up on is killed and reaped first.
inline constexpr Ns kAnswerGrace = std::chrono::milliseconds(400);
/// What opening a fabric may take: a process start and a library's start-up, 0.1 s where idle, more on a node
/// that is starting a job.
inline constexpr Ns kOpenAllowance = std::chrono::milliseconds(1500);
/// What Invite may take: local work, but a fabric given up on a moment ago may first have to open again.
inline constexpr Ns kInviteAllowance = kOpenAllowance;
/// What Connect may take: endpoints to 8 nodes; connections come with the first batch.
inline constexpr Ns kJoinAllowance = std::chrono::milliseconds(1000);

}  // namespace netcheck::session
