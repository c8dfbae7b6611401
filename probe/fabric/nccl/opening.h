// Everything that blocks before there is anything to poll: libraries, the driver, a context on each GPU, in
// threads of their own, while the child goes on giving signs of life. Used by the module.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/nccl/communicator.h"
#include "fabric/nccl/gpu.h"
#include "fabric/nccl/settings.h"
#include "system/descriptor.h"

namespace netcheck::fabric::nccl {

struct Opened {
  std::unique_ptr<CuCalls> driver;  // stays where it is: the GPUs point to it
  std::unique_ptr<Nccl> nccl;
  std::vector<std::unique_ptr<Gpu>> gpus;  // by lane
  std::uint64_t max_bytes = 0;
  std::vector<std::string> terms;  // fabric::Ready's
};

/// Called in a thread of its own. `environment` must be set by then.
[[nodiscard]] Result<Opened> open_all(const Options& options, const Settings& settings);

/// NCCL's own words, kept in memory for transports_in(). For the process: NCCL takes one file, when it
/// starts.
class Log {
 public:
  /// Sets NCCL's environment to log there. Without it (no memory) nothing is known of transports.
  void start();
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::string read() const;

 private:
  system::Descriptor file_;
};

}  // namespace netcheck::fabric::nccl
