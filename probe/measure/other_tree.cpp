// One tree grafted upon another. Pure.
#include "measure/other_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "measure/locality.h"

namespace netcheck {

namespace {

class Grafting {
 public:
  Grafting(const Machine& machine, const Machine& other)
      : machine_(machine), other_(other), result_(machine) {}

  Machine run() {
    result_.pci.clear();
    for (std::uint32_t i = 0; i < machine_.gpus.size(); ++i)
      result_.gpus[i].pci = place_of(machine_.gpus[i].pci);
    for (std::size_t i = 0; i < machine_.ports.size(); ++i)
      if (const auto& pci = machine_.ports[i].pci) result_.ports[i].pci = place_of(*pci);
    for (std::uint32_t i = 0; i < machine_.pci.size(); ++i)  // cards without a port, NVSwitches
      if (machine_.pci[i].kind != PciKind::host_bridge && machine_.pci[i].kind != PciKind::port)
        static_cast<void>(place_of(i));
    for (PciDevice& device : result_.pci)  // an index into the old tree
      if (device.physical) device.physical = function_at(result_, machine_.pci[*device.physical].address);
    take_nvlinks();
    result_.notes.push_back("what is near to what is as in " + other_.source);
    return std::move(result_);
  }

 private:
  std::uint32_t place_of(std::uint32_t device) {
    if (const auto there = function_at(other_, machine_.pci[device].address)) return graft(*there);
    return keep(device);
  }

  /// A device of the other tree, after what is above it.
  std::uint32_t graft(std::uint32_t device) {
    if (const auto done = grafted_.find(device); done != grafted_.end()) return done->second;
    PciDevice copy = other_.pci[device];
    copy.physical.reset();
    if (copy.parent) copy.parent = graft(*copy.parent);
    if (const auto own = function_at(machine_, copy.address); own && copy.kind != PciKind::host_bridge)
      describe_as(machine_.pci[*own], copy);
    if (copy.kind == PciKind::host_bridge) know_numa(copy);
    return grafted_[device] = add(std::move(copy));
  }

  /// One of our own, where the other tree does not have it.
  std::uint32_t keep(std::uint32_t device) {
    if (const auto done = kept_.find(device); done != kept_.end()) return done->second;
    PciDevice copy = machine_.pci[device];
    if (copy.parent) copy.parent = keep(*copy.parent);
    return kept_[device] = add(std::move(copy));
  }

  std::uint32_t add(PciDevice device) {
    result_.pci.push_back(std::move(device));
    return static_cast<std::uint32_t>(result_.pci.size() - 1);
  }

  static void describe_as(const PciDevice& own, PciDevice& copy) {
    const PciLink theirs = copy.link;
    const auto parent = copy.parent;
    const Facing facing = copy.facing;
    copy = own;
    copy.parent = parent;
    copy.facing = facing;
    if (!copy.link.now && !copy.link.most && !copy.link.rate) copy.link = theirs;
    if (copy.link.most && theirs.most)  // ours is the card's end alone, where the guest does not see the slot
      copy.link.most = {std::min(copy.link.most->gigatransfers, theirs.most->gigatransfers),
                        std::min(copy.link.most->lanes, theirs.most->lanes)};
  }

  /// The guest may show fewer NUMA nodes than the file has.
  void know_numa(PciDevice& bridge) {
    if (!bridge.numa) return;
    const auto found = std::ranges::find(result_.numa, *bridge.numa, &NumaNode::index);
    if (found != result_.numa.end())
      bridge.socket = found->socket;
    else
      result_.numa.push_back({.index = *bridge.numa});
  }

  void take_nvlinks() {
    if (machine_.nvlinks_known || !other_.nvlinks_known) return;
    std::map<std::uint32_t, std::uint32_t> ours;  // their GPU → ours
    for (std::uint32_t theirs = 0; theirs < other_.gpus.size(); ++theirs)
      for (std::uint32_t own = 0; own < machine_.gpus.size(); ++own)
        if (other_.pci[other_.gpus[theirs].pci].address == machine_.pci[machine_.gpus[own].pci].address)
          ours[theirs] = own;
    for (NvLink link : other_.nvlinks) {
      if (!ours.contains(link.gpu) || (link.peer && !ours.contains(*link.peer))) continue;
      link.gpu = ours[link.gpu];
      if (link.peer) link.peer = ours[*link.peer];
      result_.nvlinks.push_back(link);
    }
    result_.nvlinks_known = true;
  }

  const Machine& machine_;
  const Machine& other_;
  Machine result_;
  std::map<std::uint32_t, std::uint32_t> grafted_, kept_;
};

}  // namespace

Machine with_tree_of(const Machine& machine, const Machine& other) {
  return Grafting(machine, other).run();
}

}  // namespace netcheck
