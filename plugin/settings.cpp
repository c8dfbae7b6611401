#include "settings.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "policy/nearest.h"

namespace netcheck::plugin {

namespace {

/// For `strings netcheck.so`: where this plugin looks for its program. Compilers scatter a short default over
/// instructions.
[[gnu::used]] constexpr char kBuiltFor[] = "program=" NETCHECK_PROGRAM;

constexpr std::array<std::string_view, 5> kKeys{"program", "config", "run_directory", "slurm_bin", "timeout"};
constexpr long kMostSeconds = 120;  ///< beyond it nobody waits for a prolog
constexpr std::size_t kMaxPathBytes = 1'024;

/// What is wrong with the value; "" when it was taken.
std::string set_timeout(Settings& settings, std::string_view value) {
  long seconds = 0;
  const char* last = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), last, seconds);
  if (error != std::errc{} || stop != last || seconds < 1 || seconds > kMostSeconds)
    return fmt::format("timeout= must be whole seconds from 1 to {}", kMostSeconds);
  settings.timeout = std::chrono::seconds(seconds);
  return {};
}

std::string set_path(std::string& field, std::string_view key, std::string_view value) {
  if (!value.starts_with('/') || value.size() > kMaxPathBytes || printable(value, kMaxPathBytes) != value)
    return fmt::format("{}= must be an absolute path", key);
  field = value;
  return {};
}

std::string set(Settings& settings, std::string_view argument) {
  const std::string_view key = argument.substr(0, argument.find('='));
  const std::string_view value = key.size() == argument.size() ? "" : argument.substr(key.size() + 1);
  if (key == "program") return set_path(settings.program, key, value);
  if (key == "config") return set_path(settings.config, key, value);
  if (key == "run_directory") return set_path(settings.run_directory, key, value);
  if (key == "slurm_bin") return set_path(settings.slurm_bin, key, value);
  if (key == "timeout") return set_timeout(settings, value);
  const std::string_view meant = nearest(key, kKeys);
  return fmt::format("unknown argument '{}'{}", printable(key, 40),
                     meant.empty() ? fmt::format(": they are {}", fmt::join(kKeys, "=, ")) + "="
                                   : fmt::format(", did you mean '{}='?", meant));
}

}  // namespace

Settings parse_settings(std::span<char* const> arguments, std::vector<std::string>& complaints) {
  Settings settings;
  for (const char* argument : arguments) {
    if (argument == nullptr) continue;
    if (const std::string wrong = set(settings, argument); !wrong.empty())
      complaints.push_back(fmt::format("plugstack.conf: {}; ignored", wrong));
  }
  return settings;
}

}  // namespace netcheck::plugin
