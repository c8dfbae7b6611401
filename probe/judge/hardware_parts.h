// Inside judge: a machine's findings come from two sources, hardware.cpp and hardware_gpus.cpp. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/hardware.h"

namespace netcheck::judge {

using Findings = std::vector<Finding>;

/// Of the GPUs of `limits`: far from their ports, lost by their driver, held down, NVLinks missing.
void add_gpu_findings(const Machine& machine, const Limits& limits, Findings& findings);

/// "mlx5_0", "mlx5_0 and mlx5_1", "mlx5_0, mlx5_1 and 6 more"
[[nodiscard]] std::string some_of(const std::vector<std::string>& names);
/// GPUs 0, 1, 2, 5 → "GPUs 0-2, 5"
[[nodiscard]] std::string name_gpus(const std::vector<std::uint32_t>& gpus);

}  // namespace netcheck::judge
