// The PCI tree, folded for readers. Pure.
#include "picture/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace netcheck::picture {

namespace {

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} GiB", static_cast<double>(bytes) / 1024 / 1024 / 1024);
}

void set_link(const Machine& machine, std::uint32_t device, Node& node) {
  const auto hop = link_above(machine, device);
  if (!hop) return;
  if (hop->narrower || hop->slower) {
    node.link = fmt::format("{} of {}", hop->now_text, hop->most_text);
    node.trouble = hop->narrower || machine.pci[device].kind != PciKind::gpu;  // idle GPUs fall back
    return;
  }
  node.link = hop->now ? hop->now_text : hop->most_text;
  const std::string rate = in_words(hop->now ? *hop->now : *hop->most);
  if (node.link != rate) node.link += " = " + rate;
}

std::string about_port(const NetworkPort& port) {
  std::vector<std::string> words;
  if (!port.link_layer.empty() || port.rate || port.rated)
    words.push_back(port.link_layer.empty() ? "port" : port.link_layer);
  if (port.rate) words.push_back(in_words(*port.rate));
  if (port.rated && (!port.rate || *port.rate < *port.rated))
    words.push_back(fmt::format("{}{}", port.rate ? "of " : "rated ", in_words(*port.rated)));
  if (port.state == PortState::down)
    words.push_back(
        "down" + (port.state_text.empty() || port.state_text == "down" ? "" : " (" + port.state_text + ")"));
  if (port.state == PortState::up) words.emplace_back("up");
  if (port.mtu) words.push_back(fmt::format("MTU {}", *port.mtu));
  if (port.gids == Gids::none && port.state != PortState::down) words.emplace_back("no GID");
  if (port.virtual_function) words.emplace_back("SR-IOV function");
  if (!port.why_not.empty()) words.push_back(fmt::format(" [not fabric: {}]", port.why_not));
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string about_gpu(const Gpu& gpu) {
  std::string text = gpu.model;
  if (gpu.mig == true) text += " MIG";
  if (gpu.power_limit && gpu.power_limit != gpu.power_default) text += fmt::format(" {} W", *gpu.power_limit);
  if (!gpu.slowed.empty()) text += fmt::format(" [{}]", gpu.slowed);
  return text;
}

class Outliner {
 public:
  explicit Outliner(const Machine& machine)
      : machine_(machine), below_(machine.pci.size()), functions_(machine.pci.size(), 0) {
    for (std::uint32_t i = 0; i < machine.pci.size(); ++i) {
      const PciDevice& device = machine.pci[i];
      if (device.physical && !carries_the_fabric(i))
        ++functions_[*device.physical];
      else if (device.parent)
        below_[*device.parent].push_back(i);
    }
  }

  std::vector<Node> outline() {
    std::vector<Node> sockets;
    std::map<std::int32_t, std::size_t> place;
    for (const NumaNode& numa : machine_.numa) {
      Node node = numa_node(numa);
      if (!numa.socket) {
        sockets.push_back(std::move(node));
        continue;
      }
      if (!place.contains(*numa.socket)) {
        place[*numa.socket] = sockets.size();
        sockets.push_back({.part = Part::socket, .name = fmt::format("socket {}", *numa.socket)});
      }
      sockets[place[*numa.socket]].below.push_back(std::move(node));
    }
    for (auto& [socket, at] : place)
      add_bridges(sockets[at],
                  [socket = socket](const PciDevice& bridge) { return bridge.socket == socket; });
    Node rest{.part = Part::socket, .name = machine_.numa.empty() ? "PCI" : "near no known NUMA node"};
    add_bridges(rest, [](const PciDevice& /*bridge*/) { return true; });
    if (!rest.below.empty()) sockets.push_back(std::move(rest));
    return sockets;
  }

 private:
  [[nodiscard]] bool carries_the_fabric(std::uint32_t device) const {
    return std::ranges::any_of(
        machine_.ports, [&](const NetworkPort& port) { return port.pci == device && port.why_not.empty(); });
  }

  Node numa_node(const NumaNode& numa) {
    Node node{.part = Part::numa, .name = fmt::format("NUMA {}", numa.index)};
    if (numa.cores > 0) node.about = fmt::format("{} core{}", numa.cores, numa.cores == 1 ? "" : "s");
    if (numa.memory_bytes > 0) node.about += (node.about.empty() ? "" : ", ") + gibibytes(numa.memory_bytes);
    add_bridges(node, [&](const PciDevice& bridge) { return bridge.numa == numa.index; });
    return node;
  }

  template <typename Condition>
  void add_bridges(Node& node, Condition belongs) {
    for (std::uint32_t i = 0; i < machine_.pci.size(); ++i) {
      if (machine_.pci[i].kind != PciKind::host_bridge || shown_.contains(i) || !belongs(machine_.pci[i]))
        continue;
      shown_.insert(i);
      add_device(i, node.below);
    }
  }

  [[nodiscard]] bool holds_nvswitches_alone(std::uint32_t device) const {
    if (machine_.pci[device].kind == PciKind::nvswitch) return true;
    if (below_[device].empty()) return false;
    return std::ranges::all_of(below_[device],
                               [&](std::uint32_t child) { return holds_nvswitches_alone(child); });
  }

  [[nodiscard]] std::uint32_t count_nvswitches(std::uint32_t device) const {
    std::uint32_t count = machine_.pci[device].kind == PciKind::nvswitch ? 1 : 0;
    for (const std::uint32_t child : below_[device])
      count += count_nvswitches(child);
    return count;
  }

  // One thing below it, and no more: shown as that thing.
  [[nodiscard]] std::uint32_t folded(std::uint32_t device) const {
    while (below_[device].size() == 1 &&
           (machine_.pci[device].kind == PciKind::host_bridge || machine_.pci[device].kind == PciKind::port))
      device = below_[device].front();
    return device;
  }

  void add_device(std::uint32_t top, std::vector<Node>& list) {
    if (holds_nvswitches_alone(top)) {
      const std::uint32_t count = count_nvswitches(top);
      list.push_back(
          {.part = Part::nvswitch, .name = fmt::format("{} NVSwitch{}", count, count == 1 ? "" : "es")});
      return;
    }
    const std::uint32_t device = folded(top);
    const PciDevice& pci = machine_.pci[device];
    if (pci.kind == PciKind::gpu || pci.kind == PciKind::nic || pci.kind == PciKind::other) {
      add_leaf(device, list);
      return;
    }
    Node node{.part = Part::switch_, .name = "switch", .place = pci.address};
    if (pci.kind == PciKind::host_bridge) node.part = Part::bridge, node.name = "host bridge";
    if (pci.kind == PciKind::port && pci.facing == Facing::down) node.part = Part::bridge, node.name = "slot";
    set_link(machine_, device, node);
    for (const std::uint32_t child : below_[device])
      add_device(child, node.below);
    list.push_back(std::move(node));
  }

  void add_leaf(std::uint32_t device, std::vector<Node>& list) {
    const PciDevice& pci = machine_.pci[device];
    Node leaf{.part = Part::nic, .name = "NIC", .place = pci.address, .about = pci.model};
    set_link(machine_, device, leaf);
    for (std::size_t i = 0; i < machine_.gpus.size(); ++i) {
      if (machine_.gpus[i].pci != device) continue;
      leaf.part = Part::gpu;
      leaf.name = fmt::format("GPU {}", i);
      leaf.about = about_gpu(machine_.gpus[i]);
      leaf.trouble =
          leaf.trouble || machine_.gpus[i].known_to_driver == false || !machine_.gpus[i].slowed.empty();
    }
    const std::string functions =
        functions_[device] == 0
            ? ""
            : fmt::format(" + {} SR-IOV function{}", functions_[device], functions_[device] == 1 ? "" : "s");
    bool any = false;
    for (const NetworkPort& port : machine_.ports) {
      if (port.pci != device) continue;
      Node node = leaf;
      node.part = Part::port;
      if (port.name != pci.address) node.name = picture::name_of(port);
      node.about = about_port(port) + (any ? "" : functions);
      node.trouble = leaf.trouble || (port.why_not.empty() && port.state == PortState::down);
      if (!port.why_not.empty()) node.trouble = false;
      list.push_back(std::move(node));
      any = true;
    }
    if (any && leaf.part != Part::gpu) return;
    if (pci.kind == PciKind::other)
      leaf.name = "device", leaf.about = "[of a kind that is not told]";
    else if (leaf.part != Part::gpu)
      leaf.about += fmt::format("{}[no port{}]", leaf.about.empty() ? "" : " ",
                                pci.driver.empty() ? "" : ", driver " + pci.driver) +
                    functions;
    list.push_back(std::move(leaf));
  }

  const Machine& machine_;
  std::vector<std::vector<std::uint32_t>> below_;
  std::vector<std::uint32_t> functions_;  ///< of SR-IOV, folded into their card
  std::set<std::uint32_t> shown_;
};

}  // namespace

std::string name_of(const NetworkPort& port) {
  if (port.interface.empty() || port.interface == port.name) return port.name;
  return fmt::format("{} ({})", port.name, port.interface);
}

std::vector<Node> outline(const Machine& machine) {
  return Outliner(machine).outline();
}

std::vector<std::string> ports_without_card(const Machine& machine) {
  std::vector<std::string> lines;
  for (const NetworkPort& port : machine.ports) {
    if (port.pci) continue;
    std::string members;
    for (const std::string& member : port.members)
      members += (members.empty() ? " = " : " + ") + member;
    const std::string about = about_port(port);
    lines.push_back(name_of(port) + members + (about.empty() ? "" : "  " + about));
  }
  return lines;
}

}  // namespace netcheck::picture
