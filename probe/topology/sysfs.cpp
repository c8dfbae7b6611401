// What sysfs and procfs tell of PCI functions and GPUs, and hwloc does not. Every file may be missing, empty
// or say "Unknown": then that is unknown. As the probe user or whoever runs `netcheck topo`; configuration
// spaces only as root.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

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

// A function's configuration space, of which others than root see the first 64 bytes: no capabilities.
class ConfigSpace {
 public:
  /// `bytes`: as much as is needed; each four of them are a transaction on the bus.
  ConfigSpace(const std::string& path, std::size_t bytes) {
    std::ifstream file(path, std::ios::binary);
    file.read(space_.data(), static_cast<std::streamsize>(std::min(bytes, space_.size())));
    size_ = static_cast<std::size_t>(file.gcount());
  }

  // PCI Express Base Specification 7.7.11: extended capability 0x000D, its control register at offset 6; bit
  // 2 is P2P Request Redirect, bit 3 Completion Redirect. Extended capabilities begin at 0x100.
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

  // PCI Local Bus Specification 6.7: the list of capabilities begins where 0x34 says, each with its number
  // and where the next is. PCI Express Base Specification 7.5.3.4: capability 0x10, Device Control at
  // offset 8.
  [[nodiscard]] std::optional<std::uint32_t> device_control() const {
    constexpr std::size_t kPointer = 0x34, kFirst = 0x40, kEnd = 0x100, kControl = 8;
    constexpr std::uint32_t kExpress = 0x10;
    if (size_ < kEnd) return std::nullopt;
    std::size_t at = word(kPointer) & 0xFCU;
    for (int left = 48; left > 0 && at >= kFirst && at + kControl + 2 <= kEnd; --left) {
      const std::uint32_t header = word(at);
      const std::uint32_t control = word(at + kControl);
      if (header == UINT16_MAX) return std::nullopt;  // a device that has fallen off the bus
      if ((header & 0xFFU) == kExpress) return control;
      at = (header >> 8U) & 0xFCU;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    return static_cast<unsigned char>(space_[at]) |
           (static_cast<std::uint32_t>(static_cast<unsigned char>(space_[at + 1])) << 8U);
  }

  std::array<char, 4096> space_{};
  std::size_t size_ = 0;
};

void read_config(PciDevice& device, const std::string& folder) {
  constexpr std::size_t kAll = 4096, kWithoutExtended = 256;
  if (device.kind == PciKind::port) device.redirects = ConfigSpace(folder + "/config", kAll).redirects();
  if (device.kind != PciKind::gpu && device.kind != PciKind::nic) return;
  const auto control = ConfigSpace(folder + "/config", kWithoutExtended).device_control();
  if (!control) return;
  device.relaxed_ordering = (*control & 0x10U) != 0;
  if (const std::uint32_t code = (*control >> 12U) & 7U; code <= 5) device.max_read_request = 128U << code;
}

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
    read_config(device, folder);
    place_host_bridge(machine, i, folder);
  }
  tell_functions(machine, fsroot);
  forget_emulated_links(machine);
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 …": the first word of digits and
// dots.
std::string nvidia_version(const std::string& fsroot) {
  const std::string line = first_line(fsroot + "/proc/driver/nvidia/version").value_or("");
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
      return printable(word, 32);
  return {};
}

void add_driver_versions(Machine& machine, const std::string& fsroot) {
  std::set<std::string> drivers;
  for (const PciDevice& device : machine.pci)
    if (device.kind == PciKind::gpu || device.kind == PciKind::nic) drivers.insert(device.driver);
  drivers.erase("");
  for (const std::string& driver : drivers) {
    std::string module = driver;
    std::ranges::replace(module, '-', '_');  // as /sys/module has them
    std::string version =
        printable(first_line(fmt::format("{}/sys/module/{}/version", fsroot, module)).value_or(""), 64);
    if (version.empty() && driver == "nvidia") version = nvidia_version(fsroot);
    if (!version.empty()) machine.drivers.push_back({driver, version});
  }
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
  for (Gpu& gpu : machine.gpus) {
    if (machine.pci[gpu.pci].vendor != kNvidia) continue;
    std::ifstream file(cards + "/" + machine.pci[gpu.pci].address + "/information");
    gpu.known_to_driver = file.good();
    for (std::string line; std::getline(file, line);) {
      if (const std::string model = value_in(line, "Model:"); !model.empty()) gpu.model = model;
      if (const std::string uuid = value_in(line, "GPU UUID:"); !uuid.empty()) gpu.uuid = uuid;
    }
  }
}

}  // namespace netcheck::topology
