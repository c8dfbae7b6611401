// A machine as people read it: tree, matrix, limits and findings as text, and the tree as SVG. Pure. Called
// by `netcheck topo`.
#pragma once

#include <string>
#include <vector>

#include "contract/machine.h"
#include "judge/fleet.h"
#include "judge/hardware.h"
#include "measure/limits.h"

namespace netcheck::picture {

/// Two lines: what it is, and where that was read.
[[nodiscard]] std::string heading(const Machine& machine);

/// Sockets, NUMA nodes, switches, and below them GPUs and ports side by side.
[[nodiscard]] std::string tree(const Machine& machine);

/// In the convention of `nvidia-smi topo -m`, with its legend; empty where there is nothing to compare.
[[nodiscard]] std::string matrix(const Machine& machine);

/// Rails, the node's limit with its derivation, and what each operation could reach.
[[nodiscard]] std::string limits(const Machine& machine, const Limits& limits);

/// One line each, its remedy below; "no findings" where there are none.
[[nodiscard]] std::string findings(const std::vector<judge::Finding>& findings);

/// The tree as a drawing, each link with what it carries; findings in red. A document of its own.
[[nodiscard]] std::string svg(const Machine& machine, const Limits& limits,
                              const std::vector<judge::Finding>& findings);

/// Two machines side by side, only what differs.
[[nodiscard]] std::string differences(const Machine& one, const Machine& other,
                                      const std::vector<judge::Difference>& differences);
[[nodiscard]] Json as_json(const std::vector<judge::Difference>& differences);

/// All of it for programs.
[[nodiscard]] Json as_json(const Machine& machine, const Limits& limits,
                           const std::vector<judge::Finding>& findings);

}  // namespace netcheck::picture
