// Whether Slurm will call the plugin, and start the right program. See plugin.h.
#include "doctor/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

constexpr const char* kFile = "netcheck.so";
constexpr const char* kRestart =
    "restart slurmd on this node: it decides at its start whether plugins have a prolog";

// From this version on Slurm takes only plugins whose major and minor number are its own.
constexpr SlurmVersion kStrictSince{21, 8, 0};

bool is_ours(const PlugstackLine& line) {
  return std::filesystem::path(line.plugin).filename() == kFile;
}

// A site may have the plugin, the script, or both.
Findings without_line(const PluginFacts& facts) {
  if (facts.script)
    return {fine(
        "plugstack.conf",
        fmt::format("no line names {}: the Prolog script alone makes the checks, and users ask in --comment",
                    kFile))};
  if (!facts.prologs_known)
    return {
        {Level::unseen, "plugstack.conf",
         fmt::format("no line names {}: right where a Prolog script makes the checks, and whether one does "
                     "is not known",
                     kFile),
         "see the line on Slurm's settings"}};
  if (!facts.computes && !facts.prologs.empty())
    return {
        {Level::warn, "plugstack.conf",
         fmt::format("no line names {}: right where compute nodes have the Prolog script alone (Prolog={})",
                     kFile, facts.prologs.front().pattern),
         "for --netcheck include netcheck.conf of the installation (share/netcheck/plugstack.conf.d) there"}};
  if (!facts.plugstack_exists)
    return {
        {Level::fail, "plugstack.conf",
         fmt::format("there is no {}: Slurm knows no --netcheck", facts.plugstack_file),
         "make it, and include netcheck.conf of the installation (share/netcheck/plugstack.conf.d) there"}};
  if (!facts.plugstack.unread.empty())
    return {{Level::unseen, "plugstack.conf",
             fmt::format("{} cannot be read", facts.plugstack.unread.front()), "run this as root"}};
  return {
      {Level::fail, "plugstack.conf",
       fmt::format("{} has no line that names {}: Slurm knows no --netcheck", facts.plugstack_file, kFile),
       "include netcheck.conf of the installation (share/netcheck/plugstack.conf.d) there"}};
}

Findings check_line(const PluginFacts& facts) {
  Findings findings;
  const PlugstackLine* line = netcheck_line(facts.plugstack);
  if (line == nullptr) return without_line(facts);
  const auto add = [&](Level level, std::string why, std::string remedy) {
    findings.push_back({level, "plugstack.conf", std::move(why), std::move(remedy)});
  };
  if (line->required)
    add(Level::warn, fmt::format("{}: \"required\": should the plugin not load, no job starts", line->place),
        "write \"optional\" there");
  if (std::ranges::count_if(facts.plugstack.lines, is_ours) > 1)
    add(Level::warn, fmt::format("more than one line names {}; this is about {}", kFile, line->place),
        "leave one of them");
  std::vector<IgnoredWord> ignored;
  const PluginSettings settings = plugin_settings(*line, &ignored);
  for (const auto& [word, slip] : ignored)
    add(Level::warn,
        fmt::format("{}: '{}': {}; the plugin ignores it{}", line->place, printable(word, 64), slip.wrong,
                    slip.key.empty()
                        ? ""
                        : fmt::format(", and {}={} counts", slip.key, plugin_value(settings, slip.key))),
        "mend the word, or take it out");
  if (settings.config != facts.config)
    add(Level::warn,
        fmt::format("{}: checks read {}, and this is about {}", line->place, settings.config, facts.config),
        fmt::format("look with `netcheck doctor --config {}`", settings.config));
  if (findings.empty()) add(Level::ok, fmt::format("{} names {}", line->place, line->plugin), "");
  return findings;
}

Findings check_version(const PluginFacts& facts, const PluginFile& file) {
  const SlurmVersion built = unpack_slurm_version(file.version);
  if (file.type != "spank" || file.name != "netcheck")
    return {{Level::fail, "plugin",
             fmt::format("the file is a plugin '{}' of type '{}'", file.name, file.type),
             "install netcheck.so anew"}};
  if (!facts.slurm)
    return {{Level::unseen, "plugin",
             fmt::format("it is built for Slurm {}; which one runs here is not known", text_of(built)),
             "have sinfo in the PATH"}};
  const bool strict =
      std::pair(facts.slurm->major, facts.slurm->minor) >= std::pair(kStrictSince.major, kStrictSince.minor);
  if (strict && (built.major != facts.slurm->major || built.minor != facts.slurm->minor))
    return {{Level::fail, "plugin",
             fmt::format("it is built for Slurm {}, and {} runs here: Slurm does not load it", text_of(built),
                         text_of(*facts.slurm)),
             "build it against the headers of this Slurm (-DSLURM_INCLUDE_DIR=…)"}};
  return {
      fine("plugin", fmt::format("built for Slurm {}; {} runs here", text_of(built), text_of(*facts.slurm)))};
}

