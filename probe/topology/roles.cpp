// Which ports are fabric ports. As the probe user or whoever runs `netcheck topo`; pure but for fnmatch(3).
//
// In this order:
//   1. what the site excludes, or leaves out of the devices that it names;
//   2. loopback; what container engines, hypervisors and tunnels make; members of a bond or bridge;
//   3. SR-IOV functions where their card has a port itself, or, where the card is not known, one of that
//   maker
//      has;
//   4. interfaces without RDMA where there are RDMA ports; without any, interfaces that are down;
//   5. of several kinds of cards, all but the kind that carries most: storage and management have cards of
//   their
//      own;
//   6. second ports that are down on every card of that kind: not cabled;
//   7. where there are GPUs, ports that no GPU has as its nearest.
// A fabric port that is down stays one: its loss is a finding, not a change of the machine's kind.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "measure/locality.h"
#include "topology/interfaces.h"
#include "topology/machine.h"

namespace netcheck::topology {

namespace {

bool fits_any(const NetworkPort& port, const std::vector<std::string>& globs) {
  if (matches_any(globs, port.name)) return true;
  if (!port.interface.empty() && matches_any(globs, port.interface)) return true;
  return !port.rdma_device.empty() && matches_any(globs, fmt::format("{}:{}", port.rdma_device, port.port));
}

bool is_rdma(const NetworkPort& port) {
  return !port.rdma_device.empty();
}

bool still_in(const NetworkPort& port) {
  return port.why_not.empty();
}

std::string by_itself(const NetworkPort& port, const PortGlobs& globs) {
  if (fits_any(port, globs.exclude)) return kExcluded;
  if (!globs.include.empty()) return fits_any(port, globs.include) ? "" : "not among the site's devices";
  if (port.name == "lo") return "loopback";
  if (const char* kind = kind_of_virtual(port.interface)) return kind;
  if (!port.master.empty()) return "part of " + port.master;
  // Without a card and without members: a VLAN, a bridge, another namespace's. A VM may have no PCI at all.
  return {};
}

template <typename Condition>
bool any_left(const Machine& machine, Condition condition) {
  return std::ranges::any_of(machine.ports,
                             [&](const NetworkPort& port) { return still_in(port) && condition(port); });
}

template <typename Condition>
void leave_out(Machine& machine, const std::string& why, Condition condition) {
  for (NetworkPort& port : machine.ports)
    if (still_in(port) && condition(port)) port.why_not = why;
}

void leave_out_lesser_ways(Machine& machine) {
  const auto has_card = [&](const NetworkPort& port) { return pci_of(machine, port).has_value(); };
  if (any_left(machine, [&](const NetworkPort& port) { return has_card(port) || is_rdma(port); }))
    leave_out(machine, "virtual", [&](const NetworkPort& port) { return !has_card(port) && !is_rdma(port); });
  std::set<std::uint32_t> cards;    // with a port that is no SR-IOV function
  std::set<std::uint16_t> vendors;  // of those
  for (const NetworkPort& port : machine.ports) {
    if (!still_in(port) || !port.pci || port.virtual_function) continue;
    cards.insert(*port.pci);
    vendors.insert(machine.pci[*port.pci].vendor);
  }
  leave_out(machine, kFunction, [&](const NetworkPort& port) {
    if (!port.virtual_function || !port.pci) return false;
    const PciDevice& device = machine.pci[*port.pci];
    return device.physical ? cards.contains(*device.physical) : vendors.contains(device.vendor);
  });
  if (any_left(machine, is_rdma))
    leave_out(machine, "no RDMA", [](const NetworkPort& port) { return !is_rdma(port); });
  else
    leave_out(machine, "down", [](const NetworkPort& port) { return port.state == PortState::down; });
}

/// A kind of card, and what its ports are cabled to.
using Kind = std::tuple<std::uint16_t, std::uint16_t, std::string>;

Kind kind_of_port(const Machine& machine, const NetworkPort& port) {
  const auto pci = pci_of(machine, port);
  if (!pci) return {0, 0, port.link_layer};
  return {machine.pci[*pci].vendor, machine.pci[*pci].device, port.link_layer};
}

struct Group {
  std::uint32_t ports = 0;
  double fastest = 0;  ///< bit/s; 0: no port of it says
  [[nodiscard]] double all() const { return fastest * ports; }
};

/// Below a switch with a GPU: nobody puts anything but a rail there.
bool is_beside_a_gpu(const Machine& machine, const NetworkPort& port) {
  const auto pci = pci_of(machine, port);
  return pci && std::ranges::any_of(machine.gpus, [&](const Gpu& gpu) {
           return distance_between(machine, gpu.pci, *pci) <= Distance::pxb;
         });
}

void leave_out_lesser_kinds(Machine& machine) {
  std::map<Kind, Group> groups;
  for (const NetworkPort& port : machine.ports) {
    if (!still_in(port)) continue;
    Group& group = groups[kind_of_port(machine, port)];
    ++group.ports;
    for (const auto& rate : {port.rate, port.rated})
      if (rate) group.fastest = std::max(group.fastest, rate->bits_per_second);
  }
  if (groups.size() < 2) return;
  // Where one kind does not say its rate it cannot be compared, and stays, unless all its ports are down.
  const auto most =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.all(); });
  if (most->second.fastest <= 0) return;
  for (NetworkPort& port : machine.ports) {
    if (!still_in(port)) continue;
    const Kind kind = kind_of_port(machine, port);
    const Group& own = groups[kind];
    if (kind == most->first) continue;
    if (own.fastest <= 0 && (port.state != PortState::down || is_beside_a_gpu(machine, port))) continue;
    const std::string own_rate = own.fastest > 0 ? in_words(Rate{own.fastest}) : "down";
    port.why_not = fmt::format("{} × {} beside {} × {}", own.ports, own_rate, most->second.ports,
                               in_words(Rate{most->second.fastest}));
  }
}

