// The PCI tree, walked. Pure.
#include "measure/locality.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace netcheck {

namespace {

/// The device and all above it, the host bridge last.
std::vector<std::uint32_t> line_up(const Machine& machine, std::uint32_t device) {
  std::vector<std::uint32_t> line{device};
  while (const auto& parent = machine.pci[line.back()].parent)
    line.push_back(*parent);
  return line;
}

/// "0000:5d:00.1" → "0000:5d:00": the functions of one card share its link.
std::string_view card_of(const PciDevice& device) {
  return std::string_view(device.address).substr(0, device.address.find('.'));
}

std::uint32_t first_function(const Machine& machine, std::uint32_t device) {
  for (std::uint32_t i = 0; i < device; ++i)
    if (machine.pci[i].parent == machine.pci[device].parent &&
        card_of(machine.pci[i]) == card_of(machine.pci[device]))
      return i;
  return device;
}

PciSpeed lesser(const PciSpeed& one, const PciSpeed& other) {
  return {std::min(one.gigatransfers, other.gigatransfers), std::min(one.lanes, other.lanes)};
}

/// One end alone may be a Gen5 card in a Gen4 slot: what the link could is not known then. `switch_above`: a
/// switch that a file of NCCL's shows as one, with what the link could.
void set_speeds(PciHop& hop, const PciLink& below, const PciLink* above, bool switch_above) {
  auto now = below.now;
  auto most = below.most;
  if (above == nullptr && !switch_above && now) most.reset();
  if (above != nullptr) {
    if (!now) now = above->now;
    most = most && above->most ? std::optional(lesser(*most, *above->most)) : std::nullopt;
  }
  if (!most && !now && below.most) most = below.most;
  if (now && most) {
    hop.narrower = now->lanes < most->lanes;
    hop.slower = now->gigatransfers < most->gigatransfers;
    if (!hop.narrower && !hop.slower) most = now;
  } else if (!most) {
    most = now;
  }
  if (now) hop.now = rate_of(*now), hop.now_text = format_speed(*now);
  if (most) hop.most = rate_of(*most), hop.most_text = format_speed(*most);
  if (hop.now) return;
  const auto& rate = below.rate || above == nullptr ? below.rate : above->rate;
  hop.now = rate;
  if (hop.now) hop.now_text = in_words(*hop.now);
  if (!hop.most && hop.now) hop.most = hop.now, hop.most_text = hop.now_text;
}

void add_hops(const Machine& machine, const std::vector<std::uint32_t>& line, std::size_t count,
              std::vector<PciHop>& hops) {
  for (std::size_t i = 0; i < count; ++i)
    if (auto hop = link_above(machine, line[i])) hops.push_back(std::move(*hop));
}

/// A switch shows one upstream port, or itself where a recording keeps no ports.
bool is_switch(const PciDevice& device) {
  return device.kind == PciKind::port && device.facing != Facing::down;
}

Distance between_bridges(const Machine& machine, const PciDevice& one, const PciDevice& other) {
  if (one.numa && other.numa) return *one.numa == *other.numa ? Distance::node : Distance::sys;
  if (one.socket && other.socket) return *one.socket == *other.socket ? Distance::node : Distance::sys;
  return machine.numa.size() == 1 ? Distance::node : Distance::unknown;
}

/// Two lines up to the root, and where they meet.
struct Junction {
  std::vector<std::uint32_t> up, down;
  std::size_t up_count = 0, down_count = 0;  ///< of each line, the devices before the place where they meet
  std::optional<std::uint32_t> at;           ///< none: below two host bridges
};

Junction junction_of(const Machine& machine, std::uint32_t from, std::uint32_t to) {
  Junction junction{.up = line_up(machine, from), .down = line_up(machine, to)};
  const auto &up = junction.up, &down = junction.down;
  // Both lines end in host bridges: what they have in common is their tail.
  std::size_t common = 0;
  while (common < std::min(up.size(), down.size()) &&
         up[up.size() - 1 - common] == down[down.size() - 1 - common])
    ++common;
  junction.up_count = up.size() - std::max<std::size_t>(common, 1);
  junction.down_count = down.size() - std::max<std::size_t>(common, 1);
  if (common > 0) junction.at = up[up.size() - common];
  return junction;
}

Distance name_distance(const Machine& machine, const Junction& junction) {
  const PciDevice &from = machine.pci[junction.up.front()], &to = machine.pci[junction.down.front()];
  if (!junction.at)
    return between_bridges(machine, machine.pci[junction.up.back()], machine.pci[junction.down.back()]);
  // Two functions of one card are as near as one switch would make them, wherever the card hangs.
  if (from.parent == to.parent && card_of(from) == card_of(to)) return Distance::pix;
  if (machine.pci[*junction.at].kind == PciKind::host_bridge) return Distance::phb;
  const auto switches = [&](const std::vector<std::uint32_t>& line, std::size_t count) {
    return std::count_if(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(count),
                         [&](std::uint32_t device) { return is_switch(machine.pci[device]); });
  };
  const auto all = switches(junction.up, junction.up_count) + switches(junction.down, junction.down_count) +
                   (is_switch(machine.pci[*junction.at]) ? 1 : 0);
  return all <= 1 ? Distance::pix : Distance::pxb;
}

}  // namespace

