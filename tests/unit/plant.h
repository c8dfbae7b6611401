// A Machine as the kernel would show it: writes /sys and /proc of it below a folder, for tests that read
// machines.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "contract/machine.h"

namespace netcheck::fixture {

class Plant {
 public:
  explicit Plant(Machine planted) : machine_(std::move(planted)) {
    const Machine& machine = machine_;
    // A thousand small files: in memory where that is to be had.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string name =
        (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/netcheck-XXXXXX";
    root_ = ::mkdtemp(name.data());
    cpus();
    write("proc/sys/kernel/hostname", machine.node);
    write("sys/class/dmi/id/product_name", machine.product);
    if (!machine.kernel.empty()) write("proc/sys/kernel/osrelease", machine.kernel);
    for (const auto& [driver, version] : machine.drivers)
      write("sys/module/" + driver + "/version", version);
    for (std::uint32_t i = 0; i < machine.pci.size(); ++i)
      if (machine.pci[i].kind != PciKind::host_bridge) pci(i);
    for (const Gpu& gpu : machine.gpus)
      this->gpu(gpu);
    for (std::size_t i = 0; i < machine.ports.size(); ++i)
      port(machine.ports[i], i + 1);
  }
  ~Plant() { std::filesystem::remove_all(root_); }
  Plant(const Plant&) = delete;
  Plant& operator=(const Plant&) = delete;

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::string pci_folder(const std::string& address) const {
    return "sys/bus/pci/devices/" + address;
  }

  void write(const std::string& path, const std::string& text) const {
    const std::string full = root_ + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full, std::ios::binary) << text << '\n';
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ + "/" + path); }
  void link(const std::string& path, const std::string& target) const {
    const std::string full = root_ + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::filesystem::remove(full);
    std::filesystem::create_symlink(target, full);
  }

 private:
  static std::string mask(std::uint32_t first, std::uint32_t count) {
    std::string text;  // 32 bits a word, the highest first
    const std::uint32_t words = ((first + count) / 32) + 1;
    for (std::uint32_t word = words; word-- > 0;) {
      std::uint32_t bits = 0;
      for (std::uint32_t bit = 0; bit < 32; ++bit)
        if (const std::uint32_t cpu = (word * 32) + bit; cpu >= first && cpu < first + count)
          bits |= 1U << bit;
      text += fmt::format("{}{:08x}", text.empty() ? "" : ",", bits);
    }
    return text;
  }

  void cpus() {
    std::uint32_t next = 0;
    for (const NumaNode& numa : machine_.numa) {
      const std::string node = fmt::format("sys/devices/system/node/node{}", numa.index);
      write(node + "/cpumap", mask(next, numa.cores));
      write(node + "/meminfo", fmt::format("Node {} MemTotal: {} kB", numa.index, numa.memory_bytes >> 10));
      for (std::uint32_t core = 0; core < numa.cores; ++core) {
        const std::string cpu = fmt::format("sys/devices/system/cpu/cpu{}", next + core);
        write(cpu + "/topology/core_id", std::to_string(core));
        write(cpu + "/topology/physical_package_id", std::to_string(numa.socket.value_or(0)));
        write(cpu + "/topology/core_cpus", mask(next + core, 1));
        write(cpu + "/topology/package_cpus", mask(next, numa.cores));
      }
      first_cpu_.push_back(next);
      next += numa.cores;
    }
    const std::string all = fmt::format("0-{}", next - 1);
    for (const char* which : {"online", "possible", "present"})
      write(std::string("sys/devices/system/cpu/") + which, all);
    write("sys/devices/system/node/online", fmt::format("0-{}", machine_.numa.size() - 1));
  }

  static int number_in(const std::string& address, std::size_t at, std::size_t length) {
    return std::stoi(address.substr(at, length), nullptr, 16);
  }

