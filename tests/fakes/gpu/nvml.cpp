// A stand-in for libnvidia-ml.so.1. fake.ini: gpus=N (default 2), minors=M,M (their /dev/nvidiaM; default
// 0,1…), and of every GPU mig=1, process=PID, remap_failed=1.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "fabric/nccl/abi.h"
#include "faults.h"

#define EXPORT extern "C" [[gnu::visibility("default")]]
using namespace netcheck::fabric::nccl;
using netcheck::fakes::fault;
using netcheck::fakes::fault_number;

namespace netcheck::fabric::nccl {
struct NvmlDevice {
  unsigned index = 0;
};
}  // namespace netcheck::fabric::nccl

namespace {

constexpr unsigned kFirstBus = 0xf0, kMost = 8;
constexpr NvmlResult kInvalidArgument{2};

NvmlDevice* device_at(unsigned index) {
  static std::array<NvmlDevice, kMost> all;
  all.at(index).index = index;
  return &all.at(index);
}

}  // namespace

EXPORT NvmlResult nvmlInit_v2() {
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(fault_number("gpus", 2));
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice** device) {
  if (index >= fault_number("gpus", 2)) return kInvalidArgument;
  *device = device_at(index);
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetHandleByPciBusId_v2(const char* bus, NvmlDevice** device) {
  unsigned domain = 0, number = 0;
  if (std::sscanf(bus, "%x:%x:", &domain, &number) != 2 || number < kFirstBus) return kInvalidArgument;
  return nvmlDeviceGetHandleByIndex_v2(number - kFirstBus, device);
}
EXPORT NvmlResult nvmlDeviceGetMinorNumber(NvmlDevice* device, unsigned* minor) {
  *minor = device->index;
  std::istringstream minors(fault("minors"));
  std::string text;
  for (unsigned i = 0; std::getline(minors, text, ','); ++i)
    if (i == device->index) *minor = static_cast<unsigned>(std::stoul(text));
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetPciInfo_v3(NvmlDevice* device, NvmlPciInfo* info) {
  *info = {};
  info->bus = kFirstBus + device->index;
  // In capitals and with eight digits of domain, as NVML does.
  std::snprintf(info->bus_id.data(), info->bus_id.size(), "00000000:%02X:00.0", info->bus);
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetMigMode(NvmlDevice*, unsigned* current, unsigned* pending) {
  *current = *pending = static_cast<unsigned>(fault_number("mig", 0));
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice*, unsigned* count,
                                                          NvmlProcess* processes) {
  const auto pid = static_cast<unsigned>(fault_number("process", 0));
  if (pid != 0) processes[0].pid = pid;
  *count = pid == 0 ? 0 : 1;
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetRemappedRows(NvmlDevice*, unsigned* corrected, unsigned* uncorrected,
                                            unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *pending = 0;
  *failed = static_cast<unsigned>(fault_number("remap_failed", 0));
  return NvmlResult::success;
}
