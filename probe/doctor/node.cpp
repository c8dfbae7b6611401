// Config, account, module, folders. See node.h.
#include "doctor/node.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

// Accounts that other services share: at the end of a check whatever runs as the probe's is killed.
constexpr std::array<std::string_view, 4> kShared{"root", "nobody", "daemon", "slurm"};
constexpr std::array<std::string_view, 4> kNoShells{"nologin", "false", "true", "sync"};
constexpr std::uint64_t kRotated = 64ULL << 20;  // what records may take before the oldest go
constexpr std::uint64_t kOneRecord = 1ULL << 20;

Finding distrusted(std::string what, const FileFacts& file) {
  return finding_of(Level::fail, std::move(what), *distrust(file));
}

Findings check_spool(const FolderFacts& facts) {
  const FileFacts& file = facts.file;
  const std::string lost = ": records are not kept for good";
  if (!file.there && !file.why_not.empty())
    return {{Level::unseen, facts.what, file.path + ": " + file.why_not, "run this as root"}};
  if (!file.there)
    return {{Level::warn, facts.what, file.path + " is not there" + lost,
             "mount it, or make it (install -d -m 0755 -o root " + file.path + ")"}};
  if (!file.folder)
    return {{Level::warn, facts.what,
             file.path + " is no folder, or a symbolic link, which is not followed" + lost,
             "name the folder itself with spool_dir in netcheck.toml"}};
  if (distrust(file)) return {finding_of(Level::warn, facts.what, *distrust(file))};
  if (facts.free_bytes && *facts.free_bytes < kRotated)
    return {{Level::warn, facts.what,
             fmt::format("{} MiB are free at {}", *facts.free_bytes / kOneRecord, file.path),
             "make room on that filesystem: netcheck removes nothing there"}};
  return {fine(facts.what, file.path + " is there, and root's alone to change")};
}

}  // namespace