  // A bridge's header tells which buses are below it; hwloc builds its tree from that.
  std::string config(std::uint32_t index) const {
    const bool control = device(index).relaxed_ordering && device(index).max_read_request;
    std::string space(device(index).redirects ? 4096 : control ? 256 : 64, '\0');
    if (control) {  // power management at 0x40, then PCI Express at 0x60
      std::uint32_t code = 0;
      while (128U << code < *device(index).max_read_request)
        ++code;
      const std::uint32_t value = (code << 12) | (*device(index).relaxed_ordering ? 0x10U : 0U);
      space[0x34] = 0x40;
      space[0x40] = 0x01;
      space[0x41] = 0x60;
      space[0x60] = 0x10;
      space[0x68] = static_cast<char>(value);
      space[0x69] = static_cast<char>(value >> 8);
    }
    if (device(index).kind == PciKind::port) {
      int first = 0xff, last = 0;
      for (std::uint32_t i = index + 1; i < machine_.pci.size(); ++i) {
        if (!is_below(i, index)) continue;
        first = std::min(first, number_in(device(i).address, 5, 2));
        last = std::max(last, number_in(device(i).address, 5, 2));
      }
      space[0x0e] = 1;
      space[0x18] = static_cast<char>(number_in(device(index).address, 5, 2));
      space[0x19] = static_cast<char>(first);
      space[0x1a] = static_cast<char>(last);
    }
    if (device(index).redirects) {  // one extended capability before ACS, so that the list is walked
      const auto put = [&](std::size_t at, std::uint32_t value) {
        for (std::size_t i = 0; i < 4; ++i)
          space[at + i] = static_cast<char>(value >> (8 * i));
      };
      put(0x100, 0x14810001);  // advanced error reporting, next at 0x148
      put(0x148, 0x0001000d);  // ACS, the last
      put(0x14c, *device(index).redirects ? 0x001d001fU : 0x0000001fU);
    }
    return space;
  }

  [[nodiscard]] bool is_below(std::uint32_t index, std::uint32_t ancestor) const {
    while (const auto& parent = device(index).parent) {
      if (*parent == ancestor) return true;
      index = *parent;
    }
    return false;
  }

  [[nodiscard]] const PciDevice& device(std::uint32_t index) const { return machine_.pci[index]; }

  void pci(std::uint32_t index) const {
    const PciDevice& device = machine_.pci[index];
    const std::string folder = pci_folder(device.address);
    const char* pci_class = device.kind == PciKind::port  ? "0x060400"
                            : device.kind == PciKind::gpu ? "0x030200"
                                                          : "0x020000";
    write(folder + "/class", pci_class);
    const std::array<std::pair<const char*, std::uint16_t>, 4> ids = {
        {{"vendor", device.vendor},
         {"device", device.device},
         {"subsystem_vendor", device.subvendor},
         {"subsystem_device", device.subdevice}}};
    for (const auto& [name, id] : ids)
      write(folder + "/" + name, fmt::format("{:#06x}", id));
    std::ofstream(root_ + "/" + folder + "/config", std::ios::binary) << config(index);
    write_speed(folder + "/current_link", device.link.now);
    write_speed(folder + "/max_link", device.link.most);
    if (!device.driver.empty()) link(folder + "/driver", "../../../bus/pci/drivers/" + device.driver);
    if (device.physical) link(folder + "/physfn", "../" + machine_.pci[*device.physical].address);
    if (device.translated) write(folder + "/iommu_group/type", *device.translated ? "DMA-FQ" : "identity");
    std::uint32_t root = index;
    while (machine_.pci[root].parent)
      root = *machine_.pci[root].parent;
    const auto numa = machine_.pci[root].numa;
    write(folder + "/numa_node", std::to_string(numa.value_or(-1)));
    for (std::size_t i = 0; i < machine_.numa.size(); ++i)
      if (machine_.numa[i].index == numa)
        write(folder + "/local_cpus", mask(first_cpu_[i], machine_.numa[i].cores));
  }

  void write_speed(const std::string& path, const std::optional<PciSpeed>& speed) const {
    write(path + "_speed", speed ? fmt::format("{:.1f} GT/s PCIe", speed->gigatransfers) : "Unknown");
    write(path + "_width", speed ? std::to_string(speed->lanes) : "0");
  }

