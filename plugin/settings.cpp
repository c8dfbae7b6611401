#include "settings.h"

#include <fmt/format.h>

namespace netcheck::plugin {

namespace {

/// For `strings netcheck.so`: where this plugin looks for its program. Compilers scatter a short default over
/// instructions.
[[gnu::used]] constexpr char kBuiltFor[] = "program=" NETCHECK_PROGRAM;

}  // namespace

Settings parse_settings(std::span<char* const> arguments, std::vector<std::string>& complaints) {
  Settings settings;
  for (const char* argument : arguments) {
    if (argument == nullptr) continue;
    if (const auto slip = set_plugin_argument(settings, argument))
      complaints.push_back(fmt::format("plugstack.conf: {}; ignored", slip->wrong));
  }
  return settings;
}

}  // namespace netcheck::plugin
