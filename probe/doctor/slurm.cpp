// Slurm's settings. What each does to a prolog was found out on real clusters of 22.05 and 25.11.
#include "doctor/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

constexpr const char* kWanted =
    "in slurm.conf: PrologFlags=Alloc,DeferBatch; then restart slurmctld and slurmd";
// slurm.conf(5): each of these sets Alloc as well.
constexpr std::array<std::string_view, 7> kImplyAlloc{
    "alloc", "contain", "deferbatch", "nohold", "forcerequeueonfail", "x11", "runinjob"};
// Slurm's NO_VAL16 and INFINITE16, as which "no limit" is printed.
constexpr std::uint64_t kNoLimit = 0xfffe;
// Slurm 25.11: "Prolog hung on node" so long before MessageTimeout.
constexpr auto kHungBefore = std::chrono::seconds(2);
// The supervisor's promise: deadline + 2 s.
constexpr auto kOverrun = std::chrono::seconds(2);
// etc/prolog.d/netcheck: its outer timeout, beyond limit=.
constexpr auto kScriptOverrun = std::chrono::seconds(3);

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::set<std::string> flags_of(const std::string& value) {
  std::set<std::string> flags;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    flags.insert(lower(trimmed(std::string_view(value).substr(at, end - at))));
    at = end + 1;
  }
  return flags;
}

/// "10 sec", "65534": nullopt where there is no limit, or no such key.
std::optional<Ns> seconds_of(const SlurmConfig& config, const std::string& key) {
  const std::string value = value_of(config, key);
  std::uint64_t seconds = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc{} || stop == value.data() || seconds == 0 || seconds >= kNoLimit)
    return std::nullopt;
  return std::chrono::seconds(seconds);
}

/// What ends a check that hangs: the plugin, or the Prolog script.
struct LastResort {
  std::string words;  ///< "the plugin's last resort (timeout=25s)"
  Ns after{};
};

Finding prolog_limit(const std::string& key, Ns limit, const Policy& policy,
                     const std::optional<LastResort>& last) {
  const Ns longest = policy.max_time + kOverrun;
  const Ns last_resort = std::max(longest, last ? last->after : longest);
  const std::string said = fmt::format("{} = {}", key, seconds_text(limit));
  if (limit <= longest)
    return {Level::fail, "prolog timeout",
            fmt::format("{}, but a check may take {} (max_time {} and 2s): slurmd would drain the node and "
                        "requeue the job",
                        said, seconds_text(longest), seconds_text(policy.max_time)),
            fmt::format("set {} above {} in slurm.conf, or lower max_time in netcheck.toml", key,
                        seconds_text(last_resort))};
  if (limit <= last_resort)
    return {Level::warn, "prolog timeout",
            fmt::format("{} is not above {}: should netcheck itself hang, slurmd would drain the node first",
                        said, last->words),
            fmt::format("set {} above {} in slurm.conf", key, seconds_text(last_resort))};
  return fine("prolog timeout", fmt::format("{}; a check takes at most {}", said, seconds_text(longest)));
}

}  // namespace

SlurmConfig parse_slurm_config(std::string_view text) {
  SlurmConfig config;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    config.emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }
  return config;
}

std::string value_of(const SlurmConfig& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() || found->second == "(null)" ? "" : found->second;
}

std::optional<SlurmVersion> parse_slurm_version(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (!text.starts_with("slurm") || space == std::string_view::npos) return std::nullopt;
  text.remove_prefix(space + 1);
  SlurmVersion version;
  const char* at = text.data();
  const char* const last = text.data() + text.size();
  for (std::uint32_t* part : {&version.major, &version.minor, &version.micro}) {
    const auto [stop, error] = std::from_chars(at, last, *part);
    if (error != std::errc{} || (part != &version.micro && (stop == last || *stop != '.')))
      return std::nullopt;
    at = stop == last ? stop : stop + 1;
  }
  return version;
}

