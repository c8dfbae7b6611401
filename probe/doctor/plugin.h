// What Slurm loads: the line in plugstack.conf, the plugin's file, and whether they fit this Slurm. Pure, but
// for the files that parse_plugstack is given a way to read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/units.h"
#include "doctor/finding.h"
#include "doctor/node.h"
#include "doctor/slurm.h"

namespace netcheck::doctor {

/// A line of plugstack.conf that names a plugin.
struct PlugstackLine {
  std::string place;  ///< "/etc/slurm/plugstack.conf:3"
  bool required = false;
  std::string plugin;                  ///< as it stands there
  std::vector<std::string> arguments;  ///< "timeout=25"
  /// The value of `key=`; nullopt: not given.
  [[nodiscard]] std::optional<std::string> argument(std::string_view key) const;
};
struct Plugstack {
  std::vector<PlugstackLine> lines;
  std::vector<std::string> unread;  ///< files that could not be read
};
struct PlugstackSource {
  std::function<std::optional<std::string>(const std::string& path)> read;
  std::function<std::vector<std::string>(const std::string& pattern)> expand;  ///< glob(7)
};
/// All lines, those of included files in their place.
[[nodiscard]] Plugstack parse_plugstack(const std::string& path, const PlugstackSource& source);

/// What the file of a plugin says of itself.
struct PluginFile {
  std::string name, type;     ///< plugin_name, plugin_type: "netcheck", "spank"
  std::uint32_t version = 0;  ///< plugin_version
};
/// From the symbols of a 64-bit ELF shared object of this machine's kind, which is not loaded for it. Error:
/// it is none, or is no plugin of Slurm. `file` may be anything.
[[nodiscard]] Result<PluginFile> read_plugin_file(std::string_view file, const std::string& path);

/// The plugin as one node has it.
struct PluginFacts {
  std::string plugstack_file;  ///< that Slurm reads
  bool plugstack_exists = false;
  Plugstack plugstack;  ///< of all plugins
  std::optional<Result<PluginFile>>
      file;                           ///< of the first netcheck.so named; nullopt: none named, or unreadable
  Result<void> trusted{};             ///< whether others than root can change that file
  Result<void> program_trusted{};     ///< the same for the program that its line names
  std::optional<SlurmVersion> slurm;  ///< that runs here
  std::optional<Result<std::string>>
      help;               ///< `sbatch --help`, stdout and stderr; nullopt: there is no sbatch
  bool computes = false;  ///< this is a compute node
  bool slurmd_runs = false;
  std::optional<bool> slurmd_has_it;  ///< mapped into slurmd; nullopt: not known
  std::string config;                 ///< that this doctor looked at
  std::string prolog;                 ///< Slurm's Prolog=; empty: none, or not known
  std::optional<FileFacts> script;    ///< the first file that it names which calls netcheck
};

/// The line for netcheck among them; nullptr: none.
[[nodiscard]] const PlugstackLine* netcheck_line(const Plugstack& plugstack);
/// Its timeout= or the built-in one; nullopt without a line.
[[nodiscard]] std::optional<Ns> plugin_timeout(const Plugstack& plugstack);

[[nodiscard]] Findings check_plugin(const PluginFacts& facts);

}  // namespace netcheck::doctor
