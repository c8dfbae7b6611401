#include "fabric/nccl/health.h"

#include <fmt/format.h>

#include <array>

#include "fabric/nccl/abi.h"
#include "fabric/nccl/library.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr std::size_t kMostProcesses = 64;

Result<void> check_one(const NvmlCalls& nvml, const std::string& device, const Settings& settings) {
  NvmlDevice* handle = nullptr;
  if (nvml.device_by_pci_bus_id(device.c_str(), &handle) != NvmlResult::success) return {};
  const std::string subject = "GPU " + printable(device, 64);
  unsigned current = 0, pending = 0;
  if (!settings.take_slices && nvml.mig_mode(handle, &current, &pending) == NvmlResult::success &&
      current != 0)
    return fail("measure", subject, "it is in MIG mode, where NCCL has no way from GPU to GPU");
  std::array<NvmlProcess, kMostProcesses> processes{};
  unsigned count = kMostProcesses;
  const NvmlResult asked = nvml.compute_processes(handle, &count, processes.data());
  if (!settings.take_busy && asked == NvmlResult::insufficient_size)
    return fail("measure", subject, "many processes compute on it");
  if (!settings.take_busy && asked == NvmlResult::success && count > 0)
    return fail("measure", subject,
                fmt::format("process {} computes on it{}", processes[0].pid,
                            count > 1 ? fmt::format(", and {} more", count - 1) : ""),
                "end what an earlier job has left");
  unsigned corrected = 0, uncorrected = 0, waiting = 0, failed = 0;
  if (nvml.remapped_rows(handle, &corrected, &uncorrected, &waiting, &failed) == NvmlResult::success &&
      failed != 0)
    return fail("measure", subject, "its memory has rows that could not be remapped", "have it replaced");
  return {};
}

}  // namespace

Result<void> check_health(const std::vector<std::string>& devices, const Settings& settings) {
  const auto nvml = load_nvml(settings.watcher);
  if (!nvml || nvml->init() != NvmlResult::success) return {};
  for (const auto& device : devices)
    if (auto fit = check_one(*nvml, device, settings); !fit) return fit;
  return {};
}

}  // namespace netcheck::fabric::nccl