SlurmVersion unpack_slurm_version(std::uint32_t number) {
  constexpr std::uint32_t kByte = 0xff;
  return {number >> 16U, number >> 8U & kByte, number & kByte};
}

std::string text_of(const SlurmVersion& version) {
  return fmt::format("{}.{:02}.{}", version.major, version.minor, version.micro);
}

Findings check_prolog_flags(const SlurmConfig& config) {
  const std::string value = value_of(config, "PrologFlags");
  const std::set<std::string> flags = flags_of(value);
  const bool alloc = std::ranges::any_of(
      kImplyAlloc, [&](std::string_view flag) { return flags.contains(std::string(flag)); });
  if (!alloc)
    return {{Level::fail, "PrologFlags",
             fmt::format("{}: without Alloc a node's prolog runs at its first step, so the nodes of a job "
                         "never meet",
                         value.empty() ? "none" : value),
             kWanted}};
  Findings findings;
  if (flags.contains("runinjob")) {
    const bool script = !value_of(config, "Prolog").empty();
    findings.push_back({script ? Level::warn : Level::fail, "PrologFlags",
                        fmt::format("{}: with RunInJob Slurm never calls a plugin's prolog{}", value,
                                    script ? "; a Prolog script is set, which must call netcheck" : ""),
                        "call `netcheck prolog` in a Prolog script, or take RunInJob out"});
  }
  if (flags.contains("serial"))
    findings.push_back({Level::warn, "PrologFlags",
                        value +
                            ": with Serial a node's prologs run one after another, so that two jobs which "
                            "share nodes can each miss a node that is busy with the other",
                        "take Serial out, or expect inconclusive checks where jobs share nodes"});
  if (!flags.contains("deferbatch") && !flags.contains("runinjob"))
    findings.push_back({Level::warn, "PrologFlags",
                        value +
                            ": without DeferBatch a batch script starts when its own node's prolog is done, "
                            "not when those of all nodes are",
                        kWanted});
  if (findings.empty())
    findings.push_back(
        fine("PrologFlags",
             value + ": all nodes run their prologs at a job's start, and batch scripts wait for them"));
  return findings;
}

