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
#include "policy/plugin_settings.h"

namespace netcheck::doctor {

/// A line of plugstack.conf that names a plugin.
struct PlugstackLine {
  std::string place;  ///< "/etc/slurm/plugstack.conf:3"
  bool required = false;
  std::string plugin;                  ///< as it stands there
  std::vector<std::string> arguments;  ///< "timeout=25"
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

/// What the Prolog script that calls netcheck says of itself.
struct PrologScript {
  FileFacts file;
  /// Of its first lines; nullopt: not given there, or made of something else.
  std::optional<std::string> program, config, limit;
  Result<void> program_usable{};  ///< whether that program can be started, and is root's alone to change
};
/// From the text of the script, which a site may have changed: the last assignment of each counts.
[[nodiscard]] PrologScript parse_prolog_script(std::string_view text);
/// Its limit=; nullopt: there is none, or no number of seconds.
[[nodiscard]] std::optional<Ns> script_limit(const PrologScript& script);

/// A pattern of Slurm's Prolog=, and what it fits here.
struct PrologPattern {
  std::string pattern;
  std::vector<FileFacts> files;
  bool hidden = false;  ///< its folder cannot be read by us
};

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
  std::optional<bool> slurmd_has_it;   ///< mapped into slurmd; nullopt: not known
  std::string config;                  ///< that this doctor looked at
  std::vector<PrologPattern> prologs;  ///< Slurm's Prolog=
  bool prologs_known = false;          ///< Slurm's settings could be had
  std::optional<PrologScript> script;  ///< the first file that it names which calls netcheck
};

/// The line for netcheck among them; nullptr: none.
[[nodiscard]] const PlugstackLine* netcheck_line(const Plugstack& plugstack);
/// An argument that the plugin ignores.
struct IgnoredWord {
  std::string word;  ///< "timeout=300"
  PluginSlip slip;
};
/// The arguments as the plugin takes them; what it ignores goes into `ignored`.
[[nodiscard]] PluginSettings plugin_settings(const PlugstackLine& line,
                                             std::vector<IgnoredWord>* ignored = nullptr);
/// The timeout that counts; nullopt without a line.
[[nodiscard]] std::optional<Ns> plugin_timeout(const Plugstack& plugstack);

[[nodiscard]] Findings check_plugin(const PluginFacts& facts);

/// The files of Prolog=: slurmd drains a node where one is missing, or cannot be executed. Of a compute node
/// (prolog_script.cpp, as is the next).
[[nodiscard]] Findings check_prologs(const std::vector<PrologPattern>& prologs);
[[nodiscard]] Findings check_script(const PrologScript& script, const std::string& config);

}  // namespace netcheck::doctor
