// What follows from the form of a PCI tree, and what its numbers mean. Pure.
#include <algorithm>
#include <array>
#include <charconv>

#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

bool leads_somewhere(PciKind kind) {
  return kind == PciKind::gpu || kind == PciKind::nic || kind == PciKind::nvswitch;
}

// "0000:5d:00" of "0000:5d:00.1"
std::string_view slot_of(const PciDevice& device) {
  return std::string_view(device.address).substr(0, device.address.find('.'));
}

// Below a port that looks down there is one device; a second one means that the tree is not what it seems.
// The functions of SR-IOV of that one take the numbers of other slots (Alternative Routing-ID
// Interpretation).
bool has_several_slots(const Machine& machine, std::uint32_t port) {
  std::string_view first;
  for (const PciDevice& device : machine.pci) {
    if (device.parent != port || device.physical) continue;
    if (first.empty()) first = slot_of(device);
    if (slot_of(device) != first) return true;
  }
  return false;
}

}  // namespace

bool is_gpu(std::uint16_t vendor, std::uint16_t pci_class) {
  constexpr std::uint16_t kAmdId = 0x1002, kIntelId = 0x8086;  // pci.ids
  if (vendor == kNvidia) return pci_class == 0x0300 || pci_class == 0x0302;
  if (vendor != kAmdId && vendor != kIntelId) return false;
  return pci_class == 0x0302 || pci_class == 0x0380 || pci_class == 0x1200;
}

void forget_emulated_links(Machine& machine) {
  constexpr std::uint16_t kRedHat = 0x1b36, kTexas = 0x104c;  // pci.ids
  for (PciDevice& device : machine.pci) {
    const bool x3130 = device.vendor == kTexas && (device.device == 0x8232 || device.device == 0x8233);
    if (device.kind == PciKind::port && (device.vendor == kRedHat || x3130)) device.link = {};
  }
}

// PCIe is point to point: a root port looks down; a port below it is a switch's upstream port; below that are
// the switch's downstream ports, and so on.
void tell_facings(Machine& machine) {
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i) {
    PciDevice& device = machine.pci[i];
    if (device.kind != PciKind::port || !device.parent) continue;
    const PciDevice& above = machine.pci[*device.parent];
    device.facing = above.kind == PciKind::port && above.facing == Facing::down ? Facing::up : Facing::down;
    if (above.kind == PciKind::port && above.facing == Facing::unknown) device.facing = Facing::unknown;
    if (device.facing == Facing::down && has_several_slots(machine, i)) device.facing = Facing::unknown;
  }
}

void prune(Machine& machine, const std::vector<std::uint32_t>& also) {
  std::vector<bool> keep(machine.pci.size(), false);
  for (const std::uint32_t device : also)
    keep[device] = true;
  for (std::size_t i = machine.pci.size(); i-- > 0;) {
    keep[i] = keep[i] || leads_somewhere(machine.pci[i].kind);
    if (keep[i] && machine.pci[i].parent) keep[*machine.pci[i].parent] = true;
  }
  std::vector<std::uint32_t> place(machine.pci.size(), 0);
  std::vector<PciDevice> kept;
  for (std::size_t i = 0; i < machine.pci.size(); ++i) {
    if (!keep[i]) continue;
    place[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(machine.pci[i]));
    if (auto& parent = kept.back().parent) parent = place[*parent];
  }
  machine.pci = std::move(kept);
  for (Gpu& gpu : machine.gpus)
    gpu.pci = place[gpu.pci];
  for (NetworkPort& port : machine.ports)
    if (port.pci) port.pci = keep[*port.pci] ? std::optional(place[*port.pci]) : std::nullopt;
}

std::optional<PciSpeed> parse_pci_speed(std::string_view speed, std::string_view width) {
  PciSpeed parsed;
  const auto [rest, bad_speed] =
      std::from_chars(speed.data(), speed.data() + speed.size(), parsed.gigatransfers);
  const auto [end, bad_width] = std::from_chars(width.data(), width.data() + width.size(), parsed.lanes);
  if (bad_speed != std::errc() || bad_width != std::errc()) return std::nullopt;
  const std::string_view unit = speed.substr(static_cast<std::size_t>(rest - speed.data()));
  if (unit.rfind(" GT/s", 0) != 0) return std::nullopt;
  // The widths and speeds that PCI Express has; sysfs says 0, 63 or 255 where it does not know.
  constexpr std::array<std::uint32_t, 7> kWidths = {1, 2, 4, 8, 12, 16, 32};
  constexpr double kSlowest = 2.5, kFastest = 128;
  if (std::ranges::find(kWidths, parsed.lanes) == kWidths.end()) return std::nullopt;
  if (!(parsed.gigatransfers >= kSlowest && parsed.gigatransfers <= kFastest)) return std::nullopt;
  return parsed;
}

Rate nvlink_rate(std::uint16_t device) {
  const std::uint16_t family = device & 0xff00U;
  const bool first = device >= 0x15f0 && device <= 0x15ff;  // GP100
  const bool slow = family == 0x2200;                       // GA102
  const bool fifth = family == 0x2900 || family == 0x3100;  // GB100, GB200, GB110 (pci.ids)
  return {first ? 160e9 : slow ? 112.5e9 : fifth ? 400e9 : 200e9};
}

}  // namespace netcheck::topology
