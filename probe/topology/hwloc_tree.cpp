// hwloc's view of a machine, live or from its XML → Machine. As the probe user or whoever runs `netcheck
// topo`.
//
// Only what is asked for is discovered: PCI from sysfs, NUMA nodes, packages and cores. No plugin is loaded
// (CUDA, OpenCL, NVML and GL initialise drivers, which takes seconds and may hang), and no CPU is visited to
// ask it for its cpuid (the x86 component).
#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <pugixml.hpp>
#include <sstream>

#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

struct DestroyTree {
  void operator()(hwloc_topology_t topology) const { ::hwloc_topology_destroy(topology); }
};
using Tree = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTree>;

constexpr std::uint16_t kClassBridgeOther = 0x0680;  // NVSwitch

PciKind kind_of(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  if (is_gpu(pci.vendor_id, pci.class_id)) return PciKind::gpu;
  if ((pci.class_id >> 8) == 0x02 || pci.class_id == 0x0c06) return PciKind::nic;  // network; InfiniBand
  if (pci.vendor_id == kNvidia && pci.class_id == kClassBridgeOther) return PciKind::nvswitch;
  return PciKind::other;
}

std::string info_of(hwloc_obj_t object, const char* name) {
  const char* value = ::hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? std::string() : printable(value, 128);
}

class HwlocReader {
 public:
  HwlocReader(hwloc_topology_t topology, bool ports) : topology_(topology), ports_(ports) {}

  Machine read() {
    hwloc_obj* const root = ::hwloc_get_root_obj(topology_);
    machine_.node = info_of(root, "HostName");
    machine_.product = info_of(root, "DMIProductName");
    machine_.kernel = info_of(root, "OSRelease");
    if (machine_.product.empty()) machine_.product = info_of(root, "PlatformModel");
    read_numa();
    visit(root);
    std::ranges::stable_sort(machine_.gpus, {},
                             [&](const Gpu& gpu) -> std::string& { return machine_.pci[gpu.pci].address; });
    add_hwloc_nvlinks(machine_, topology_);
    return std::move(machine_);
  }

 private:
  // hwloc gives a node of memory alone (HBM, CXL, a processor's own beside its DDR) the processors that it is
  // near to. Linux gives each processor one node: whose processors others have already has none of its own.
  [[nodiscard]] std::vector<hwloc_obj_t> nodes_with_processors() const {
    std::vector<hwloc_obj_t> nodes, own;
    for (hwloc_obj_t node = nullptr;
         (node = ::hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
      if (node->cpuset != nullptr && !::hwloc_bitmap_iszero(node->cpuset)) nodes.push_back(node);
    std::ranges::sort(nodes, {}, [](hwloc_obj_t node) {
      return std::pair(::hwloc_bitmap_weight(node->cpuset), node->os_index);
    });
    std::ranges::copy_if(nodes, std::back_inserter(own), [&](hwloc_obj_t node) {
      return std::ranges::none_of(own, [&](hwloc_obj_t other) {
        return ::hwloc_bitmap_intersects(node->cpuset, other->cpuset) != 0;
      });
    });
    return own;
  }

  void read_numa() {
    for (hwloc_obj* const node : nodes_with_processors()) {
      NumaNode numa;
      numa.index = static_cast<std::int32_t>(node->os_index);
      numa.socket = socket_of(node);
      const int cores = ::hwloc_get_nbobjs_inside_cpuset_by_type(topology_, node->cpuset, HWLOC_OBJ_CORE);
      if (cores > 0) numa.cores = static_cast<std::uint32_t>(cores);
      numa.memory_bytes = node->attr->numanode.local_memory;
      machine_.numa.push_back(numa);
    }
    std::ranges::sort(machine_.numa, {}, &NumaNode::index);
  }

  // Above a NUMA node, or, where hwloc shows the node above its packages (hwloc 1), the one below it.
  std::optional<std::int32_t> socket_of(hwloc_obj_t object) {
    if (hwloc_obj* const package = ::hwloc_get_ancestor_obj_by_type(topology_, HWLOC_OBJ_PACKAGE, object))
      return static_cast<std::int32_t>(package->os_index);
    if (object->cpuset == nullptr) return std::nullopt;
    if (::hwloc_get_nbobjs_inside_cpuset_by_type(topology_, object->cpuset, HWLOC_OBJ_PACKAGE) != 1)
      return std::nullopt;
    hwloc_obj* const inside =
        ::hwloc_get_next_obj_inside_cpuset_by_type(topology_, object->cpuset, HWLOC_OBJ_PACKAGE, nullptr);
    return static_cast<std::int32_t>(inside->os_index);
  }

  void visit(hwloc_obj_t object) {  // NOLINT(misc-no-recursion): as deep as hwloc's types
    for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling)
      visit_io(child, std::nullopt);
    for (hwloc_obj_t child = object->memory_first_child; child != nullptr; child = child->next_sibling)
      visit(child);
    for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling)
      visit(child);
  }

