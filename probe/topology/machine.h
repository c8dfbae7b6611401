// This node, or a recording of one, as a contract Machine: PCI tree, GPUs, ports, NUMA. As whoever runs
// `netcheck topo`, and as the probe user; needs no root (as root it sees more: ACS).
//
// hwloc gives the tree and the NUMA nodes; sysfs what hwloc leaves out (speeds and widths, ports, drivers,
// IOMMU). Nothing is derived here but which ports are fabric ports (roles): distances and limits are
// measure's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/machine.h"

namespace netcheck::topology {

/// This node; with `fsroot` a recorded one: a folder with its /sys and /proc, as hwloc-gather-topology makes.
[[nodiscard]] Result<Machine> read_machine(const std::string& fsroot = "");

/// Adds what NVIDIA's driver alone knows of this machine's GPUs (MIG, NVLinks, clocks held down, GPUs that it
/// has lost), through NVML, in a process of its own: after `patience` a note says that it did not answer.
/// Nothing is asked, nor loaded, where there is no GPU of NVIDIA's. `library`: empty: as the loader finds it.
void ask_driver(Machine& machine, Ns patience, const std::string& library);

/// Adds the versions of UCX and, where there are GPUs of NVIDIA's, of NCCL: each loaded in a process that is
/// no other's. `nccl`: empty: as the loader finds it. What is not installed is left out.
void ask_libraries(Machine& machine, Ns patience, const std::string& nccl);

/// A file: hwloc's XML (lstopo --of xml), NCCL's (NCCL_TOPO_DUMP_FILE), or what `netcheck topo --save` wrote;
/// its content says which.
[[nodiscard]] Result<Machine> read_recording(const std::string& path);
/// The same of a file that only root can change: one that the site names for its nodes.
[[nodiscard]] Result<Machine> read_trusted_recording(const std::string& path);
/// The same of its text. `name` stands for it in errors and in Machine::source.
[[nodiscard]] Result<Machine> parse_recording(std::string_view text, const std::string& name);

/// What the site says of its devices, as globs of a port's name, its interface, or UCX's "mlx5_0:1".
struct PortGlobs {
  std::vector<std::string> include;  ///< exactly these are fabric ports; empty: the rules decide
  std::vector<std::string> exclude;
};

/// Tells fabric ports from the rest: sets NetworkPort::why_not of each. The rules are in roles.cpp.
void tell_roles(Machine& machine, const PortGlobs& globs);

/// Those of `globs` that fit no port of the machine: slips, or another node's.
[[nodiscard]] std::vector<std::string> without_port(const Machine& machine,
                                                    const std::vector<std::string>& globs);

/// Whether PCI ids mean a compute GPU: 3D controller (0302), other display (0380), accelerator (1200) of
/// NVIDIA, AMD or Intel. A VGA controller (0300) counts only as NVIDIA's: every server has one for its
/// console.
[[nodiscard]] bool is_gpu(std::uint16_t vendor, std::uint16_t pci_class);

/// What container engines, hypervisors and tunnels make, by the name they give it; nullptr: nothing of
/// theirs.
[[nodiscard]] const char* kind_of_virtual(const std::string& interface);

}  // namespace netcheck::topology
