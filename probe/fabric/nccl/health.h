// Whether GPUs are fit to be measured, as NVML sees them: whole, not in use, without broken memory. A figure
// from one that is not would be about that, and not about the network. Used when the module opens, in a
// thread of its own.
#pragma once

#include <string>
#include <vector>

#include "contract/error.h"
#include "fabric/nccl/settings.h"

namespace netcheck::fabric::nccl {

/// `devices`: PCI bus ids. Error: the first that is not fit, and why. What NVML does not tell, or where there
/// is no NVML, nothing is held against anyone.
[[nodiscard]] Result<void> check_health(const std::vector<std::string>& devices, const Settings& settings);

}  // namespace netcheck::fabric::nccl