  // As deep as PCI bridges are nested; documents are checked for their depth before hwloc sees them.
  void visit_io(hwloc_obj_t object, std::optional<std::uint32_t> parent) {
    if (object->type == HWLOC_OBJ_OS_DEVICE) {
      add_os_device(object, parent);
      return;
    }
    if (object->type == HWLOC_OBJ_BRIDGE)
      parent = add_bridge(object, parent);
    else if (object->type == HWLOC_OBJ_PCI_DEVICE)
      parent = add_device(object, parent);
    for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling)
      visit_io(child, parent);
  }

  // A device that hwloc shows without a host bridge gets one of its own: every tree has a root.
  std::uint32_t root_for(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci, hwloc_obj_t object) {
    return add_host_bridge(fmt::format("{:04x}:{:02x}", pci.domain, pci.bus), object);
  }

  std::uint32_t add_host_bridge(std::string address, hwloc_obj_t object) {
    PciDevice bridge;
    bridge.kind = PciKind::host_bridge;
    bridge.address = std::move(address);
    if (hwloc_obj* const near = ::hwloc_get_non_io_ancestor_obj(topology_, object)) {
      if (near->nodeset != nullptr && ::hwloc_bitmap_weight(near->nodeset) == 1)
        bridge.numa = ::hwloc_bitmap_first(near->nodeset);
      else
        bridge.numa = only_numa_in(near);
      bridge.socket = socket_of(near);
    }
    return add(std::move(bridge));
  }

  // Of the nodes that `near` spans, one may be the only one that has processors (memory of GPUs is a node
  // too).
  [[nodiscard]] std::optional<std::int32_t> only_numa_in(hwloc_obj_t near) const {
    std::optional<std::int32_t> found;
    for (const NumaNode& node : machine_.numa) {
      if (near->nodeset == nullptr || !::hwloc_bitmap_isset(near->nodeset, static_cast<unsigned>(node.index)))
        continue;
      if (found) return std::nullopt;
      found = node.index;
    }
    return found;
  }

  std::uint32_t add(PciDevice device) {
    machine_.pci.push_back(std::move(device));
    return static_cast<std::uint32_t>(machine_.pci.size() - 1);
  }

  std::uint32_t add_function(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci, PciKind kind,
                             hwloc_obj_t object, std::optional<std::uint32_t> parent) {
    PciDevice device;
    device.kind = kind;
    device.parent = parent ? parent : root_for(pci, object);
    device.address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
    device.vendor = pci.vendor_id;
    device.device = pci.device_id;
    device.subvendor = pci.subvendor_id;
    device.subdevice = pci.subdevice_id;
    device.model = info_of(object, "PCIDevice");
    if (std::isfinite(pci.linkspeed) && pci.linkspeed > 0)
      device.link.rate = Rate{static_cast<double>(pci.linkspeed) * 8e9};  // hwloc: GB/s of payload
    return add(std::move(device));
  }

  std::uint32_t add_bridge(hwloc_obj_t object, std::optional<std::uint32_t> parent) {
    const auto& bridge = object->attr->bridge;
    if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
      return add_host_bridge(
          fmt::format("{:04x}:{:02x}", bridge.downstream.pci.domain, bridge.downstream.pci.secondary_bus),
          object);
    return add_function(bridge.upstream.pci, PciKind::port, object, parent);
  }

  std::uint32_t add_device(hwloc_obj_t object, std::optional<std::uint32_t> parent) {
    PciKind kind = kind_of(object->attr->pcidev);
    if (object->subtype != nullptr && std::string_view(object->subtype) == "NVSwitch")
      kind = PciKind::nvswitch;
    const std::uint32_t index = add_function(object->attr->pcidev, kind, object, parent);
    if (kind == PciKind::gpu) machine_.gpus.push_back({.pci = index, .model = machine_.pci[index].model});
    return index;
  }

  void add_os_device(hwloc_obj_t object, std::optional<std::uint32_t> parent) {
    const std::string name = object->name == nullptr ? std::string() : printable(object->name, 64);
    switch (object->attr->osdev.type) {
      case HWLOC_OBJ_OSDEV_COPROC:
      case HWLOC_OBJ_OSDEV_GPU:
        name_gpu(object, parent);
        return;
      case HWLOC_OBJ_OSDEV_NETWORK:
        if (ports_) add_interface(object, name, parent);
        return;
      case HWLOC_OBJ_OSDEV_OPENFABRICS:
        if (ports_) add_rdma(object, name, parent);
        return;
      default:
        return;
    }
  }

  void name_gpu(hwloc_obj_t object, std::optional<std::uint32_t> parent) {
    for (Gpu& gpu : machine_.gpus) {
      if (gpu.pci != parent) continue;
      if (const std::string model = info_of(object, "GPUModel"); !model.empty()) gpu.model = model;
      if (const std::string uuid = info_of(object, "NVIDIAUUID"); !uuid.empty()) gpu.uuid = uuid;
    }
  }

  void add_interface(hwloc_obj_t object, const std::string& name, std::optional<std::uint32_t> parent) {
    NetworkPort port;
    port.name = port.interface = name;
    port.pci = parent;
    const std::string number = info_of(object, "Port");  // of the RDMA device beside it, from 1
    if (number.size() == 1 && number[0] >= '1' && number[0] <= '9')
      port.port = static_cast<std::uint32_t>(number[0] - '0');
    // 20 bytes are InfiniBand's hardware address, 6 Ethernet's (RFC 4391, 9.1.1).
    if (const std::size_t length = info_of(object, "Address").size(); length != 0)
      port.link_layer = length > 17 ? "InfiniBand" : "Ethernet";
    if (parent && machine_.pci[*parent].kind == PciKind::other) machine_.pci[*parent].kind = PciKind::nic;
    machine_.ports.push_back(std::move(port));
  }

  // "Port1State" … hold the numbers of enum ib_port_state: 4 is ACTIVE. An old hwloc tells of LIDs alone.
  void add_rdma(hwloc_obj_t object, const std::string& name, std::optional<std::uint32_t> parent) {
    bool any = false;
    for (std::uint32_t number = 1; number <= 8; ++number) {
      const std::string state = info_of(object, fmt::format("Port{}State", number).c_str());
      if (state.empty() && info_of(object, fmt::format("Port{}LID", number).c_str()).empty()) continue;
      any = true;
      add_rdma_port(name, number, parent, state);
    }
    if (!any) add_rdma_port(name, 1, parent, "");
  }

  // The interface of an RDMA port: that of its number; where nothing tells numbers, rather an InfiniBand one
  // than the Ethernet of the same card.
  [[nodiscard]] std::optional<std::size_t> interface_of(std::uint32_t card, std::uint32_t number) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < machine_.ports.size(); ++i) {
      const NetworkPort& port = machine_.ports[i];
      if (port.pci != card || port.port != number || !port.rdma_device.empty()) continue;
      if (!found || (port.link_layer == "InfiniBand" && machine_.ports[*found].link_layer != "InfiniBand"))
        found = i;
    }
    return found;
  }

  void add_rdma_port(const std::string& device, std::uint32_t number, std::optional<std::uint32_t> parent,
                     const std::string& state) {
    NetworkPort port;
    port.name = number == 1 ? device : fmt::format("{}:{}", device, number);
    port.rdma_device = device;
    port.port = number;
    port.pci = parent;
    if (!state.empty()) {
      port.state = state == "4" ? PortState::up : PortState::down;
      port.state_text = state == "4" ? "ACTIVE" : state == "1" ? "DOWN" : "state " + state;
    }
    const auto found = parent ? interface_of(*parent, number) : std::nullopt;
    if (found) {  // its interface becomes part of it
      port.interface = machine_.ports[*found].interface;
      port.link_layer = machine_.ports[*found].link_layer;
      machine_.ports[*found] = std::move(port);
    } else {
      machine_.ports.push_back(std::move(port));
    }
  }

  hwloc_topology_t topology_;
  bool ports_;  ///< take ports from hwloc, since no sysfs is at hand
  Machine machine_;
};

