// The verdict of one check: three different types all the way to the exit code. Pure. The supervisor computes
// it again from the samples that the probe reports; nothing acts on a verdict that somebody merely claims.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "judge/blame.h"
#include "judge/figures.h"
#include "judge/history.h"

namespace netcheck::judge {

struct Pass {
  Figures figures;
  std::vector<std::string> warnings;  ///< "n3(tx: 96.0Mbps)": slow beside the others, as blame has it
};
/// Hardware for which the site lets a check fail (judge/job_flaws.h).
struct Flawed {
  std::vector<std::uint32_t> nodes;  ///< empty: they differ, and none is odd
  std::string words;                 ///< "n3(port-down: mlx5_3)"
  bool broken_part = false;          ///< a part of theirs, by their own word: may be drained
};
struct Fail {
  std::optional<Figures> figures;  ///< none when no gate completed (a dead data path)
  Blame blame;
  std::string reason;          ///< clause for the line when no culprit carries it; may be empty
  std::vector<Flawed> flawed;  ///< alone, or beside slow nodes
  std::string transport;       ///< what carries the bytes, where the site demands another; nobody's fault
  bool dead = false;  ///< a data path carries nothing at all: a bandwidth of 0, whatever was measured before
};
/// Could not measure. Never refuses, never drains.
struct Inconclusive {
  Phase phase = Phase::start;
  std::vector<std::string> missing;  ///< node names
  std::string reason;
  std::optional<Figures> figures;
};
using Verdict = std::variant<Pass, Fail, Inconclusive>;

/// What the samples of a finished check support.
[[nodiscard]] Verdict decide(const Plan& plan, const History& history);

/// Of a link's rate, what others may carry while no counter of a node's tells: the check's own headers are
/// taken for more than they mostly are (docs/measurement.md, "Other traffic").
inline constexpr double kUnseen = 0.06;
/// Of a check that failed: it would not have, were all thresholds lower by kUnseen.
[[nodiscard]] bool nearly_enough(Plan plan, const History& history);

[[nodiscard]] std::string_view name(const Verdict& verdict);  ///< "pass", "fail", "inconclusive"
[[nodiscard]] ExitCode exit_code(const Verdict& verdict);

}  // namespace netcheck::judge
