// Opening libnccl, libcuda and NVML: with dlopen, never linked, so that a node without them still loads the
// module and says what is missing. In the fabric child, as the probe user.
#pragma once

#include <string>

#include "contract/error.h"
#include "fabric/nccl/abi.h"

namespace netcheck::fabric::nccl {

/// `path`: "" for libnccl.so.2 where the loader finds it. Error: no such library, not NCCL, a symbol missing.
[[nodiscard]] Result<NcclCalls> load_nccl(const std::string& path);
/// `path`: "" for libcuda.so.1, the driver's.
[[nodiscard]] Result<CuCalls> load_cuda(const std::string& path);

/// `path`: "" for libnvidia-ml.so.1, the driver's. NVML since driver 450 has all that is used.
[[nodiscard]] Result<NvmlCalls> load_nvml(const std::string& path);

/// Error: older than what the module uses.
[[nodiscard]] Result<void> check_nccl_version(int code);

}  // namespace netcheck::fabric::nccl
