// What one node's check came to, from what the probe left: its report is believed only as far as its samples
// support it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/notice.h"
#include "judge/verdict.h"
#include "prolog/probe_run.h"
#include "session/report.h"

namespace netcheck::prolog {

struct Outcome {
  std::string verdict;                   ///< "pass", "fail", "inconclusive"
  std::string line;                      ///< as in sacct
  Ns took{};                             ///< until it was known; the time= of a line that is made here
  std::optional<judge::Verdict> judged;  ///< none on a follower that repeats its leader's
  /// The verdict on the site's thresholds alone; none where the user chose another operation, for which the
  /// site's thresholds are not meant.
  std::optional<judge::Verdict> by_site;
  bool nearly_by_site = false;            ///< by_site is a fail, and judge::nearly_enough on those thresholds
  std::optional<session::Report> report;  ///< none when there was none to be believed
};

/// Could not measure, and why.
[[nodiscard]] Outcome inconclusive(const session::Assignment& assignment, judge::Phase phase,
                                   std::string reason, Ns took);

/// A leader that was not to measure says so, whatever its probe says. Else the leader's verdict is computed
/// again, against the thresholds of the assignment; one that claims more than its samples show is rejected. A
/// follower repeats what its leader said.
[[nodiscard]] Outcome outcome_of(const ProbeEnd& end, const session::Assignment& assignment, Ns took);

/// `line` and at its end what the site did not grant of the request: ` note="time=60s: the site's maximum is
/// 20s, so 20s counts"`, cut to kMaxNoteBytes, and all of it to kMaxLineBytes. The line itself without notes.
[[nodiscard]] std::string with_notes(std::string line, const std::vector<std::string>& notes);
inline constexpr std::size_t kMaxNoteBytes = 240;    ///< the three notes that there may be take 200
inline constexpr std::size_t kMaxLineBytes = 1'024;  ///< as judge::line, and what a notice takes

/// NETCHECK_VERDICT, NETCHECK_NODES, NETCHECK_RECORD; NETCHECK_MIN_GBPS where there is a threshold; where
/// they are known NETCHECK_BUSBW_GBPS, NETCHECK_CULPRITS, NETCHECK_REASON.
[[nodiscard]] std::map<std::string, std::string> environment_of(const Outcome& outcome,
                                                                const session::Assignment& assignment,
                                                                const std::string& record);

}  // namespace netcheck::prolog