/// Function and port of a card: "0" and 1 of "0000:5d:00.0".
std::pair<std::string, std::uint32_t> place_on_card(const Machine& machine, const NetworkPort& port) {
  const std::string& address = machine.pci[*port.pci].address;
  return {address.substr(address.find('.') + 1), is_rdma(port) ? port.port : 1};
}

void leave_out_uncabled(Machine& machine) {
  std::map<std::pair<std::string, std::uint32_t>, bool>
      some_up;  // place on a card → any port there is not down
  for (const NetworkPort& port : machine.ports) {
    if (!still_in(port) || !port.pci) continue;
    bool& up = some_up[place_on_card(machine, port)];
    up = up || port.state != PortState::down;
  }
  if (std::ranges::none_of(some_up, [](const auto& place) { return place.second; })) return;
  leave_out(machine, "not cabled",
            [&](const NetworkPort& port) { return port.pci && !some_up[place_on_card(machine, port)]; });
}

void leave_out_remote(Machine& machine) {
  std::set<std::uint32_t> serving;
  for (std::uint32_t gpu = 0; gpu < machine.gpus.size(); ++gpu)
    for (const std::uint32_t port : nearest_ports(machine, gpu, false).ports)
      serving.insert(port);
  if (serving.empty()) return;
  for (std::uint32_t i = 0; i < machine.ports.size(); ++i)
    if (still_in(machine.ports[i]) && !serving.contains(i)) machine.ports[i].why_not = "nearest to no GPU";
}

}  // namespace

void tell_roles(Machine& machine, const PortGlobs& globs) {
  for (NetworkPort& port : machine.ports)
    port.why_not = by_itself(port, globs);
  if (!globs.include.empty()) return;
  leave_out_lesser_ways(machine);
  leave_out_lesser_kinds(machine);
  leave_out_uncabled(machine);
  leave_out_remote(machine);
}

std::vector<std::string> without_port(const Machine& machine, const std::vector<std::string>& globs) {
  std::vector<std::string> without;
  for (const std::string& glob : globs)
    if (std::ranges::none_of(machine.ports, [&](const NetworkPort& port) { return fits_any(port, {glob}); }))
      without.push_back(glob);
  return without;
}

}  // namespace netcheck::topology
