// What sysfs and procfs tell of PCI functions and GPUs, and hwloc does not. Every file may be missing, empty
// or say "Unknown": then that is unknown. As the probe user or whoever runs `netcheck topo`; ACS only as
// root, since the kernel shows others the first 64 bytes of a function's configuration space.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "measure/locality.h"
#include "topology/interfaces.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

namespace fs = std::filesystem;

std::optional<PciSpeed> speed_in(const std::string& folder, const char* which) {
  const auto speed = first_line(folder + "/" + which + "_link_speed");
  const auto width = first_line(folder + "/" + which + "_link_width");
  return speed && width ? parse_pci_speed(*speed, *width) : std::nullopt;
}

std::string last_part_of_link(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : printable(target.filename().string(), 64);
}

// "DMA" and "DMA-FQ": addresses are translated; "identity": passed through (Documentation/ABI, sysfs-kernel-
// iommu_groups). Without an IOMMU there is no group.
std::optional<bool> translation_of(const std::string& folder) {
  const auto type = first_line(folder + "/iommu_group/type");
  if (!type) return std::nullopt;
  if (type->rfind("DMA", 0) == 0) return true;
  return *type == "identity" ? std::optional(false) : std::nullopt;
}

// PCI Express Base Specification 7.7.11: extended capability 0x000D, its control register at offset 6; bit 2
// is P2P Request Redirect, bit 3 Completion Redirect. Extended capabilities begin at 0x100.
class AcsSearch {
 public:
  explicit AcsSearch(const std::string& config) {
    std::ifstream file(config, std::ios::binary);
    file.read(space_.data(), static_cast<std::streamsize>(space_.size()));
    size_ = static_cast<std::size_t>(file.gcount());
  }

  [[nodiscard]] std::optional<bool> redirects() const {
    constexpr std::size_t kFirst = 0x100;
    constexpr std::uint32_t kAcs = 0x000D, kRedirect = 0x000C;
    if (size_ < space_.size()) return std::nullopt;  // not root, or no PCI Express
    std::size_t at = kFirst;
    // A list has at most as many members as fit between 0x100 and 0x1000; a damaged one may be a ring.
    for (int left = 960; left > 0 && at >= kFirst && at + 8 <= size_; --left) {
      const std::uint32_t header = word(at) | (word(at + 2) << 16U);
      if (header == 0 || header == UINT32_MAX) return false;
      if ((header & 0xFFFFU) == kAcs) return (word(at + 6) & kRedirect) != 0;
      at = header >> 20U;
    }
    return false;  // no such capability: nothing is redirected
  }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    return static_cast<unsigned char>(space_[at]) |
           (static_cast<std::uint32_t>(static_cast<unsigned char>(space_[at + 1])) << 8U);
  }

  std::array<char, 4096> space_{};
  std::size_t size_ = 0;
};

std::optional<std::int32_t> numa_in(const std::string& folder) {
  const auto text = first_line(folder + "/numa_node");
  if (!text || text->empty() || !std::ranges::all_of(*text, [](unsigned char c) { return std::isdigit(c); }))
    return std::nullopt;  // "-1": the firmware does not say
  return text->size() > 6 ? std::nullopt : std::optional(std::stoi(*text));
}

// A host bridge has no numa_node of its own; its devices say what the firmware told the kernel.
void place_host_bridge(Machine& machine, std::uint32_t device, const std::string& folder) {
  std::uint32_t root = device;
  while (machine.pci[root].parent)
    root = *machine.pci[root].parent;
  PciDevice& bridge = machine.pci[root];
  if (!bridge.numa) bridge.numa = numa_in(folder);
  if (bridge.socket || !bridge.numa) return;
  for (const NumaNode& node : machine.numa)
    if (node.index == *bridge.numa) bridge.socket = node.socket;
}

// "physfn" leads to the card whose function this is. A recorded tree may say anything: what is a function
// itself is no card.
void tell_functions(Machine& machine, const std::string& fsroot) {
  std::vector<std::optional<std::uint32_t>> physical(machine.pci.size());
  for (std::size_t i = 0; i < machine.pci.size(); ++i) {
    const std::string folder = fsroot + "/sys/bus/pci/devices/" + machine.pci[i].address;
    if (const std::string card = last_part_of_link(folder + "/physfn"); !card.empty())
      physical[i] = function_at(machine, card);
  }
  for (std::size_t i = 0; i < machine.pci.size(); ++i)
    if (physical[i] && !physical[*physical[i]]) machine.pci[i].physical = physical[i];
  tell_facings(machine);  // now that they are known
  std::erase_if(machine.gpus, [&](const Gpu& gpu) { return machine.pci[gpu.pci].physical.has_value(); });
}

std::string value_in(const std::string& line, std::string_view key) {
  if (line.rfind(key, 0) != 0) return {};
  const std::size_t start = line.find_first_not_of(" \t", key.size());
  if (start == std::string::npos) return {};
  const std::size_t end = line.find_last_not_of(" \t");
  return printable(line.substr(start, end + 1 - start), 128);
}

}  // namespace

void add_pci_attributes(Machine& machine, const std::string& fsroot) {
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i) {
    PciDevice& device = machine.pci[i];
    if (device.kind == PciKind::host_bridge) continue;
    const std::string folder = fsroot + "/sys/bus/pci/devices/" + device.address;
    device.link.now = speed_in(folder, "current");
    device.link.most = speed_in(folder, "max");
    if (device.link.now) device.link.rate.reset();  // hwloc's product of the same two
    device.driver = last_part_of_link(folder + "/driver");
    device.translated = translation_of(folder);
    if (device.kind == PciKind::port) device.redirects = AcsSearch(folder + "/config").redirects();
    place_host_bridge(machine, i, folder);
  }
  tell_functions(machine, fsroot);
}

void add_gpu_names(Machine& machine, const std::string& fsroot) {
  const std::string cards = fsroot + "/proc/driver/nvidia/gpus";
  std::error_code error;
  if (!fs::is_directory(cards, error)) return;
  std::size_t unseen = 0;
  for (fs::directory_iterator at(cards, error), end; !error && at != end; at.increment(error))
    if (!function_at(machine, at->path().filename().string())) ++unseen;
  if (unseen > 0)
    machine.notes.push_back(fmt::format("the driver knows {} GPU{} that {} not to be seen on the bus", unseen,
                                        unseen == 1 ? "" : "s", unseen == 1 ? "is" : "are"));
  constexpr std::uint16_t kNvidiaVendor = 0x10de;
  for (Gpu& gpu : machine.gpus) {
    if (machine.pci[gpu.pci].vendor != kNvidiaVendor) continue;
    std::ifstream file(cards + "/" + machine.pci[gpu.pci].address + "/information");
    gpu.known_to_driver = file.good();
    for (std::string line; std::getline(file, line);) {
      if (const std::string model = value_in(line, "Model:"); !model.empty()) gpu.model = model;
      if (const std::string uuid = value_in(line, "GPU UUID:"); !uuid.empty()) gpu.uuid = uuid;
    }
  }
}

}  // namespace netcheck::topology
