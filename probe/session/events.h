// What leader and follower have in common as machines: events that both take, the action that ends both, and
// the times by which each counts on the other.
#pragma once

#include <chrono>
#include <string>

#include "session/report.h"

namespace netcheck::session {

/// Something for the log (a dropped stranger), and for the reason should the rendezvous fail.
struct Heed {
  std::string text;
};
/// The check is to end now, from outside (SIGTERM).
struct Interrupted {
  std::string why;
};
struct Tick {};

/// The last action of all; nothing follows it.
struct Finish {
  Report report;
};

/// Time kept back at the end, twice: for Close to reach the followers, then for each node's report. 150 ms is
/// several round trips through a full shaper queue (50 ms).
inline constexpr Ns kClosing = std::chrono::milliseconds(150);
/// What an answer may take beyond its step's allowance: control frames share the measured links, whose queues
/// hold 50 ms, and a fabric child that is given up on is killed and reaped first.
inline constexpr Ns kAnswerGrace = std::chrono::milliseconds(400);

}  // namespace netcheck::session
