// The neighbours of each GPU by two trees. Pure.
#include "judge/contradiction.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "measure/locality.h"
#include "measure/other_tree.h"

namespace netcheck::judge {

namespace {

/// What a file tells of without its class is a GPU or a NIC: of others NCCL has no use.
bool is_leaf(const PciDevice& device) {
  return device.kind == PciKind::gpu || device.kind == PciKind::nic || device.kind == PciKind::other;
}

std::string first_of(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front() : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

void other_devices(const Machine& machine, const Machine& file, std::vector<Finding>& findings) {
  std::vector<std::string> strange, forgotten;
  for (const PciDevice& device : file.pci)
    if (is_leaf(device) && !function_at(machine, device.address)) strange.push_back(device.address);
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    if (const auto& address = machine.pci[machine.gpus[i].pci].address; !function_at(file, address))
      forgotten.push_back(fmt::format("GPU {} ({})", i, address));
  const std::string remedy = "take the file that is made for this kind of machine";
  if (!strange.empty())
    findings.push_back(
        {Severity::warning, "nccl-differs", strange.front(),
         fmt::format("{} tells of {}, which this node does not have", file.source, first_of(strange)),
         remedy});
  if (!forgotten.empty())
    findings.push_back({Severity::warning, "nccl-differs", forgotten.front(),
                        fmt::format("{} does not tell of {}", file.source, first_of(forgotten)), remedy});
}

std::string names_of(const Machine& machine, const Nearest& nearest) {
  std::string text;
  for (const std::uint32_t port : nearest.ports)
    text += (text.empty() ? "" : ", ") + machine.ports[port].name;
  return fmt::format("{} ({})", text, netcheck::name_of(nearest.distance));
}

/// Where all ports are equally near the tree is flat: it says nothing that could be contradicted.
void other_neighbours(const Machine& machine, const Machine& file, std::vector<Finding>& findings) {
  const Machine seen = with_tree_of(machine, file);
  const auto fabric = static_cast<std::size_t>(
      std::ranges::count_if(machine.ports, [](const NetworkPort& port) { return port.why_not.empty(); }));
  for (std::uint32_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    if (!function_at(file, machine.pci[machine.gpus[gpu].pci].address)) continue;
    const Nearest own = nearest_ports(machine, gpu, false), theirs = nearest_ports(seen, gpu, false);
    if (own.ports.size() == fabric || own.distance == Distance::unknown || own.ports == theirs.ports)
      continue;
    const std::string name = fmt::format("GPU {}", gpu);
    findings.push_back({Severity::warning, "nccl-differs", name,
                        fmt::format("nearest to {}: {} by {}, {} by PCI", name, names_of(seen, theirs),
                                    file.source, names_of(machine, own)),
                        "take the file that is made for this kind of machine, or none"});
  }
}

}  // namespace

std::vector<Finding> contradictions(const Machine& machine, const Machine& file) {
  std::vector<Finding> findings;
  other_devices(machine, file, findings);
  other_neighbours(machine, file, findings);
  return findings;
}

}  // namespace netcheck::judge
