// The arguments of the plugin's line in plugstack.conf: the plugin goes by them, and `netcheck doctor` says
// what it makes of them. Pure, header only: the plugin compiles it too.
//
//   optional netcheck.so program=/usr/sbin/netcheck config=/etc/netcheck/netcheck.toml timeout=25
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "contract/error.h"
#include "contract/notice.h"
#include "policy/nearest.h"

namespace netcheck {

struct PluginSettings {
  std::string program;                                 ///< what the prolog starts; built in
  std::string config = "/etc/netcheck/netcheck.toml";  ///< handed to it
  std::string run_directory = kRunDirectory;           ///< under which the notices lie: the program is told
  std::string slurm_bin;                               ///< where scontrol and squeue lie, if not in /usr/bin
  std::chrono::seconds timeout{25};  ///< the longest check that a user may ask for (20 s), and five more
};

/// An argument that is ignored, since it must not keep anybody's job from starting.
struct PluginSlip {
  std::string wrong;  ///< "unknown argument 'timout', did you mean 'timeout='?"
  std::string key;    ///< whose value was meant: "timeout"; empty: not known
};

inline constexpr std::array<std::string_view, 5> kPluginKeys{"program", "config", "run_directory",
                                                             "slurm_bin", "timeout"};
inline constexpr long kMostPluginSeconds = 120;  ///< beyond it nobody waits for a prolog
inline constexpr std::size_t kMaxPluginPathBytes = 1'024;

/// The field of a key whose value is a path; nullptr: it is none of these.
[[nodiscard]] inline std::string* plugin_path(PluginSettings& settings, std::string_view key) {
  if (key == "program") return &settings.program;
  if (key == "config") return &settings.config;
  if (key == "run_directory") return &settings.run_directory;
  if (key == "slurm_bin") return &settings.slurm_bin;
  return nullptr;
}

/// The value that counts for a key, as it would stand in the line.
[[nodiscard]] inline std::string plugin_value(PluginSettings settings, std::string_view key) {
  if (const std::string* path = plugin_path(settings, key)) return *path;
  return std::to_string(settings.timeout.count());
}

/// Takes one argument; nullopt: it was taken.
[[nodiscard]] inline std::optional<PluginSlip> set_plugin_argument(PluginSettings& settings,
                                                                   std::string_view argument) {
  const std::string_view key = argument.substr(0, argument.find('='));
  const std::string_view value = key.size() == argument.size() ? "" : argument.substr(key.size() + 1);
  if (std::string* path = plugin_path(settings, key)) {
    if (!value.starts_with('/') || value.size() > kMaxPluginPathBytes ||
        printable(value, kMaxPluginPathBytes) != value)
      return PluginSlip{fmt::format("{}= must be an absolute path", key), std::string(key)};
    *path = value;
    return std::nullopt;
  }
  if (key == "timeout") {
    long seconds = 0;
    const char* last = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), last, seconds);
    if (error != std::errc{} || stop != last || seconds < 1 || seconds > kMostPluginSeconds)
      return PluginSlip{fmt::format("timeout= must be whole seconds from 1 to {}", kMostPluginSeconds),
                        "timeout"};
    settings.timeout = std::chrono::seconds(seconds);
    return std::nullopt;
  }
  const std::string_view meant = nearest(key, kPluginKeys);
  return PluginSlip{
      fmt::format("unknown argument '{}'{}", printable(key, 40),
                  meant.empty() ? fmt::format(": they are {}", fmt::join(kPluginKeys, "=, ")) + "="
                                : fmt::format(", did you mean '{}='?", meant)),
      std::string(meant)};
}

}  // namespace netcheck
