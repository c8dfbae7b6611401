// hwloc's matrix of NVLinks → Machine::nvlinks. As whoever runs `netcheck topo`.
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "topology/tree.h"

namespace netcheck::topology {

namespace {

std::optional<std::string> address_of(hwloc_obj_t object) {
  while (object != nullptr && object->type == HWLOC_OBJ_OS_DEVICE)
    object = object->parent;
  if (object == nullptr || object->type != HWLOC_OBJ_PCI_DEVICE) return std::nullopt;
  const auto& pci = object->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

std::optional<std::uint32_t> gpu_at(const Machine& machine, const std::optional<std::string>& address) {
  for (std::uint32_t i = 0; address && i < machine.gpus.size(); ++i)
    if (machine.pci[machine.gpus[i].pci].address == *address) return i;
  return std::nullopt;
}

bool is_nvswitch(const Machine& machine, const std::optional<std::string>& address) {
  return address && std::ranges::any_of(machine.pci, [&](const PciDevice& device) {
           return device.kind == PciKind::nvswitch && device.address == *address;
         });
}

/// hwloc multiplies the number of links by 20 GB/s in the first generation and by 25 in those up to the
/// fourth, in boards of slower links as well (topology-nvml.c); of the fifth it has what NVIDIA says.
Rate hwlocs_rate(std::uint16_t device) {
  constexpr Rate kSecond{200e9};
  const Rate rate = nvlink_rate(device);
  return rate < Rate{150e9} ? kSecond : rate;
}

}  // namespace

// In MB/s one way. A link may also lead to a processor (POWER8 and 9): no GPU is behind that.
void add_hwloc_nvlinks(Machine& machine, hwloc_topology* topology) {
  unsigned count = 1;
  hwloc_distances_s* matrix = nullptr;
  if (::hwloc_distances_get_by_name(topology, "NVLinkBandwidth", &count, &matrix, 0) != 0 || count == 0)
    return;
  machine.nvlinks_known = true;
  std::map<std::pair<std::uint32_t, std::optional<std::uint32_t>>, double> megabytes;  // by GPU and peer
  for (unsigned i = 0; i < matrix->nbobjs; ++i) {
    const auto from = gpu_at(machine, address_of(matrix->objs[i]));
    if (!from) continue;
    for (unsigned j = 0; j < matrix->nbobjs; ++j) {
      const auto value = matrix->values[(static_cast<std::size_t>(i) * matrix->nbobjs) + j];
      if (i == j || value == 0) continue;
      const auto address = address_of(matrix->objs[j]);
      const auto to = gpu_at(machine, address);
      if (to || is_nvswitch(machine, address)) megabytes[{*from, to}] += static_cast<double>(value);
    }
  }
  ::hwloc_distances_release(topology, matrix);
  for (const auto& [ends, rate] : megabytes) {
    const std::uint16_t device = machine.pci[machine.gpus[ends.first].pci].device;
    NvLink link{.gpu = ends.first, .peer = ends.second};
    link.count = static_cast<std::uint32_t>(std::lround(rate * 8e6 / hwlocs_rate(device).bits_per_second));
    link.rate = Rate{link.count * nvlink_rate(device).bits_per_second};
    if (link.count > 0) machine.nvlinks.push_back(link);
  }
}

}  // namespace netcheck::topology
