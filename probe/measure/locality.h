// Where a machine's devices are to each other: the way between two of them through the PCI tree, named as
// `nvidia-smi topo -m` names it, and which ports serve which GPUs. Pure. Used by limits, judge and picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/machine.h"

namespace netcheck {

/// From near to far, in the terms of nvidia-smi: the device itself; at most one PCI switch between; several;
/// a host bridge, so the CPU; two host bridges of one NUMA node; the link between NUMA nodes or sockets.
enum class Distance : std::uint8_t { self, pix, pxb, phb, node, sys, unknown };

/// "X", "PIX" … "SYS", "?".
[[nodiscard]] const char* name_of(Distance distance);

/// A PCIe link between a device and what is above it.
struct PciHop {
  std::uint32_t device = 0;  ///< its lower end: of several functions of one card, the first
  std::optional<Rate> now;
  std::optional<Rate> most;  ///< what both ends can; where one end does not say, as now
  /// As they are written for people: "Gen4 x8"; the rate where a recording has nothing else.
  std::string now_text, most_text;
  bool narrower = false;  ///< fewer lanes than both ends have
  bool slower = false;    ///< an older generation than both ends can
};

/// The link above `device`; nullopt where there is none (inside a switch, to a host bridge) or nothing is
/// known of it.
[[nodiscard]] std::optional<PciHop> link_above(const Machine& machine, std::uint32_t device);

struct Way {
  Distance distance = Distance::unknown;
  std::vector<PciHop> hops;  ///< its PCIe links, from `from` up and down to `to`
};

[[nodiscard]] Way way_between(const Machine& machine, std::uint32_t from, std::uint32_t to);
[[nodiscard]] Distance distance_between(const Machine& machine, std::uint32_t from, std::uint32_t to);

/// The way from a device to the memory of its NUMA node.
[[nodiscard]] std::vector<PciHop> hops_to_root(const Machine& machine, std::uint32_t device);

/// The host bridge above a device.
[[nodiscard]] const PciDevice& host_bridge_of(const Machine& machine, std::uint32_t device);

/// The function at that address; never a host bridge.
[[nodiscard]] std::optional<std::uint32_t> function_at(const Machine& machine, std::string_view address);

/// The PCI device that stands for a port: its own; of a bond its first member's.
[[nodiscard]] std::optional<std::uint32_t> pci_of(const Machine& machine, const NetworkPort& port);

/// NVLinks between two GPUs, direct ones or over NVSwitches; 0: none, or not known.
[[nodiscard]] std::uint32_t nvlinks_between(const Machine& machine, std::uint32_t gpu, std::uint32_t other);
/// All NVLinks of a GPU, and what they carry one way; a rate only where all of them say theirs.
[[nodiscard]] NvLink nvlinks_of(const Machine& machine, std::uint32_t gpu);

/// The fabric ports nearest to a GPU, as indices into Machine::ports. Equally near ones share its traffic, as
/// NCCL spreads its channels. `only_up`: of those that are not down.
struct Nearest {
  Distance distance = Distance::unknown;
  std::vector<std::uint32_t> ports;
};
[[nodiscard]] Nearest nearest_ports(const Machine& machine, std::uint32_t gpu, bool only_up);

}  // namespace netcheck