std::optional<Error> distrust(const FileFacts& file) {
  if (!file.there) return std::nullopt;
  const std::string path = printable(file.path);
  if (file.owner != 0)
    return Error{"trust", path, fmt::format("it belongs to uid {}, who can change it", file.owner),
                 "chown root " + path};
  if ((file.mode & (S_IWGRP | S_IWOTH)) != 0 && (file.mode & S_ISVTX) != 0)  // as /tmp is, and has to stay
    return Error{"trust", path, "everybody may write it", "put the file into a folder of root's own"};
  if ((file.mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error{"trust", path, fmt::format("group or others may write it (mode {:04o})", file.mode & 07777U),
                 "chmod go-w " + path};
  return std::nullopt;
}

Findings check_nccl_topology(const FileFacts& file) {
  constexpr const char* kWhat = "NCCL's topology";
  constexpr const char* kRemedy = "mend nccl_topology in [hardware] of netcheck.toml, or put the file there";
  if (!file.there) return {{Level::warn, kWhat, file.path + " is not there: checks do without it", kRemedy}};
  if (!file.regular) return {{Level::warn, kWhat, file.path + " is no file: checks do without it", kRemedy}};
  if (distrust(file)) return {distrusted(kWhat, file)};
  return {fine(kWhat, file.path + " is there, and root's alone to change")};
}

Findings check_config(const ConfigFacts& facts) {
  constexpr const char* kWhat = "configuration";
  Findings findings;
  const std::string& path = facts.file.path;
  for (const FileFacts& place : {facts.file, facts.folder})
    if (distrust(place)) findings.push_back(distrusted(kWhat, place));
  if (facts.unreadable)
    findings.push_back(finding_of(Level::unseen, kWhat, *facts.unreadable));
  else if (facts.wrong && findings.empty())
    findings.push_back(finding_of(Level::fail, kWhat, *facts.wrong));
  if (!findings.empty() && findings.front().level == Level::fail)
    findings.front().why += "; no job is checked until it is mended";
  for (const std::string& file : facts.switches)
    findings.push_back({Level::warn, "kill switch", file + " is there: nothing is checked on this node",
                        "rm " + file + ", when checks shall go on"});
  for (const std::string& line : facts.without_effect)
    findings.push_back({Level::warn, kWhat, line, ""});
  if (!findings.empty()) return findings;
  if (!facts.file.there) return {fine(kWhat, "there is no " + path + ": built-in values")};
  return {fine(kWhat, path + " is valid, and root's alone to change")};
}

Findings check_account(const AccountFacts& facts) {
  constexpr const char* kWhat = "probe user";
  const std::string own = "set probe_user in netcheck.toml to an unprivileged account of its own";
  const auto failed = [&](std::string why, std::string remedy) {
    return Findings{{Level::fail, kWhat, std::move(why), std::move(remedy)}};
  };
  if (std::ranges::find(kShared, facts.name) != kShared.end())
    return failed(facts.name + " is not netcheck's own account", own);
  if (facts.missing && facts.unknown) return {finding_of(Level::unseen, kWhat, *facts.missing)};
  if (facts.missing)
    return failed(describe(*facts.missing),
                  "useradd --system --no-create-home --shell /usr/sbin/nologin " + facts.name);
  if (facts.uid == 0) return failed(facts.name + " has root's rights (uid 0)", own);
  if (!facts.same_uid.empty())
    return failed(fmt::format("{} shares uid {} with {}, whose processes the end of a check would kill",
                              facts.name, facts.uid, fmt::join(facts.same_uid, ", ")),
                  own);
  Findings findings;
  if (!facts.processes.empty())
    findings.push_back(
        {Level::warn, kWhat,
         fmt::format(
             "{} processes run as {} and are no check ({}): the end of a check kills them",
             facts.processes.size(), facts.name,
             fmt::join(facts.processes.begin(),
                       facts.processes.begin() + std::min<std::ptrdiff_t>(3, std::ssize(facts.processes)),
                       ", ")),
         "use the account for nothing else"});
  const std::string shell = std::filesystem::path(facts.shell).filename().string();
  if (std::ranges::find(kNoShells, shell) == kNoShells.end())
    findings.push_back(
        {Level::warn, kWhat,
         fmt::format("{} may log in (shell {})", facts.name, facts.shell.empty() ? "/bin/sh" : facts.shell),
         "usermod --shell /usr/sbin/nologin " + facts.name});
  if (findings.empty())
    findings.push_back(
        fine(kWhat, fmt::format("{} (uid {}, which must be the same on all nodes), unprivileged, and nothing "
                                "else runs as it",
                                facts.name, facts.uid)));
  return findings;
}

Findings check_module(const ModuleFacts& facts) {
  constexpr const char* kWhat = "fabric module";
  if (!facts.file.there)
    return {{Level::fail, kWhat,
             fmt::format("there is no {}{}: every check is inconclusive", facts.file.path,
                         facts.file.why_not.empty() ? "" : " (" + facts.file.why_not + ")"),
             "install it, or name its folder with module_directory in netcheck.toml"}};
  Findings findings;
  for (const FileFacts& place : {facts.folder, facts.file})
    if (distrust(place)) findings.push_back(distrusted(kWhat, place));
  if (!findings.empty()) return findings;
  if (facts.load)
    return {finding_of(Level::fail, kWhat, *facts.load, "install the libraries that it names on this node")};
  return {
      fine(kWhat, fmt::format("{} loads as {}, and is root's alone to change", facts.file.path, facts.as))};
}

Findings check_folder(const FolderFacts& facts) {
  if (facts.spool) return check_spool(facts);
  const FileFacts& file = facts.file;
  if (!file.there && !file.why_not.empty())
    return {{Level::unseen, facts.what, file.path + ": " + file.why_not, "run this as root"}};
  if (!file.there) return {fine(facts.what, file.path + " is not there yet: the first check makes it")};
  if (!file.folder)
    return {{Level::fail, facts.what, file.path + " is no folder, or a symbolic link, which is not followed",
             "remove it: the first check makes the folder"}};
  if (distrust(file)) return {distrusted(facts.what, file)};
  constexpr const char* kOwn =
      "name a folder of each node's own with run_directory in netcheck.toml, best on a tmpfs";
  if (!facts.other_node.empty())
    return {
        {Level::fail, facts.what,
         fmt::format("{} checks in {}, too: one of the two looks busy, or missing", facts.other_node,
                     file.path),
         fmt::format("{}; if this node was once called {}: rm {}/lock", kOwn, facts.other_node, file.path)}};
  if (!facts.network.empty())
    return {{Level::warn, facts.what,
             fmt::format("{} lies on {}: where nodes share it, all but one take no part", file.path,
                         facts.network),
             kOwn}};
  if (!facts.free_bytes)
    return {{Level::unseen, facts.what, file.path + ": how much room there is cannot be found out", ""}};
  const std::string room = fmt::format("{} MiB are free at {}", *facts.free_bytes / kOneRecord, file.path);
  if (*facts.free_bytes < kOneRecord)
    return {{Level::fail, facts.what, room + ": no record can be written", "make room on that filesystem"}};
  if (*facts.free_bytes < kRotated)
    return {{Level::warn, facts.what, room + "; records may take 64", "make room on that filesystem"}};
  return {fine(facts.what, room + ", which is root's alone to change")};
}

Policy longest(const Site& site) {
  Policy policy = site.defaults;
  for (const Rule& rule : site.rules) {
    if (rule.sets.contains("check.time")) policy.time = std::max(policy.time, rule.values.time);
    if (rule.sets.contains("check.max_time"))
      policy.max_time = std::max(policy.max_time, rule.values.max_time);
  }
  policy.max_time = std::max(policy.max_time, policy.time);
  return policy;
}

}  // namespace netcheck::doctor