// What Slurm's own client says is the proof: it loads the plugin as slurmd does.
Findings check_loading(const PluginFacts& facts) {
  if (!facts.help)
    return {{Level::unseen, "plugin loads", "there is no sbatch here to ask", "have sbatch in the PATH"}};
  if (!*facts.help) return {finding_of(Level::unseen, "plugin loads", facts.help->error())};
  const std::string& said = **facts.help;
  if (said.find("--netcheck") != std::string::npos) return {fine("plugin loads", "sbatch offers --netcheck")};
  std::string reason;
  for (std::size_t at = 0; at < said.size();) {
    const std::size_t end = std::min(said.find('\n', at), said.size());
    const std::string line = said.substr(at, end - at);
    if (reason.empty() && line.find("error") != std::string::npos) reason = line;
    if (line.find("netcheck") != std::string::npos) reason = line;
    at = end + 1;
  }
  return {
      {Level::fail, "plugin loads",
       reason.empty() ? "sbatch does not offer --netcheck" : "sbatch does not offer it and says: " + reason,
       "see the lines on the plugin and on plugstack.conf above"}};
}

Findings check_slurmd(const PluginFacts& facts) {
  if (!facts.slurmd_runs && facts.computes)
    return {{Level::warn, "slurmd", "does not run on this node", "start slurmd"}};
  if (!facts.slurmd_runs) return {};
  if (!facts.slurmd_has_it)
    return {
        {Level::unseen, "slurmd", "whether it has loaded the plugin is root's to see", "run this as root"}};
  if (*facts.slurmd_has_it) return {fine("slurmd", "has loaded the plugin")};
  return {{Level::fail, "slurmd", "runs without the plugin, so it calls no prolog of it", kRestart}};
}

}  // namespace

const PlugstackLine* netcheck_line(const Plugstack& plugstack) {
  const auto found = std::ranges::find_if(plugstack.lines, is_ours);
  return found == plugstack.lines.end() ? nullptr : &*found;
}

PluginSettings plugin_settings(const PlugstackLine& line, std::vector<IgnoredWord>* ignored) {
  PluginSettings settings{.program = NETCHECK_PROGRAM};
  for (const std::string& argument : line.arguments)
    if (auto slip = set_plugin_argument(settings, argument); slip && ignored != nullptr)
      ignored->push_back({argument, std::move(*slip)});
  return settings;
}

std::optional<Ns> plugin_timeout(const Plugstack& plugstack) {
  const PlugstackLine* line = netcheck_line(plugstack);
  return line == nullptr ? std::nullopt : std::optional<Ns>(plugin_settings(*line).timeout);
}

Findings check_plugin(const PluginFacts& facts) {
  Findings findings = check_line(facts);
  if (facts.computes && !facts.prologs_known)
    findings.push_back({Level::unseen, "Prolog",
                        "not known: which scripts Slurm's Prolog= names, and whether each is here and can be "
                        "executed",
                        "see the line on Slurm's settings"});
  if (facts.computes) append(findings, check_prologs(facts.prologs));
  if (facts.script) append(findings, check_script(*facts.script, facts.config));
  if (netcheck_line(facts.plugstack) == nullptr) return findings;
  if (!facts.trusted) findings.push_back(finding_of(Level::fail, "plugin", facts.trusted.error()));
  if (facts.file && !*facts.file)
    findings.push_back(finding_of(Level::fail, "plugin", facts.file->error()));
  else if (facts.file)
    append(findings, check_version(facts, **facts.file));
  append(findings, check_loading(facts));
  append(findings, check_slurmd(facts));
  if (!facts.program_trusted)
    findings.push_back(finding_of(Level::fail, "program", facts.program_trusted.error()));
  return findings;
}

}  // namespace netcheck::doctor
