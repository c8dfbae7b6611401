// The versions of the libraries that carry a job's data. As whoever runs `netcheck topo`: in a check their
// own modules tell them.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "contract/nccl_version.h"
#include "contract/wire.h"
#include "topology/apart.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {
namespace {

constexpr std::size_t kMostVersion = 63;

template <typename Call>
Call call_of(const char* library, const char* symbol) {
  void* const opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return opened == nullptr ? nullptr : reinterpret_cast<Call>(::dlsym(opened, symbol));
}

std::string version_of_nccl(const std::string& library) {
  const auto ask =
      call_of<int (*)(int*)>(library.empty() ? "libnccl.so.2" : library.c_str(), "ncclGetVersion");
  int code = 0;
  return ask != nullptr && ask(&code) == 0 ? nccl_version(code) : std::string();
}

std::string version_of_ucx() {
  const auto ask = call_of<void (*)(unsigned*, unsigned*, unsigned*)>("libucp.so.0", "ucp_get_version");
  unsigned major = 0, minor = 0, release = 0;
  if (ask == nullptr) return {};
  ask(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

/// Slurm may keep a job's step from seeing any GPU: the driver's folder tells of them all the same.
bool has_nvidia(const Machine& machine) {
  std::error_code error;
  for (const Gpu& gpu : machine.gpus)
    if (machine.pci[gpu.pci].vendor == kNvidia) return true;
  return std::filesystem::exists("/proc/driver/nvidia/version", error);
}

}  // namespace

void ask_libraries(Machine& machine, Ns patience, const std::string& nccl) {
  const bool gpus = has_nvidia(machine);
  const Apart said = ask_apart(patience, [&]() -> std::optional<Json> {
    ::clearenv();  // of UCX_… and NCCL_… nothing is wanted here
    return Json{{"UCX", version_of_ucx()}, {"NCCL", gpus ? version_of_nccl(nccl) : ""}};
  });
  if (said.late)
    machine.notes.emplace_back("NCCL and UCX did not load in time: their versions are not known");
  if (said.frame.empty()) return;
  const auto read = [&](const Json& value) {
    const Fields versions(value, "versions");
    for (const char* library : {"UCX", "NCCL"})
      if (std::string version = versions.text(library, kMostVersion); !version.empty())
        machine.libraries.push_back({library, printable(version, kMostVersion)});
    return true;
  };
  static_cast<void>(read_frame(said.frame, "what NCCL and UCX say", read));
}

}  // namespace netcheck::topology
