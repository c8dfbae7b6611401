// Which GPUs are meant by the numbers that Slurm gives a job: its SLURM_JOB_GPUS counts them as their device
// files do, /dev/nvidia3, which is no other library's order. Used when the module opens, in a thread of its
// own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "fabric/nccl/settings.h"

namespace netcheck::fabric::nccl {

/// Where the driver's kernel part lists its GPUs, each in a folder named by its bus id.
inline constexpr const char* kDriverFolder = "/proc/driver/nvidia/gpus";

/// PCI bus ids, "0000:1b:00.0", of `devices`, each of which is one already, or "gpu:3", which is
/// /dev/nvidia3: NVML tells, or else the driver in `folder`. Error: a number that no GPU here has, nobody to
/// tell, one GPU twice.
[[nodiscard]] Result<std::vector<std::string>> bus_ids_of(const std::vector<std::string>& devices,
                                                          const Settings& settings,
                                                          const std::string& folder = kDriverFolder);

// Pure:
/// 3 of "gpu:3"; absent for what has another form.
[[nodiscard]] std::optional<unsigned> number_of(std::string_view device);
/// "0000:1b:00.0" of "00000000:1B:00.0", as NVML writes it: as sysfs does, whose domains have four digits.
[[nodiscard]] std::string short_bus_id(std::string_view bus);
/// 3 of the driver's text about a GPU, in which a line is "Device Minor: \t 3".
[[nodiscard]] std::optional<unsigned> minor_in(std::string_view information);

}  // namespace netcheck::fabric::nccl
