// What the probe reports to the supervisor when a check is over: on the leader the whole history, from which
// the supervisor computes the verdict itself; on a follower its own samples and the line that the leader
// sent. JSON on a pipe, at most kReportMaxBytes, believed only as far as report_from_json and judge::decide
// go.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/inventory.h"
#include "judge/history.h"
#include "judge/verdict.h"
#include "session/assignment.h"

namespace netcheck::session {

/// 16 MiB: a thousand nodes' history is about 4 MiB.
inline constexpr std::size_t kReportMaxBytes = 16u << 20;
/// Strangers may knock all day; a hundred lines tell who.
inline constexpr std::size_t kMaxLogLines = 100;

struct Report {
  bool leader = false;
  judge::Plan plan;
  judge::History history;
  std::string claimed;                          ///< the probe's verdict name; followers: what the leader sent
  std::string line;                             ///< followers: the leader's line; leader: its own
  judge::Phase reached = judge::Phase::start;   ///< where it ended
  std::string reason;                           ///< why it could not measure; empty when it could
  std::map<std::string, Ns> phases;             ///< time spent by phase name
  Inventory inventory;                          ///< of this node
  std::optional<judge::NodeHardware> hardware;  ///< of this node: what it told its leader
  std::vector<std::string> log;                 ///< what was dropped or odd; ≤ kMaxLogLines, printable
};

/// Adds a line to the log, made printable; beyond kMaxLogLines nothing.
void note(Report& report, std::string_view text);

[[nodiscard]] Json to_json(const Report& report);
/// Strict; checked against the assignment: node names must be the roster's, in order. Throws Malformed.
[[nodiscard]] Report report_from_json(const Json& value, const Assignment& assignment);

}  // namespace netcheck::session
