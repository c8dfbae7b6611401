#include "fabric/nccl/terms.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "contract/nccl_variable.h"
#include "fabric/fabric.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr const char* kPlugin = "NCCL_NET_PLUGIN";
constexpr std::string_view kDefaultPlugin = "libnccl-net.so";
/// Not compared: each node's own file is, by what is in it.
constexpr const char* kOtherFile = "NCCL_CONF_FILE";

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string value_of(const std::map<std::string, std::string>& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

/// Once opened it stays, as it would with NCCL.
std::string loaded_plugin(const std::string& wanted) {
  for (const auto& name : plugin_names(wanted))
    if (::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return name;
  return "none";
}

std::string term(const std::string& name, const std::string& value) {
  return printable(name + "=" + value, kMaxTerm);
}

}  // namespace

Result<std::vector<std::string>> terms_of(const std::map<std::string, std::string>& environment,
                                          const std::string& file) {
  auto in_force = environment;
  std::vector<std::string> files{file};
  if (auto other = value_of(environment, kOtherFile); !other.empty()) files.insert(files.begin(), other);
  for (const auto& path : files)
    for (const auto& [name, value] : settings_in(text_of(path))) {
      // NCCL takes from a file only what is not set: of the module's own that is this one. The others, and
      // what is no variable of NCCL's, are nobody's concern.
      if (name == "NCCL_COMM_ID")
        return fail("read", path, "NCCL_COMM_ID in it would have all teams meet at one place",
                    "remove it there");
      if (wrong_nccl_variable(name, "").empty()) in_force.try_emplace(name, value);
    }
  std::vector<std::string> terms{term("net", loaded_plugin(value_of(in_force, kPlugin)))};
  for (const auto& [name, value] : in_force)
    if (name != kOtherFile && terms.size() < kMaxTerms) terms.push_back(term(name, value));
  return terms;
}

std::map<std::string, std::string> settings_in(std::string_view file) {
  std::map<std::string, std::string> settings;
  while (!file.empty()) {
    const auto line = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(file.size(), line.size() + 1));
    const auto equals = line.find('=');
    if (line.starts_with('#') || !line.starts_with("NCCL_") || equals == std::string_view::npos) continue;
    settings.try_emplace(std::string(line.substr(0, equals)), line.substr(equals + 1));
  }
  return settings;
}

std::vector<std::string> plugin_names(std::string_view wanted) {
  if (wanted.empty()) return {std::string(kDefaultPlugin)};
  if (wanted == "none") return {};
  // As it stands, a path or a file's name, or what comes between "libnccl-net-" and ".so".
  return {std::string(wanted), fmt::format("libnccl-net-{}.so", wanted), std::string(kDefaultPlugin)};
}

}  // namespace netcheck::fabric::nccl
