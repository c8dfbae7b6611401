// What `netcheck prolog` (root) says to the plugin, on every node. Pure: text in, text out.
//
// While it runs, its deadline. At its end the notice: what one run's check came to, in KEY=VALUE lines, for
// the plugin in a job step, which parses no JSON. Read in slurmstepd as root, bound to cluster, job, restart
// and boot.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "contract/error.h"
#include "contract/job.h"

namespace netcheck {

struct Notice {
  JobRun run;
  std::string boot_id;  ///< /proc/sys/kernel/random/boot_id
  bool leader = false;  ///< the node that tells the user (node 0 of the job)
  std::string line;     ///< the line for the user's stderr: "netcheck=pass busbw=…"; one line
  std::map<std::string, std::string>
      environment;  ///< NETCHECK_VERDICT and so on; names [A-Z0-9_]+, values one line
};

/// The variables that a job may find; what a notice does not set is unset, so that none is inherited from
/// another job.
inline constexpr std::array kJobVariables = {"NETCHECK_VERDICT", "NETCHECK_BUSBW_GBPS", "NETCHECK_MIN_GBPS",
                                             "NETCHECK_NODES",   "NETCHECK_CULPRITS",   "NETCHECK_REASON",
                                             "NETCHECK_RECORD",  "NETCHECK_FABRIC"};

inline constexpr std::size_t kNoticeMaxBytes =
    8'192;  ///< a line of ≤ 1 KiB and a dozen variables fit many times

/// Where records and notices live unless the site says otherwise.
inline constexpr const char* kRunDirectory = "/run/netcheck";

/// "RUN_DIR/notices/JOB".
[[nodiscard]] std::string notice_path(std::string_view run_directory, std::uint32_t job);

[[nodiscard]] std::string write_notice(const Notice& notice);
/// Refuses: unknown or repeated keys, control characters, an environment name not starting with NETCHECK_,
/// size.
[[nodiscard]] Result<Notice> read_notice(std::string_view text);

/// The longest check that a site can configure (policy/settings.cpp): no deadline is further away.
inline constexpr std::chrono::milliseconds kLongestAnnounced{60'000};

/// "deadline 8000": how far away the check's deadline is. With it, as its first line, the program tells the
/// plugin how long to wait. From 1 ms to kLongestAnnounced, whatever `left` is.
[[nodiscard]] std::string announce_deadline(std::chrono::milliseconds left);
/// nullopt for anything but such a line.
[[nodiscard]] std::optional<std::chrono::milliseconds> read_announced(std::string_view line);

}  // namespace netcheck