// hwloc reads these from the environment alone. The first would put another machine in this one's place.
void clear_environment() {
  for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_COMPONENTS", "HWLOC_FSROOT"})
    ::unsetenv(name);
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
  ::setenv("HWLOC_HIDE_ERRORS", "2", 1);  // it would print paragraphs about firmware on stderr
}

Tree new_tree() {
  clear_environment();
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) return nullptr;
  Tree tree(raw);
  ::hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  ::hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  ::hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_BRIDGE, HWLOC_OBJ_PCI_DEVICE, HWLOC_OBJ_OS_DEVICE})
    ::hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  // The node's cores, not those that a cgroup leaves to us.
  ::hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return tree;
}

// A recorded NUMA node hangs at whatever has the same processors, a die or a cache. Without that hwloc hangs
// it higher up, and gives it the processors of all of that. Of a live machine hwloc makes groups for them.
void keep_what_nodes_hang_at(const Tree& tree) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_DIE, HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE,
                                      HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L1CACHE})
    ::hwloc_topology_set_type_filter(tree.get(), type, HWLOC_TYPE_FILTER_KEEP_ALL);
}

Machine finished(const Tree& tree, bool ports) {
  Machine machine = HwlocReader(tree.get(), ports).read();
  tell_facings(machine);
  forget_emulated_links(machine);
  prune(machine);
  return machine;
}

}  // namespace

