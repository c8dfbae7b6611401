// A stand-in for libnvidia-ml.so.1: what it says of every GPU is in fake.ini: mig=1, process=PID,
// remap_failed=1.
#include "fabric/nccl/abi.h"
#include "faults.h"

#define EXPORT extern "C" [[gnu::visibility("default")]]
using namespace netcheck::fabric::nccl;
using netcheck::fakes::fault_number;

namespace netcheck::fabric::nccl {
struct NvmlDevice {};
}  // namespace netcheck::fabric::nccl

EXPORT NvmlResult nvmlInit_v2() {
  return NvmlResult::success;
}
EXPORT NvmlResult nvmlDeviceGetHandleByPciBusId_v2(const char*, NvmlDevice** device) {
  static NvmlDevice any;
  *device = &any;
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
