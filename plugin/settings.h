// The arguments of the plugin's line in plugstack.conf, as this plugin was built for them. Pure: tested
// without Slurm. What each may be is in policy/plugin_settings.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "policy/plugin_settings.h"

namespace netcheck::plugin {

struct Settings : PluginSettings {
  Settings() { program = NETCHECK_PROGRAM; }
};

/// What cannot be used is named in `complaints`, one clear line each, and leaves the default in place: a
/// slip in plugstack.conf must not keep anybody's job from starting.
[[nodiscard]] Settings parse_settings(std::span<char* const> arguments, std::vector<std::string>& complaints);

}  // namespace netcheck::plugin
