// A stand-in for libnvidia-ml.so.1 that has the GPUs of the file which NETCHECK_FAKE_NVML names, for tests of
// what is asked of it. A line each: driver VERSION; count NUMBER; gpu ADDRESS, and what follows is of it:
// lost, name …, uuid …, mig 0|1, throttle REASONS, limit and default MILLIWATTS, links NUMBER with switch,
// none (inactive) or the ADDRESS of a GPU. hang and crash do so when it is initialised.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "topology/nvml_abi.h"

#define EXPORT extern "C" [[gnu::visibility("default")]]
using namespace netcheck::topology;

namespace netcheck::topology {
struct NvmlHandle {
  std::map<std::string, std::string> words;
  std::vector<std::string> links;
};
}  // namespace netcheck::topology

namespace {

struct Driver {
  std::map<std::string, std::string> words;
  std::map<std::string, NvmlHandle> gpus;
};

Driver read_driver() {
  Driver driver;
  NvmlHandle* gpu = nullptr;
  const char* path = std::getenv("NETCHECK_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, value;
    words >> key >> std::ws;
    std::getline(words, value);
    if (key == "gpu")
      gpu = &driver.gpus[value];
    else if (gpu == nullptr)
      driver.words[key] = value;
    else if (key == "links")
      gpu->links.insert(gpu->links.end(), std::stoul(value), value.substr(value.find(' ') + 1));
    else
      gpu->words[key] = value;
  }
  return driver;
}

Driver& driver() {
  static Driver one = read_driver();
  return one;
}

NvmlAnswer text(const std::string& value, char* into, unsigned length) {
  std::snprintf(into, length, "%s", value.c_str());
  return NvmlAnswer::success;
}

NvmlAnswer number(NvmlHandle* gpu, const char* key, unsigned* into) {
  const auto found = gpu->words.find(key);
  if (found == gpu->words.end()) return NvmlAnswer::not_supported;
  *into = static_cast<unsigned>(std::stoul(found->second));
  return NvmlAnswer::success;
}

}  // namespace

EXPORT NvmlAnswer nvmlInitWithFlags(unsigned) {
  if (driver().words.contains("crash")) std::raise(SIGSEGV);
  while (driver().words.contains("hang"))
    ::pause();
  return NvmlAnswer::success;
}
EXPORT NvmlAnswer nvmlDeviceGetHandleByPciBusId_v2(const char* address, NvmlHandle** gpu) {
  const auto found = driver().gpus.find(address);
  if (found == driver().gpus.end()) return NvmlAnswer::not_found;
  *gpu = &found->second;
  return found->second.words.contains("lost") ? NvmlAnswer::gpu_is_lost : NvmlAnswer::success;
}
EXPORT NvmlAnswer nvmlDeviceGetCount_v2(unsigned* count) {
  const std::string& told = driver().words["count"];
  *count = static_cast<unsigned>(told.empty() ? driver().gpus.size() : std::stoul(told));
  return NvmlAnswer::success;
}
EXPORT NvmlAnswer nvmlSystemGetDriverVersion(char* into, unsigned length) {
  return text(driver().words["driver"], into, length);
}
EXPORT NvmlAnswer nvmlDeviceGetName(NvmlHandle* gpu, char* into, unsigned length) {
  return text(gpu->words["name"], into, length);
}
EXPORT NvmlAnswer nvmlDeviceGetUUID(NvmlHandle* gpu, char* into, unsigned length) {
  return text(gpu->words["uuid"], into, length);
}
EXPORT NvmlAnswer nvmlDeviceGetMigMode(NvmlHandle* gpu, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number(gpu, "mig", current);
}
EXPORT NvmlAnswer nvmlDeviceGetCurrentClocksThrottleReasons(NvmlHandle* gpu, unsigned long long* reasons) {
  unsigned low = 0;
  const NvmlAnswer answer = number(gpu, "throttle", &low);
  *reasons = low;
  return answer;
}
EXPORT NvmlAnswer nvmlDeviceGetEnforcedPowerLimit(NvmlHandle* gpu, unsigned* milliwatts) {
  return number(gpu, "limit", milliwatts);
}
EXPORT NvmlAnswer nvmlDeviceGetPowerManagementDefaultLimit(NvmlHandle* gpu, unsigned* milliwatts) {
  return number(gpu, "default", milliwatts);
}
EXPORT NvmlAnswer nvmlDeviceGetNvLinkState(NvmlHandle* gpu, unsigned link, unsigned* active) {
  if (gpu->links.empty()) return NvmlAnswer::not_supported;
  if (link >= gpu->links.size()) return NvmlAnswer::invalid_argument;
  *active = gpu->links[link] == "none" ? 0 : 1;
  return NvmlAnswer::success;
}
EXPORT NvmlAnswer nvmlDeviceGetNvLinkRemoteDeviceType(NvmlHandle* gpu, unsigned link, NvmlRemote* kind) {
  *kind = gpu->links[link] == "switch" ? NvmlRemote::nvswitch : NvmlRemote::gpu;
  return NvmlAnswer::success;
}
EXPORT NvmlAnswer nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlHandle* gpu, unsigned link, NvmlPci* pci) {
  std::snprintf(pci->address.data(), pci->address.size(), "0000%s", gpu->links[link].c_str());
  return NvmlAnswer::success;
}
