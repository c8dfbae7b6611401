// Inside topology: what NVIDIA's driver says of its GPUs through NVML. Asking takes milliseconds where the
// driver is kept loaded and seconds where it is not, and may hang or crash with a broken GPU: it is done in a
// process of its own (ask_driver), and what comes of it is a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/machine.h"

namespace netcheck::topology {

struct DriverLink {
  std::string peer;  ///< a GPU's PCI address; empty: a switch
  std::uint32_t count = 0;
};

struct DriverGpu {
  std::string address;  ///< as the machine has it
  bool lost = false;    ///< the driver had it, and does no longer reach it; nothing else is known then
  std::string model, uuid;
  std::optional<bool> mig;
  std::string slowed;
  std::optional<std::uint32_t> power_limit, power_default;  ///< watts
  bool links_known = false;
  std::vector<DriverLink> links;  ///< those that are active
};

struct DriverView {
  std::string version;
  std::uint32_t count = 0;      ///< GPUs that the driver offers to this process
  std::vector<DriverGpu> gpus;  ///< of those that were asked for, the ones that it knows
};

/// Of the GPUs at these PCI addresses. nullopt: there is no such library, or no driver. Blocks.
[[nodiscard]] std::optional<DriverView> look_through_nvml(const std::string& library,
                                                          const std::vector<std::string>& addresses);

/// Puts the driver's word into the machine. A GPU that it does not offer to this process (Slurm's device
/// cgroup) is as before; one that it has lost is lost.
void add_driver_view(Machine& machine, const DriverView& view);

[[nodiscard]] Json to_json(const DriverView& view);
/// Throws Malformed (for read_frame).
[[nodiscard]] DriverView driver_view_from_json(const Json& value);

}  // namespace netcheck::topology