  void gpu(const Gpu& gpu) const {
    if (gpu.known_to_driver != true) return;
    write("proc/driver/nvidia/gpus/" + device(gpu.pci).address + "/information",
          fmt::format("Model: \t\t {}\nIRQ:   \t\t 18\nGPU UUID: \t {}", gpu.model, gpu.uuid));
  }

  // Class devices are links into the tree of devices, from which their PCI function is read.
  std::string class_folder(const std::string& kind, const std::string& name,
                           const std::optional<std::uint32_t>& pci) const {
    const std::string place = pci ? "pci0000:00/" + device(*pci).address : std::string("virtual");
    link(fmt::format("sys/class/{}/{}", kind, name),
         fmt::format("../../devices/{}/{}/{}", place, kind, name));
    return fmt::format("sys/devices/{}/{}/{}", place, kind, name);
  }

  void port(const NetworkPort& port, std::size_t index) const {
    if (!port.interface.empty() && (port.members.empty() || port.rdma_device.empty())) interface(port, index);
    if (port.rdma_device.empty()) return;
    if (!port.members.empty()) bond(port, index);
    const std::string folder =
        class_folder("infiniband", port.rdma_device, port.pci) + fmt::format("/ports/{}", port.port);
    if (port.gids != Gids::unknown) gids(port, folder);
    write(folder + "/state", port.state_text);
    if (!port.firmware.empty()) write(folder + "/../../fw_ver", port.firmware);
    write(folder + "/link_layer", port.link_layer);
    const Rate rate = port.rate.value_or(Rate{10e9});  // what a port that is down begins at
    write(folder + "/rate", fmt::format("{:g} Gb/sec (4X)", rate.bits_per_second / 1e9));
  }

  // As mlx5 fills its table: link-local of each version, then those of the first IP address; the rest is
  // free.
  void gids(const NetworkPort& port, const std::string& folder) const {
    constexpr const char* kLocal = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001";
    constexpr const char* kAddress = "0000:0000:0000:0000:0000:ffff:0a00:0001";
    constexpr const char* kFree = "0000:0000:0000:0000:0000:0000:0000:0000";
    for (int i = 0; i < 8; ++i) {
      const bool second = i % 2 == 1;
      const bool there = i == 0   ? port.gids >= Gids::version_1
                         : i == 1 ? port.gids >= Gids::link_local
                                  : i < 4 && port.gids == Gids::usable;
      write(fmt::format("{}/gids/{}", folder, i), !there ? kFree : i < 2 ? kLocal : kAddress);
      write(fmt::format("{}/gid_attrs/types/{}", folder, i), !there ? "" : second ? "RoCE v2" : "IB/RoCE v1");
    }
  }

  void bond(const NetworkPort& port, std::size_t index) const {
    NetworkPort bond;
    bond.interface = port.interface;
    bond.rate = port.rate;
    bond.mtu = port.mtu;
    bond.link_layer = port.link_layer;
    bond.state_text = "up";
    interface(bond, index + 100);
    std::string members;
    for (const std::string& member : port.members)
      members += (members.empty() ? "" : " ") + member;
    write("sys/class/net/" + port.interface + "/bonding/slaves", members);
  }

  void interface(const NetworkPort& port, std::size_t index) const {
    const std::string folder = class_folder("net", port.interface, port.pci);
    write(folder + "/ifindex", std::to_string(index));
    write(folder + "/operstate", port.rdma_device.empty() ? port.state_text : "up");
    write(folder + "/type", port.link_layer == "InfiniBand" ? "32"
                            : port.link_layer == "Ethernet" ? "1"
                                                            : "772");
    if (port.mtu) write(folder + "/mtu", std::to_string(*port.mtu));
    write(folder + "/speed", port.rate ? fmt::format("{:.0f}", port.rate->bits_per_second / 1e6) : "-1");
    if (port.virtual_function && !device(*port.pci).physical)
      write(pci_folder(device(*port.pci).address) + "/physfn/vendor", "0x15b3");
    if (!port.master.empty()) link(folder + "/master", "../../../virtual/net/" + port.master);
  }

  Machine machine_;
  std::string root_;
  std::vector<std::uint32_t> first_cpu_;
};

}  // namespace netcheck::fixture
