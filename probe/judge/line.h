// A verdict in words: the line in sacct, a culprit's part of it, and JSON for the record. Pure. Used by
// leader and follower, by the supervisor, and by replay.
#pragma once

#include <string>

#include "judge/verdict.h"

namespace netcheck::judge {

/// The line in sacct (docs: netcheck(8)): "netcheck=fail busbw=96.3Mbps min=400Mbps op=all_gather nodes=4
/// slow=n3(tx: 95.9Mbps) time=5.9s". One line, ≤ 1 KiB, printable.
[[nodiscard]] std::string line(const Verdict& verdict, const Plan& plan, Ns took);

/// "n3(tx: 95.9Mbps)", of one rail of several "n3/eth1(tx: …)", of a link "n1>n2(link: …)".
[[nodiscard]] std::string describe(const Culprit& culprit, const Plan& plan);

/// For records; strict readers are not needed: a verdict is recomputed, never read back.
[[nodiscard]] Json to_json(const Verdict& verdict, const Plan& plan);

}  // namespace netcheck::judge