Result<Machine> tree_of_system(const std::string& fsroot) {
  const Tree tree = new_tree();
  if (tree == nullptr) return fail("read this machine with", "hwloc", "out of memory");
  if (!fsroot.empty()) ::setenv("HWLOC_FSROOT", fsroot.c_str(), 1);
  const int failed = ::hwloc_topology_load(tree.get());
  if (!fsroot.empty()) ::unsetenv("HWLOC_FSROOT");
  if (failed != 0)
    return fail("read the machine in", fsroot.empty() ? "/sys" : fsroot, "hwloc finds no processors there",
                "a folder with the /sys and /proc of a node is needed, as hwloc-gather-topology makes");
  return finished(tree, false);
}

// hwloc's own small parser (no libxml2 here) reads only what hwloc writes, header by header: it gets the
// document written anew, without comments and in one form.
Result<Machine> tree_of_hwloc_xml(pugi::xml_document& document, const std::string& name) {
  pugi::xml_node root = document.document_element();
  const std::string version = root.attribute("version").value();
  unsigned major = 1;
  if (!version.empty() && std::sscanf(version.c_str(), "%u", &major) != 1)
    return fail("read", name, fmt::format("hwloc's format '{}' is not known", printable(version, 20)));
  const unsigned known = ::hwloc_get_api_version() >> 16;
  if (major > known)
    return fail(
        "read", name,
        fmt::format("it is in hwloc's format {}, and this netcheck has hwloc {}", printable(version, 20),
                    known),
        fmt::format("hwloc {0} or newer is needed to read it; or write it with hwloc {1}: lstopo --of xml",
                    major, known));
  std::ostringstream text;
  root.print(text, "", pugi::format_raw);
  const std::string buffer = text.str();
  const Tree tree = new_tree();
  if (tree == nullptr) return fail("read", name, "out of memory");
  keep_what_nodes_hang_at(tree);
  if (::hwloc_topology_set_xmlbuffer(tree.get(), buffer.c_str(), static_cast<int>(buffer.size() + 1)) != 0 ||
      ::hwloc_topology_load(tree.get()) != 0)
    return fail("read", name, "hwloc does not accept it: it is no complete topology",
                "write it again: lstopo --of xml FILE");
  Machine machine = finished(tree, true);
  if (major == 1)
    machine.notes.emplace_back("written by hwloc 1, which keeps less: no bridges inside switches");
  return machine;
}

}  // namespace netcheck::topology
