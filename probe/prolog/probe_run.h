// The probe from the outside: started with dropped privileges, its report and its stderr collected within
// bounds, ended with everything below it. As root.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "judge/history.h"
#include "prolog/guard.h"
#include "session/assignment.h"
#include "system/process.h"

namespace netcheck::prolog {

struct ProbeOrder {
  std::string program;  ///< absolute path of netcheck; run as `PROGRAM probe`
  system::Account account;
  session::Assignment assignment;
  system::Descriptor listener;                  ///< on node 0
  std::function<void(const std::string&)> say;  ///< one line of the probe's stderr, printable
  bool alone = true;  ///< nothing else runs as the account here: at the end all of it is killed
};

struct ProbeEnd {
  std::string report;             ///< what came on the report's descriptor
  bool too_large = false;         ///< more than kReportMaxBytes came
  bool in_time = false;           ///< it ended by itself
  bool interrupted = false;       ///< SIGTERM came to us
  std::string how;                ///< "exit 0", "signal 11 (Segmentation fault)"; empty when not in time
  std::vector<std::string> said;  ///< its stderr, ≤ kMaxSaid lines
  judge::Phase reached = judge::Phase::start;  ///< the last phase it named on its stderr ("phase gate")
  Remains remains;                             ///< what could not be ended
};

inline constexpr std::size_t kMaxSaid = 100;
/// Processes and threads of the probe's account on the whole host (the kernel counts by uid, containers and
/// other namespaces included), so that a child run wild cannot take the node's. A check has a probe, a clerk
/// and a fabric child. An estimate for the largest child to come, on a node of 16 GPUs and 16 rails: per GPU
/// 6 threads of the CUDA driver, 8 of NCCL and 16 for its sockets (4 connections, 4 threads each); per rail 2
/// of UCX: about 500. Four times that no check ever meets, and it is a sixteenth of the fewest pids that a
/// kernel comes with (32,768).
inline constexpr std::uint64_t kMaxTasks = 2'048;
/// After the probe's deadline, for its last words; then everything below us is killed.
inline constexpr Ns kLastWords = std::chrono::milliseconds(100);
/// For killed processes to end: exiting takes milliseconds, with gigabytes to unmap a few hundred.
inline constexpr Ns kKillPatience = std::chrono::milliseconds(500);

/// SIGTERM must be blocked by the caller; it ends the probe early. Error: it could not be started.
[[nodiscard]] Result<ProbeEnd> run_probe(ProbeOrder order);

}  // namespace netcheck::prolog
