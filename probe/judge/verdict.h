// The verdict of one check: three different types all the way to the exit code. Pure. The supervisor computes
// it again from the samples that the probe reports; nothing acts on a verdict that somebody merely claims.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "judge/blame.h"
#include "judge/history.h"

namespace netcheck::judge {

/// The gate's figure: the minimum over groups of the sum over rails.
struct Figures {
  Rate busbw;
  std::vector<Rate> per_rail;  ///< minimum over groups, by lane
  Op op = Op::all_gather;
  std::string algorithm;
  std::uint64_t bytes = 0;   ///< message size of the figure
  std::uint32_t groups = 1;  ///< most groups in a partition
  bool noisy = false;
  double running = 1;           ///< part of the time in which the processes of all ranks ran; 0: unknown
  std::uint32_t most_kept = 0;  ///< node whose process was kept from running most
  double kept = 0;              ///< for that part of the time, at least
  friend bool operator==(const Figures&, const Figures&) = default;
};

struct Pass {
  Figures figures;
  std::vector<std::string> warnings;  ///< "n3(tx: 96.0Mbps)": below warn_fraction of the concurrent median
};
struct Fail {
  std::optional<Figures> figures;  ///< none when no gate completed (a dead data path)
  Blame blame;
  std::string reason;  ///< clause for the line when no culprit carries it; may be empty
  bool dead = false;   ///< a data path carries nothing at all: a bandwidth of 0, whatever was measured before
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

/// Figures of the gate so far; nullopt when none completed.
[[nodiscard]] std::optional<Figures> figures_of(const Plan& plan, const History& history);

[[nodiscard]] std::string_view name(const Verdict& verdict);  ///< "pass", "fail", "inconclusive"
[[nodiscard]] ExitCode exit_code(const Verdict& verdict);

/// The line in sacct (docs: netcheck(8)): "netcheck=fail busbw=96.3Mbps min=400Mbps op=all_gather nodes=4
/// slow=n3(tx: 95.9Mbps) time=5.9s". One line, ≤ 1 KiB, printable.
[[nodiscard]] std::string line(const Verdict& verdict, const Plan& plan, Ns took);

/// "n3(tx: 95.9Mbps)", of one rail of several "n3/eth1(tx: …)", of a link "n1>n2(link: …)".
[[nodiscard]] std::string describe(const Culprit& culprit, const Plan& plan);

/// For records; strict readers are not needed: a verdict is recomputed, never read back.
[[nodiscard]] Json to_json(const Verdict& verdict, const Plan& plan);

}  // namespace netcheck::judge
