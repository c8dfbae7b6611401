// `netcheck prolog`: the check of one node from the outside, as root. Policy, lock, listener, the probe with
// dropped privileges, its deadline, the verdict computed again, the record, the notice, and on the leader the
// annotation. Exits 0 whatever the network is like: the job runs. Entered from the SPANK plugin or from a
// site's Prolog script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/notice.h"

namespace netcheck::prolog {

struct Invocation {
  std::string program;                 ///< absolute path of this program
  std::string config;                  ///< /etc/netcheck/netcheck.toml; a missing file means built-in values
  std::optional<std::string> request;  ///< the value of --netcheck, or of the job's comment; nullopt: not
                                       ///< asked, and checked only where the site says mode = "always"
  std::vector<std::string> module_directories;  ///< where fabric modules may lie, unless the site says where
  std::string run_directory = kRunDirectory;    ///< where the record goes when the site's file cannot be read
  /// Where the plugin looks for the notice; nullopt: in the site's run directory. The record lies in the
  /// latter in any case.
  std::optional<std::string> notice_directory;
  /// The socket to which is said what there is to say; "": stderr. slurmd logs what a plugin says, and drops
  /// the words of a Prolog script.
  std::string syslog;
  bool announce_deadline = false;  ///< as the first line on stderr (contract/notice.h): for the plugin
};

/// 0, or 2 when it was called without a job in its environment (by hand). At most the check's deadline plus 2
/// s.
[[nodiscard]] int supervise(const Invocation& invocation);

/// While a file of this name lies beside the configuration, nothing is checked and nothing acted on.
inline constexpr const char* kKillSwitch = "disabled";

}  // namespace netcheck::prolog
