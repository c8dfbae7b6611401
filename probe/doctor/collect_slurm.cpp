// Slurm as it is on this node. See collect.h.
#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "doctor/collect.h"
#include "doctor/words.h"
#include "prolog/folder.h"
#include "system/loop.h"
#include "system/process.h"

namespace netcheck::doctor {

namespace {

constexpr std::size_t kMaxOutput = 256U << 10;  // `scontrol show config` is 12 KiB
constexpr std::size_t kMaxPlugin = 64U << 20;   // netcheck.so with its debug information is 3 MiB

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> expand(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
      files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  return files;
}

// As Slurm looks for a plugin that is named without a folder.
std::string path_of(const std::string& plugin, const SlurmConfig& config) {
  if (plugin.starts_with('/')) return plugin;
  const std::string folders = value_of(config, "PluginDir");
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    std::string path = folders.substr(at, end - at) + "/" + plugin;
    if (look_at(path).there) return path;
    at = end + 1;
  }
  return plugin;
}

std::optional<bool> mapped_into(const std::vector<pid_t>& processes, std::string_view file) {
  std::optional<bool> known;
  for (const pid_t pid : processes) {
    const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
    if (!maps || maps->empty()) continue;
    known = known.value_or(false) || maps->find(file) != std::string::npos;
  }
  return known;
}

Result<void> check_program(const std::string& path, const std::string& named_in) {
  if (!path.starts_with('/'))
    return fail("start", path, "it is no absolute path", "write it whole, with program= in " + named_in);
  const FileFacts file = look_at(path);
  if (!file.there)
    return fail("start", path, file.why_not.empty() ? "there is no such file" : file.why_not,
                "install netcheck there, or name it with program= in " + named_in);
  if (auto wrong = distrust(file)) return tl::unexpected(*wrong);
  if (!file.regular || (file.mode & 0100U) == 0)
    return fail("start", path, "it is no program", "install netcheck anew");
  return {};
}

Result<PluginFile> read_plugin(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxPlugin) return fail("read the plugin", path, "it is far too large to be one");
  std::FILE* raw = std::fopen(path.c_str(), "rbe");
  if (raw == nullptr || error)
    return fail("read the plugin", path, error ? error.message() : "it cannot be read",
                "install netcheck.so there, or name its place in plugstack.conf");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(raw, &std::fclose);
  std::string text(size, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), raw));
  return read_plugin_file(text, path);
}

// Prolog=, or, where there may be several (from 23.11 on), Prolog[0]= and so on.
std::vector<std::string> prologs(const SlurmConfig& config) {
  std::vector<std::string> patterns;
  for (const auto& [key, value] : config)
    if ((key == "Prolog" || key.starts_with("Prolog[")) && !value.empty() && value != "(null)")
      patterns.push_back(value);
  return patterns;
}

PrologPattern look_at_prolog(const std::string& pattern) {
  PrologPattern facts{.pattern = pattern};
  for (const std::string& path : expand(pattern))
    facts.files.push_back(look_at(path));
  // A folder that is not ours to read fits nothing either.
  const std::string folder = std::filesystem::path(pattern).parent_path().string();
  facts.hidden = facts.files.empty() && ::access(folder.c_str(), F_OK) == 0 &&
                 ::access(folder.c_str(), R_OK | X_OK) != 0;
  return facts;
}

std::optional<PrologScript> find_script(const std::vector<PrologPattern>& prologs) {
  for (const PrologPattern& prolog : prologs)
    for (const FileFacts& file : prolog.files) {
      if (!file.regular) continue;
      const auto text = read_file(file.path);
      if (!text || text->find("netcheck") == std::string::npos) continue;
      PrologScript script = parse_prolog_script(*text);
      script.file = file;
      if (script.program) script.program_usable = check_program(*script.program, file.path);
      return script;
    }
  return std::nullopt;
}

}  // namespace

std::string find_program(const std::string& name, const std::string& folder) {
  const std::string folders = variable("PATH") + (folder.empty() ? "" : ":" + folder);
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    std::string path = folders.substr(at, end - at) + "/" + name;
    if (path.starts_with('/') && ::access(path.c_str(), X_OK) == 0) return path;
    at = end + 1;
  }
  return {};
}

Result<Json> ask_program(const std::string& program, const std::vector<std::string>& arguments, Ns patience,
                         bool errors) {
  system::Launch launch;
  launch.program = program;
  launch.arguments = arguments;
  for (const char* name : {"PATH", "SLURM_CONF", "SLURM_CONF_SERVER", "HOME"})
    if (const std::string value = variable(name); !value.empty())
      launch.environment.push_back(fmt::format("{}={}", name, value));
  launch.environment.emplace_back("LC_ALL=C");
  const auto finished = system::run_to_end(launch, system::now() + patience, kMaxOutput);
  if (!finished) return tl::unexpected(finished.error());
  if (finished->status != 0 && !errors)
    return fail(
        "run", fmt::format("{} {}", program, fmt::join(arguments, " ")),
        fmt::format("{}: {}", system::describe_status(finished->status), printable(finished->errors)));
  return Json(errors ? finished->errors + finished->output : finished->output);
}

std::string plugstack_file(const SlurmConfig& config) {
  // By slurm.conf(5) beside slurm.conf; without a slurm.conf of its own (configless) a node keeps what the
  // controller sent in /run/slurm/conf.
  std::vector<std::string> places;
  if (const std::string named = value_of(config, "PlugStackConfig"); !named.empty()) places.push_back(named);
  if (const std::string conf = variable("SLURM_CONF"); !conf.empty())
    places.push_back(std::filesystem::path(conf).parent_path() / "plugstack.conf");
  for (const char* folder : {"/etc/slurm", "/run/slurm/conf", "/etc/slurm-llnl", "/usr/local/etc"})
    places.push_back(std::string(folder) + "/plugstack.conf");
  const auto found =
      std::ranges::find_if(places, [](const std::string& path) { return look_at(path).there; });
  return found == places.end() ? places.front() : *found;
}

Plugstack read_plugstack(const std::string& path) {
  return parse_plugstack(path, {.read = read_file, .expand = expand});
}

void look_at_plugin(PluginFacts& facts, const SlurmConfig& config) {
  facts.plugstack_file = plugstack_file(config);
  facts.plugstack_exists = look_at(facts.plugstack_file).there;
  facts.plugstack = read_plugstack(facts.plugstack_file);
  std::vector<pid_t> slurmds;
  for (const Running& process : running_processes())
    if (process.command == "slurmd" && !process.elsewhere) slurmds.push_back(process.pid);
  facts.slurmd_runs = !slurmds.empty();
  facts.prologs_known = !config.empty();
  for (const std::string& pattern : prologs(config))
    facts.prologs.push_back(look_at_prolog(pattern));
  facts.script = find_script(facts.prologs);
  const PlugstackLine* line = netcheck_line(facts.plugstack);
  if (line == nullptr) return;
  const std::string path = path_of(line->plugin, config);
  facts.slurmd_has_it = mapped_into(slurmds, "/netcheck.so");
  facts.file = read_plugin(path);
  for (const std::string& place : {path, std::filesystem::path(path).parent_path().string()})
    if (const auto wrong = distrust(look_at(place)); wrong && facts.trusted)
      facts.trusted = tl::unexpected(*wrong);
  facts.program_trusted = check_program(plugin_settings(*line).program, "plugstack.conf");
}

}  // namespace netcheck::doctor
