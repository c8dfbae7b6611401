// What a site may set for the NCCL module (Options::settings), and what the module sets itself. Pure.
#pragma once

#include <map>
#include <string>

#include "contract/error.h"

namespace netcheck::fabric::nccl {

struct Settings {
  std::string library;                             ///< of NCCL; "" = libnccl.so.2 where the loader finds it
  std::string driver;                              ///< of CUDA; "" = libcuda.so.1
  std::string watcher;                             ///< NVML; "" = libnvidia-ml.so.1
  bool take_slices = false;                        ///< "mig=measure": GPUs in MIG mode, too
  bool take_busy = false;                          ///< "busy=measure": GPUs that others compute on, too
  std::map<std::string, std::string> environment;  ///< NCCL_*
  std::string algorithm;                           ///< in force, in lower case: "ring"
};

/// Error: a name that is none of these, or a variable that the module needs for itself.
[[nodiscard]] Result<Settings> read_settings(const std::map<std::string, std::string>& given);

}  // namespace netcheck::fabric::nccl
