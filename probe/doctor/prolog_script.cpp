// Slurm's Prolog=, and the script that checks without SPANK. See plugin.h.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "doctor/plugin.h"
#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

constexpr mode_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;  // root may execute what anybody may

/// What a line of a shell script gives to `name`; nullopt: no such line, or a value that only a shell knows.
std::optional<std::string> assigned(std::string_view line, std::string_view name) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(name) || line.substr(name.size(), 1) != "=") return std::nullopt;
  line.remove_prefix(name.size() + 1);
  const char quote = line.empty() ? '\0' : line.front();
  const bool quoted = quote == '"' || quote == '\'';
  if (quoted) line.remove_prefix(1);
  const std::size_t end = quoted ? line.find(quote) : line.find_first_of(" \t\r;#");
  const std::string_view value = line.substr(0, end);
  if (quoted && end == std::string_view::npos) return std::nullopt;
  if (quote != '\'' && value.find_first_of("$`\\") != std::string_view::npos) return std::nullopt;
  return std::string(value);
}

}  // namespace

PrologScript parse_prolog_script(std::string_view text) {
  PrologScript script;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (auto value = assigned(line, "program")) script.program = std::move(value);
    if (auto value = assigned(line, "config")) script.config = std::move(value);
    if (auto value = assigned(line, "limit")) script.limit = std::move(value);
  }
  return script;
}

std::optional<Ns> script_limit(const PrologScript& script) {
  if (!script.limit) return std::nullopt;
  constexpr long kMost = 86'400;  // a day: beyond it nobody waits for a prolog
  long seconds = 0;
  const char* last = script.limit->data() + script.limit->size();
  const auto [stop, error] = std::from_chars(script.limit->data(), last, seconds);
  if (error != std::errc{} || stop != last || seconds < 1 || seconds > kMost) return std::nullopt;
  return std::chrono::seconds(seconds);
}

Findings check_prologs(const std::vector<PrologPattern>& prologs) {
  Findings findings;
  for (const PrologPattern& prolog : prologs) {
    const std::string name = "Prolog=" + printable(prolog.pattern);
    const auto add = [&](Level level, std::string why, std::string remedy) {
      findings.push_back({level, "Prolog", std::move(why), std::move(remedy)});
    };
    if (prolog.hidden) {
      add(Level::unseen, name + ": its folder cannot be read", "run this as root");
      continue;
    }
    if (prolog.files.empty()) {
      add(Level::fail,
          name + " fits no file on this node: slurmd drains it at its next job (\"Prolog error\")",
          "put the script there, root's and executable; or take the line out of slurm.conf and `scontrol "
          "reconfigure`");
      continue;
    }
    const std::size_t before = findings.size();
    for (const FileFacts& file : prolog.files)
      if (!file.there || !file.regular || (file.mode & kAnyExecute) == 0)
        add(Level::fail,
            fmt::format("{} fits {}, which {}: slurmd drains this node at its next job (\"Prolog error\")",
                        name, printable(file.path),
                        !file.there || file.regular ? "cannot be executed" : "is no file"),
            file.there && file.regular ? "chmod 0755 " + printable(file.path) + ", or remove it"
                                       : "remove it from there");
    if (findings.size() == before)
      findings.push_back(
          fine("Prolog", fmt::format("{} fits {} {}, which can be executed", name, prolog.files.size(),
                                     prolog.files.size() == 1 ? "file" : "files")));
  }
  return findings;
}

Findings check_script(const PrologScript& script, const std::string& config) {
  constexpr const char* kWhat = "Prolog script";
  const std::string path = printable(script.file.path);
  if (auto wrong = distrust(script.file)) return {finding_of(Level::fail, kWhat, *wrong)};
  Findings findings;
  if (!script.program_usable)
    findings.push_back(finding_of(Level::fail, kWhat, script.program_usable.error()));
  if (script.limit && !script_limit(script))
    findings.push_back({Level::fail, kWhat,
                        fmt::format("{}: limit={} is no number of seconds: the script breaks off, or sets no "
                                    "limit, and slurmd may drain the node",
                                    path, printable(*script.limit, 40)),
                        "write whole seconds there: limit=25"});
  if (script.config && *script.config != config)
    findings.push_back(
        {Level::warn, kWhat,
         fmt::format("{}: checks read {}, and this is about {}", path, printable(*script.config), config),
         fmt::format("look with `netcheck doctor --config {}`", printable(*script.config))});
  if (findings.empty())
    findings.push_back(fine(kWhat, path + " calls netcheck, and is root's alone to change"));
  return findings;
}

}  // namespace netcheck::doctor