Findings check_timeouts(const SlurmConfig& config, const Policy& policy, std::optional<Ns> plugin_timeout,
                        std::optional<Ns> script_limit) {
  Findings findings;
  std::optional<LastResort> last;
  if (plugin_timeout)
    last = {fmt::format("the plugin's last resort (timeout={})", seconds_text(*plugin_timeout)),
            *plugin_timeout};
  if (script_limit && (!last || last->after < *script_limit + kScriptOverrun))
    last = {fmt::format("the Prolog script's last resort (limit={} and {})", seconds_text(*script_limit),
                        seconds_text(kScriptOverrun)),
            *script_limit + kScriptOverrun};
  const std::string own = config.contains("PrologTimeout") ? "PrologTimeout" : "PrologEpilogTimeout";
  if (const auto limit = seconds_of(config, own))
    findings.push_back(prolog_limit(own, *limit, policy, last));
  else
    findings.push_back(fine("prolog timeout", own + " is not set: Slurm sets prologs no limit"));
  if (plugin_timeout && *plugin_timeout < policy.max_time + kOverrun)
    findings.push_back(
        {Level::fail, "plugin timeout",
         fmt::format("timeout={} of the plugin is below max_time ({}) and 2s: it ends checks before "
                     "they have a verdict",
                     plugin_timeout->count() / 1'000'000'000, seconds_text(policy.max_time)),
         fmt::format("in plugstack.conf: timeout={}",
                     (policy.max_time + std::chrono::seconds(5)).count() / 1'000'000'000)});
  else if (plugin_timeout)
    findings.push_back(
        fine("plugin timeout", fmt::format("{}; a check takes at most {}", seconds_text(*plugin_timeout),
                                           seconds_text(policy.max_time + kOverrun))));
  if (script_limit && *script_limit < policy.max_time + kOverrun)
    findings.push_back(
        {Level::fail, "Prolog script's limit",
         fmt::format("limit={} is below max_time ({}) and 2s: it ends checks before they have a verdict",
                     script_limit->count() / 1'000'000'000, seconds_text(policy.max_time)),
         fmt::format("in the script: limit={}",
                     (policy.max_time + std::chrono::seconds(5)).count() / 1'000'000'000)});
  else if (script_limit)
    findings.push_back(
        fine("Prolog script's limit", fmt::format("{}; a check takes at most {}", seconds_text(*script_limit),
                                                  seconds_text(policy.max_time + kOverrun))));
  if (const auto batch = seconds_of(config, "BatchStartTimeout"); batch && *batch < policy.time)
    findings.push_back(
        {Level::warn, "BatchStartTimeout",
         fmt::format("{} is below a check's {}: should a node register meanwhile, Slurm takes the "
                     "batch job for lost and requeues it",
                     seconds_text(*batch), seconds_text(policy.time)),
         fmt::format("set BatchStartTimeout to {} in slurm.conf",
                     (policy.max_time + kOverrun).count() / 1'000'000'000)});
  else if (batch)
    findings.push_back(
        fine("BatchStartTimeout",
             fmt::format("{}, not below a check's {}", seconds_text(*batch), seconds_text(policy.time))));
  if (const auto message = seconds_of(config, "MessageTimeout");
      message && *message - kHungBefore < policy.time)
    findings.push_back(
        {Level::warn, "MessageTimeout",
         fmt::format("{}: from {} on some versions of Slurm tell users of salloc and srun \"Prolog "
                     "hung\", and a check may take {}",
                     seconds_text(*message), seconds_text(std::max<Ns>(*message - kHungBefore, {})),
                     seconds_text(policy.time)),
         "lower time in netcheck.toml, or raise MessageTimeout in slurm.conf"});
  else if (message)
    findings.push_back(fine(
        "MessageTimeout",
        fmt::format("{}, 2s or more above a check's {}", seconds_text(*message), seconds_text(policy.time))));
  return findings;
}

Findings check_authentication(const SlurmConfig& config, const Policy& policy) {
  const std::string type = value_of(config, "AuthType");
  if (policy.credential == "munge" && !type.empty() && type != "auth/munge")
    return {{Level::warn, "authentication", fmt::format("Slurm uses {}, the check uses munge", type),
             "run munged with one key on all nodes, or set credential = \"key\" in netcheck.toml"}};
  constexpr std::string_view kSocket = "socket=";
  const std::string info = value_of(config, "AuthInfo");
  const std::size_t at = info.find(kSocket);
  if (policy.credential != "munge" || at == std::string::npos) return {};
  const std::size_t first = at + kSocket.size();
  const std::string socket = info.substr(first, info.find(',', first) - first);
  if (socket == policy.munge_socket) return {};
  return {{Level::warn, "authentication",
           fmt::format("Slurm asks munged at {} (AuthInfo), the check at {}", socket,
                       policy.munge_socket.empty() ? "munge's own default" : policy.munge_socket),
           fmt::format("set munge_socket = \"{}\" in netcheck.toml, unless both are meant", socket)}};
}

Findings check_accounting(const SlurmConfig& config, const Policy& policy) {
  const std::string storage = value_of(config, "AccountingStorageType");
  if (!policy.annotate) return {fine("sacct", "annotate = false: no line in sacct, by the site's wish")};
  if (storage.empty() || storage.ends_with("/none"))
    return {
        {Level::warn, "sacct",
         fmt::format(
             "Slurm keeps no accounts (AccountingStorageType {}): the line is lost when the job ends, and an "
             "hour's actions cannot be counted, so the site's are not taken",
             storage.empty() ? "not set" : storage),
         "use slurmdbd, or keep records with spool_dir in netcheck.toml"}};
  return {fine("sacct", "the line of each check goes into AdminComment (" + storage + ")")};
}

}  // namespace netcheck::doctor