const char* name_of(Distance distance) {
  switch (distance) {
    case Distance::self:
      return "X";
    case Distance::pix:
      return "PIX";
    case Distance::pxb:
      return "PXB";
    case Distance::phb:
      return "PHB";
    case Distance::node:
      return "NODE";
    case Distance::sys:
      return "SYS";
    case Distance::unknown:
      break;
  }
  return "?";
}

std::optional<PciHop> link_above(const Machine& machine, std::uint32_t device) {
  device = machine.pci[device].physical.value_or(device);  // all functions of a card have its one link
  const PciDevice& below = machine.pci[device];
  if (!below.parent) return std::nullopt;
  const PciDevice& above = machine.pci[*below.parent];
  // A port that looks down says nothing of what is above it: that is a switch's inside, or the root complex.
  if (below.kind == PciKind::port && below.facing == Facing::down) return std::nullopt;
  PciHop hop;
  hop.device = first_function(machine, device);
  const bool two_ends = above.kind == PciKind::port && above.facing == Facing::down;
  const bool switch_above = above.kind == PciKind::port && above.facing == Facing::unknown;
  set_speeds(hop, below.link, two_ends ? &above.link : nullptr, switch_above);
  if (!hop.now && !hop.most) return std::nullopt;
  return hop;
}

Distance distance_between(const Machine& machine, std::uint32_t from, std::uint32_t to) {
  return from == to ? Distance::self : name_distance(machine, junction_of(machine, from, to));
}

Way way_between(const Machine& machine, std::uint32_t from, std::uint32_t to) {
  Way way;
  way.distance = Distance::self;
  if (from == to) return way;
  const Junction junction = junction_of(machine, from, to);
  way.distance = name_distance(machine, junction);
  add_hops(machine, junction.up, junction.up_count, way.hops);
  std::vector<PciHop> tail;
  add_hops(machine, junction.down, junction.down_count, tail);
  std::move(tail.rbegin(), tail.rend(), std::back_inserter(way.hops));
  return way;
}

std::vector<PciHop> hops_to_root(const Machine& machine, std::uint32_t device) {
  std::vector<PciHop> hops;
  const auto line = line_up(machine, device);
  add_hops(machine, line, line.size(), hops);
  return hops;
}

const PciDevice& host_bridge_of(const Machine& machine, std::uint32_t device) {
  return machine.pci[line_up(machine, device).back()];
}

std::optional<std::uint32_t> function_at(const Machine& machine, std::string_view address) {
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i)
    if (machine.pci[i].kind != PciKind::host_bridge && machine.pci[i].address == address) return i;
  return std::nullopt;
}

std::optional<std::uint32_t> pci_of(const Machine& machine, const NetworkPort& port) {
  if (port.pci || port.members.empty()) return port.pci;
  for (const NetworkPort& member : machine.ports)
    if (member.interface == port.members.front() && member.pci) return member.pci;
  return std::nullopt;
}

std::uint32_t nvlinks_between(const Machine& machine, std::uint32_t gpu, std::uint32_t other) {
  std::uint32_t direct = 0, to_switches = 0, other_to_switches = 0;
  for (const NvLink& link : machine.nvlinks) {
    if (link.gpu == gpu && link.peer == other) direct += link.count;
    if (link.gpu == gpu && !link.peer) to_switches += link.count;
    if (link.gpu == other && !link.peer) other_to_switches += link.count;
  }
  return direct > 0 ? direct : std::min(to_switches, other_to_switches);
}

NvLink nvlinks_of(const Machine& machine, std::uint32_t gpu) {
  NvLink all;
  all.gpu = gpu;
  Rate sum;
  bool known = true;
  for (const NvLink& link : machine.nvlinks) {
    if (link.gpu != gpu) continue;
    all.count += link.count;
    known = known && link.rate;
    if (link.rate) sum.bits_per_second += link.rate->bits_per_second;
  }
  if (known && all.count > 0) all.rate = sum;
  return all;
}

Nearest nearest_ports(const Machine& machine, std::uint32_t gpu, bool only_up) {
  Nearest nearest;
  for (std::uint32_t i = 0; i < machine.ports.size(); ++i) {
    const NetworkPort& port = machine.ports[i];
    if (!port.why_not.empty() || (only_up && port.state == PortState::down)) continue;
    const auto pci = pci_of(machine, port);
    const Distance distance =
        pci ? distance_between(machine, machine.gpus[gpu].pci, *pci) : Distance::unknown;
    if (!nearest.ports.empty() && distance > nearest.distance) continue;
    if (distance < nearest.distance || nearest.ports.empty()) nearest.ports.clear();
    nearest.distance = distance;
    nearest.ports.push_back(i);
  }
  return nearest;
}

}  // namespace netcheck
