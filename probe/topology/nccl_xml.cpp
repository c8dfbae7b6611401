// NCCL's description of a machine → Machine. In the virtual machines of clouds this file is the only truth
// about what is near to what: the PCI tree that the guest sees is flat.
//
// Form (NCCL, src/graph/xml.cc): <system><cpu numaid><pci busid class link_speed link_width>…<gpu dev sm>
// <nvlink target count tclass/></gpu> or <nic><net name speed port/></nic></pci></cpu></system>. A <pci> of
// class 0x0604 stands for a whole switch; link_speed and link_width are the lesser of what both ends can. A
// file for NCCL_TOPO_FILE may leave out whatever NCCL finds on the machine itself, even the class. RCCL's is
// version 2: <xgmi> for <nvlink>, and an sm that is none. As the probe user or whoever runs `netcheck topo`.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

std::string text_of(pugi::xml_node node, const char* attribute) {
  return printable(node.attribute(attribute).value(), 128);
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "0x030200" → 0x0302; "0x10de" → 0x10de
std::uint32_t hexadecimal(const std::string& text) {
  std::uint32_t value = 0;
  const char* begin = text.data() + (text.rfind("0x", 0) == 0 ? 2 : 0);
  std::from_chars(begin, text.data() + text.size(), value, 16);
  return value;
}

std::uint16_t id_of(pugi::xml_node node, const char* attribute) {
  return static_cast<std::uint16_t>(hexadecimal(text_of(node, attribute)));
}

std::optional<std::uint32_t> whole(const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// By compute capability: 6.0 is the first NVLink, 7.0 to 9.0 the second to fourth (8.6: GA102), 10.0 the
// fifth; nvlink_rate says what one carries. NCCL's files may leave the PCI ids out, but never this.
Rate nvlink_rate_of_sm(std::uint32_t sm) {
  return {sm < 70 ? 160e9 : sm == 86 ? 112.5e9 : sm < 100 ? 200e9 : 400e9};
}

/// What a NUMA node's number (CONFIG_NODES_SHIFT is 10 at most) and a port's speed in Mb/s can be: 10 Tb/s.
constexpr std::uint32_t kMostNuma = 1023, kMostMegabits = 10'000'000;

/// As NCCL has it in its table of classes; 0x068001 is a CPU with NVLinks (POWER9), which no GPU is behind.
constexpr std::uint32_t kNvSwitchClass = 0x068000;

struct Ends {
  std::uint32_t gpu = 0;
  std::string target;
  std::uint32_t count = 0, sm = 0;
  bool to_switch = false;
};

class NcclReader {
 public:
  Result<Machine> read(pugi::xml_node system, const std::string& name) {
    if (const std::string version = text_of(system, "version"); version != "1" && version != "2")
      return fail("read", name,
                  fmt::format("NCCL's topology is of version '{}'; known are 1, and RCCL's 2", version));
    // Where NVLinks join several hosts NCCL writes all of them into one file.
    const std::string host = text_of(system.child("cpu"), "host_hash");
    std::set<std::string> hosts;
    for (const pugi::xml_node cpu : system.children("cpu"))
      if (hosts.insert(text_of(cpu, "host_hash")); text_of(cpu, "host_hash") == host) add_cpu(cpu);
    if (machine_.pci.empty()) return fail("read", name, "NCCL's topology has no <cpu> in it");
    std::ranges::stable_sort(machine_.numa, {}, &NumaNode::index);  // the first is where rank 0 is
    sort_gpus();
    join_nvlinks();
    tell_names_apart();
    forget_emulated_links(machine_);
    prune(machine_, unclassed_);
    add_notes(hosts.size());
    return std::move(machine_);
  }

 private:
  void add_notes(std::size_t hosts) {
    machine_.notes.emplace_back(
        "NCCL's topology: a switch is shown as one; speeds are what links could, not as trained");
    if (hosts > 1)
      machine_.notes.push_back(fmt::format("the file tells of {} hosts: this is the first", hosts));
    if (!unclassed_.empty())
      machine_.notes.push_back(fmt::format(
          "what {} of the file's devices are it leaves to NCCL to find out: see it with --nccl on "
          "that machine",
          unclassed_.size()));
    if (xgmi_) machine_.notes.emplace_back("links between AMD's GPUs are not told: their speed is not known");
  }

  void add_cpu(pugi::xml_node cpu) {
    auto index = whole(text_of(cpu, "numaid"));
    if (index && *index > kMostNuma) index.reset();
    PciDevice bridge;
    bridge.kind = PciKind::host_bridge;
    bridge.address = fmt::format("cpu{}", index ? std::to_string(*index) : "?");
    if (index) {
      bridge.numa = static_cast<std::int32_t>(*index);
      if (std::ranges::find(machine_.numa, *bridge.numa, &NumaNode::index) == machine_.numa.end())
        machine_.numa.push_back({.index = *bridge.numa});
    }
    machine_.pci.push_back(std::move(bridge));
    const auto place = static_cast<std::uint32_t>(machine_.pci.size() - 1);
    for (const pugi::xml_node child : cpu.children("pci"))
      add_pci(child, place);
    for (const pugi::xml_node child : cpu.children("nic"))  // a NIC without PCI, below the CPU itself
      add_nets(child, std::nullopt);
  }

  static PciKind kind_of_node(pugi::xml_node node, std::uint16_t vendor) {
    const std::uint32_t pci_class = hexadecimal(text_of(node, "class")) >> 8;
    if (pci_class == 0x0604) return PciKind::port;
    if (!node.attribute("class") && node.child("pci")) return PciKind::port;
    if (node.child("gpu")) return PciKind::gpu;
    if ((pci_class >> 8) == 0x02 || node.child("nic")) return PciKind::nic;
    // Class 3D controller without a vendor is a GPU: NCCL knows NVIDIA's, and its RCCL AMD's.
    if (vendor == 0 ? pci_class == 0x0302 : is_gpu(vendor, static_cast<std::uint16_t>(pci_class)))
      return PciKind::gpu;
    if (pci_class == 0x0680) return PciKind::nvswitch;
    return PciKind::other;
  }

  void add_pci(pugi::xml_node node, std::uint32_t parent) {  // documents are checked for their depth before
    PciDevice device;
    device.parent = parent;
    device.address = lower_case(text_of(node, "busid"));
    device.vendor = id_of(node, "vendor");
    device.device = id_of(node, "device");
    device.subvendor = id_of(node, "subsystem_vendor");
    device.subdevice = id_of(node, "subsystem_device");
    device.kind = kind_of_node(node, device.vendor);
    device.link.most = parse_pci_speed(text_of(node, "link_speed"), text_of(node, "link_width"));
    const auto place = static_cast<std::uint32_t>(machine_.pci.size());
    const bool gpu = device.kind == PciKind::gpu, nic = device.kind == PciKind::nic;
    if (device.kind == PciKind::other && !node.attribute("class")) unclassed_.push_back(place);
    machine_.pci.push_back(std::move(device));
    if (gpu) add_gpu(node.child("gpu"), place);
    if (nic) add_nets(node.child("nic"), place);
    for (const pugi::xml_node child : node.children("pci"))
      add_pci(child, place);
  }

  void add_gpu(pugi::xml_node node, std::uint32_t place) {
    const auto index = static_cast<std::uint32_t>(machine_.gpus.size());
    machine_.gpus.push_back({.pci = place});
    order_.push_back(whole(text_of(node, "dev")).value_or(index));
    xgmi_ = xgmi_ || node.child("xgmi");
    // To its processor it goes by C2C (Grace), so many links of so many MB/s; what PCI says means nothing.
    const auto links = whole(text_of(node.child("c2c"), "count")),
               speed = whole(text_of(node.child("c2c"), "bw"));
    if (links.value_or(0) > 0 && speed.value_or(0) > 0)
      machine_.pci[place].link = {.rate = Rate{8e6 * *links * *speed}};
    for (const pugi::xml_node link : node.children("nvlink")) {
      // A file made by hand may have a GPU linked to itself: that says nothing.
      if (lower_case(text_of(link, "target")) == machine_.pci[place].address) continue;
      machine_.nvlinks_known = true;
      ends_.push_back({.gpu = index,
                       .target = lower_case(text_of(link, "target")),
                       .count = whole(text_of(link, "count")).value_or(0),
                       .sm = whole(text_of(node, "sm")).value_or(0),
                       .to_switch = hexadecimal(text_of(link, "tclass")) == kNvSwitchClass});
    }
  }

  // Without <net> (files that clouds ship) a NIC is known by its address alone.
  void add_nets(pugi::xml_node nic, std::optional<std::uint32_t> place) {
    for (const pugi::xml_node net : nic.children("net")) {
      NetworkPort port;
      port.name = text_of(net, "name");
      port.pci = place;
      const auto number = whole(text_of(net, "port"));
      // Of an interface whose sockets are used it is 0 (net_socket.cc); RDMA's ports begin at 1.
      (number == 0U ? port.interface : port.rdma_device) = port.name;
      if (number && *number > 0 && *number <= 255) port.port = *number;
      // In Mb/s. NCCL's net plugins say what they will use: 180000 of one port is no rate of any port.
      if (const auto speed = whole(text_of(net, "speed")); speed && *speed > 0 && *speed <= kMostMegabits)
        port.rate = Rate{*speed * 1e6};
      machine_.ports.push_back(std::move(port));
    }
    if (!place || nic.child("net")) return;
    NetworkPort port;
    port.name = machine_.pci[*place].address;
    port.pci = place;
    machine_.ports.push_back(std::move(port));
  }

  // By NCCL's own numbers (dev), which are CUDA's; where a file has none, by their place in it.
  void sort_gpus() {
    std::vector<std::uint32_t> by(machine_.gpus.size());
    for (std::uint32_t i = 0; i < by.size(); ++i)
      by[i] = i;
    std::ranges::stable_sort(by, {}, [&](std::uint32_t i) { return order_[i]; });
    std::vector<Gpu> sorted;
    for (const std::uint32_t i : by) {
      place_[i] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(machine_.gpus[i]);
    }
    machine_.gpus = std::move(sorted);
  }

  void join_nvlinks() {
    std::map<std::pair<std::uint32_t, std::optional<std::uint32_t>>, NvLink> joined;
    for (const Ends& ends : ends_) {
      std::optional<std::uint32_t> peer;
      for (std::uint32_t i = 0; i < machine_.gpus.size() && !ends.to_switch; ++i)
        if (machine_.pci[machine_.gpus[i].pci].address == ends.target) peer = i;
      if (!peer && !ends.to_switch) continue;  // a CPU, or a GPU that the file does not show
      NvLink& link = joined[{place_[ends.gpu], peer}];
      link.gpu = place_[ends.gpu];
      link.peer = peer;
      link.count += ends.count;
      if (ends.sm > 0) link.rate = Rate{link.count * nvlink_rate_of_sm(ends.sm).bits_per_second};
    }
    for (auto& [key, link] : joined)
      if (link.count > 0) machine_.nvlinks.push_back(link);
  }

  // Two <net> of one card with one name each are two ports; a name that comes twice is told apart by its
  // port.
  void tell_names_apart() {
    std::map<std::string, int> times;
    for (const NetworkPort& port : machine_.ports)
      ++times[port.name];
    for (NetworkPort& port : machine_.ports)
      if (times[port.name] > 1) port.name += fmt::format(":{}", port.port);
  }

  Machine machine_;
  std::vector<std::uint32_t> order_;
  std::map<std::uint32_t, std::uint32_t> place_;
  std::vector<Ends> ends_;
  std::vector<std::uint32_t> unclassed_;  ///< devices of which the file does not say what they are
  bool xgmi_ = false;
};

}  // namespace

Result<Machine> tree_of_nccl_xml(const pugi::xml_document& document, const std::string& name) {
  return NcclReader().read(document.document_element(), name);
}

}  // namespace netcheck::topology
