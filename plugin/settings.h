// The arguments of the plugin's line in plugstack.conf. Pure: tested without Slurm.
//
//   optional netcheck.so program=/usr/sbin/netcheck config=/etc/netcheck/netcheck.toml timeout=25
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "contract/notice.h"

namespace netcheck::plugin {

struct Settings {
  std::string program = NETCHECK_PROGRAM;              ///< what the prolog starts
  std::string config = "/etc/netcheck/netcheck.toml";  ///< handed to it
  std::string run_directory = kRunDirectory;           ///< under which the notices lie: the program is told
  std::string slurm_bin;                               ///< where scontrol and squeue lie, if not in /usr/bin
  std::chrono::seconds timeout{25};  ///< the longest check that a user may ask for (20 s), and five more
};

/// What cannot be used is named in `complaints`, one clear line each, and leaves the default in place: a
/// slip in plugstack.conf must not keep anybody's job from starting.
[[nodiscard]] Settings parse_settings(std::span<char* const> arguments, std::vector<std::string>& complaints);

}  // namespace netcheck::plugin
