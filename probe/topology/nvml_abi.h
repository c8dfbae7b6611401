// The part of NVML's binary interface that topology asks for a machine's GPUs, declared here instead of taken
// from nvml.h: every machine builds the same program. Unchanged since driver 470; what an older one lacks is
// not asked. fabric/nccl/abi.h has what the NCCL module asks before it measures.
#pragma once

#include <array>

namespace netcheck::topology {

struct NvmlHandle;  ///< opaque: one GPU

enum class NvmlAnswer : int {
  success = 0,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  gpu_is_lost = 15
};

/// nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3.
struct NvmlPci {
  std::array<char, 16> legacy_address;
  unsigned domain, bus, device, ids, subsystem_ids;
  std::array<char, 32> address;  ///< "00000000:5D:00.0"
};
static_assert(sizeof(NvmlPci) == 68);

/// nvmlIntNvLinkDeviceType_t: what is at the other end of an NVLink.
enum class NvmlRemote : unsigned { gpu = 0, ibm_npu = 1, nvswitch = 2, unknown = 255 };

// nvmlClocksThrottleReason…: why clocks are lower than they could be.
inline constexpr unsigned long long kNvmlHwSlowdown = 0x8, kNvmlSwThermal = 0x20, kNvmlHwThermal = 0x40,
                                    kNvmlPowerBrake = 0x80;
/// NVML_NVLINK_MAX_LINKS: a GPU says itself, by invalid_argument, where it has fewer.
inline constexpr unsigned kNvmlMostLinks = 18;
/// NVML_INIT_FLAG_NO_ATTACH: GPUs are attached one by one, when they are asked for.
inline constexpr unsigned kNvmlNoAttach = 2;

/// Those that may be missing are null.
struct NvmlQuestions {
  NvmlAnswer (*init)(unsigned flags);
  NvmlAnswer (*by_address)(const char*, NvmlHandle**);
  NvmlAnswer (*count)(unsigned*);
  NvmlAnswer (*driver_version)(char*, unsigned);
  NvmlAnswer (*name)(NvmlHandle*, char*, unsigned);
  NvmlAnswer (*uuid)(NvmlHandle*, char*, unsigned);
  NvmlAnswer (*mig)(NvmlHandle*, unsigned* current, unsigned* pending);
  NvmlAnswer (*throttle)(NvmlHandle*, unsigned long long*);
  NvmlAnswer (*power_limit)(NvmlHandle*, unsigned* milliwatts);
  NvmlAnswer (*power_default)(NvmlHandle*, unsigned* milliwatts);
  NvmlAnswer (*link_state)(NvmlHandle*, unsigned link, unsigned* active);
  NvmlAnswer (*link_remote)(NvmlHandle*, unsigned link, NvmlRemote*);
  NvmlAnswer (*link_pci)(NvmlHandle*, unsigned link, NvmlPci*);
};

}  // namespace netcheck::topology
