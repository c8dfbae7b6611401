// Inside topology: the sources of a Machine, one function each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/machine.h"

namespace pugi {
class xml_document;
}
struct hwloc_topology;

namespace netcheck::topology {

inline constexpr std::uint16_t kNvidia = 0x10de;  ///< as a PCI vendor (pci.ids)

/// PCI tree, NUMA nodes, GPUs and (from XML) ports as hwloc sees them. `fsroot` empty: this machine.
[[nodiscard]] Result<Machine> tree_of_system(const std::string& fsroot);
[[nodiscard]] Result<Machine> tree_of_hwloc_xml(pugi::xml_document& document, const std::string& name);
[[nodiscard]] Result<Machine> tree_of_nccl_xml(const pugi::xml_document& document, const std::string& name);

/// What hwloc's matrix tells of NVLinks, if the recording has one: of the machine's GPUs and NVSwitches.
void add_hwloc_nvlinks(Machine& machine, hwloc_topology* topology);

/// What sysfs and procfs below `fsroot` add: link speeds, drivers, IOMMU, ACS, GPUs' names; all ports.
void add_pci_attributes(Machine& machine, const std::string& fsroot);
void add_gpu_names(Machine& machine, const std::string& fsroot);
void add_driver_versions(Machine& machine, const std::string& fsroot);
void add_ports(Machine& machine, const std::string& fsroot, bool live);

/// Sets what each port of the tree faces, from its place in it.
void tell_facings(Machine& machine);
/// The bridges that QEMU shows its guests (its own, and TI's XIO3130) say "2.5 GT/s x1" or what they like:
/// their links are unknown.
void forget_emulated_links(Machine& machine);
/// Leaves out devices that neither are nor lead to a GPU, a network port, an NVSwitch, or one of `also`.
void prune(Machine& machine, const std::vector<std::uint32_t>& also = {});

/// "16.0 GT/s PCIe" and "8": both must mean something ("Unknown", 0 and 255 do not).
[[nodiscard]] std::optional<PciSpeed> parse_pci_speed(std::string_view speed, std::string_view width);

/// What one NVLink of a GPU carries one way: 20 GB/s of the first generation (P100), 25 from the second to
/// the fourth (V100, A100, H100), but 14.06 of GA102 (A40, A6000: four links), 50 of the fifth (Blackwell):
/// half of NVIDIA's published bidirectional figures.
[[nodiscard]] Rate nvlink_rate(std::uint16_t device);

}  // namespace netcheck::topology
