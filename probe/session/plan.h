// What the leader learns at the rendezvous: whether the nodes fit together, and the judge's Plan. Pure;
// called by the leader, and for the plan before anybody was met by followers and supervisor too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "session/messages.h"
#include "session/report.h"

namespace netcheck::session {

/// What the site and the job ask for, before it is known what the hardware could reach (judge::set_bars).
[[nodiscard]] judge::Thresholds thresholds_of(const Policy& policy);

/// The plan before anybody was met: the job's nodes, the thresholds, the settings.
[[nodiscard]] judge::Plan plan_of(const Assignment& assignment);

/// The plan for what opened on each node. Both maps hold every node. `hardware`: of those that could look.
/// `budget`: for gate and blame.
[[nodiscard]] judge::Plan plan_of(const Assignment& assignment,
                                  const std::map<std::uint32_t, Present>& present,
                                  const std::map<std::uint32_t, fabric::Ready>& ready,
                                  const std::map<std::uint32_t, judge::NodeHardware>& hardware, Ns budget);

/// What the NCCL fabric shall open on this node: the job's GPUs, as the site says.
[[nodiscard]] fabric::Options gpu_options(const Assignment& assignment);

/// Why a node does not fit the leader, naming node and terms: "n3 differs from n1: check.op is all_gather
/// instead of all_reduce". nullopt: it fits.
[[nodiscard]] std::optional<std::string> difference(const Assignment& assignment, std::uint32_t node,
                                                    const Present& present);
/// The same for what its fabric is: another module or version could hang in the first connection. `known`:
/// another node that opened before.
[[nodiscard]] std::optional<std::string> difference(const Assignment& assignment, std::uint32_t node,
                                                    const fabric::Ready& ready, std::uint32_t known,
                                                    const fabric::Ready& known_ready);

}  // namespace netcheck::session
