#include "fabric/nccl/settings.h"

#include "contract/nccl_variable.h"

namespace netcheck::fabric::nccl {

namespace {

std::string* path_of(Settings& settings, const std::string& name) {
  if (name == "library") return &settings.library;
  if (name == "driver") return &settings.driver;
  if (name == "watcher") return &settings.watcher;
  return nullptr;
}

}  // namespace

Result<Settings> read_settings(const std::map<std::string, std::string>& given) {
  Settings settings;
  for (const auto& [name, value] : given) {
    if (value.find('\0') != std::string::npos)
      return fail("set", printable(name, 64), "a zero byte is in it");
    if (auto* const path = path_of(settings, name); path != nullptr) {
      if (value.empty() || value.front() != '/')
        return fail("set", name, "'" + printable(value) + "' is no absolute path");
      *path = value;
    } else if (name == "mig" || name == "busy") {
      if (value != "refuse" && value != "measure")
        return fail("set", name, "'" + printable(value) + "' is neither refuse nor measure");
      (name == "mig" ? settings.take_slices : settings.take_busy) = value == "measure";
    } else if (!name.starts_with("NCCL_")) {
      return fail("set", printable(name, 64),
                  "the NCCL fabric knows library, driver, watcher, mig, busy and NCCL_*");
    } else if (const auto wrong = wrong_nccl_variable(name, value); !wrong.empty()) {
      return fail("set", printable(name, 64), wrong);
    } else {
      settings.environment[name] = value;
    }
  }
  // A service of NCCL 2.24 and later that answers whoever asks on this node: of no use here.
  settings.environment.try_emplace("NCCL_RAS_ENABLE", "0");
  // One way to move the bytes, so that figures compare: NCCL's own choice changes with size and version.
  settings.algorithm = settings.environment.try_emplace("NCCL_ALGO", "Ring").first->second;
  for (char& c : settings.algorithm)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return settings;
}

}  // namespace netcheck::fabric::nccl
