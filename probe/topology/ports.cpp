// Ports from sysfs: the RDMA ports of /sys/class/infiniband, each with its interface, and the interfaces that
// belong to none. As the probe user or whoever runs `netcheck topo`.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "measure/locality.h"
#include "topology/interfaces.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> sorted_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

template <typename Number>
std::optional<Number> number_in(const std::string& path) {
  const auto text = first_line(path);
  if (!text) return std::nullopt;
  Number value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end == text->data()) return std::nullopt;
  return value;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error)) && !error;
}

// "0000:5d:00.0"
bool is_pci_address(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kForm[i] == 'x' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

std::optional<std::string> last_pci_address(const fs::path& path) {
  std::optional<std::string> found;
  for (const fs::path& part : path)
    if (is_pci_address(part.string())) found = part.string();
  return found;
}

// Where a class device hangs in the tree of devices: /sys/class/net/eth0 →
// ../../devices/pci0000:00/0000:00:03.0/ virtio2/net/eth0. The links are read, not followed: a recorded tree
// need not have what they point at.
std::optional<std::uint32_t> pci_behind(const Machine& machine, const std::string& entry) {
  for (const std::string& link : {entry, entry + "/device"}) {
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    if (error) continue;
    if (const auto address = last_pci_address(target)) return function_at(machine, *address);
  }
  return std::nullopt;
}

bool is_virtual_function(const Machine& machine, std::optional<std::uint32_t> pci,
                         const std::string& fsroot) {
  return pci && is_there(fsroot + "/sys/bus/pci/devices/" + machine.pci[*pci].address + "/physfn");
}

std::string master_of(const std::string& folder) {
  std::error_code error;
  const fs::path target = fs::read_symlink(folder + "/master", error);
  return error ? std::string() : printable(target.filename().string(), 64);
}

std::vector<std::string> members_of(const std::string& folder) {
  std::vector<std::string> members;
  const std::string text = first_line(folder + "/bonding/slaves").value_or("");
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    members.push_back(printable(text.substr(at, end - at), 64));
    at = end;
  }
  return members;
}

void set_interface_state(NetworkPort& port, const std::string& folder) {
  const std::string state = first_line(folder + "/operstate").value_or("");
  port.state_text = printable(state, 32);
  // RFC 2863's states; "unknown" is what drivers without carrier detection say while they work.
  if (state == "up") port.state = PortState::up;
  if (state == "down" || state == "lowerlayerdown" || state == "notpresent") port.state = PortState::down;
}

// Mb/s. What has no card behind it has no rate (veth says 10000 whatever it is shaped to), but a bond adds up
// its members'. -1 and 4294967295: the driver does not know.
std::optional<Rate> interface_rate(const NetworkPort& port, const std::string& folder) {
  if ((!port.pci && port.members.empty()) || port.state == PortState::down) return std::nullopt;
  const auto megabits = number_in<std::int64_t>(folder + "/speed");
  if (!megabits || *megabits <= 0 || *megabits >= UINT32_MAX) return std::nullopt;
  return Rate{static_cast<double>(*megabits) * 1e6};
}

// ARPHRD_ETHER and ARPHRD_INFINIBAND of linux/if_arp.h.
const char* layer_of(const std::string& folder) {
  constexpr int kEther = 1, kInfiniband = 32;
  const int type = number_in<int>(folder + "/type").value_or(0);
  return type == kEther ? "Ethernet" : type == kInfiniband ? "InfiniBand" : "";
}

NetworkPort interface_port(const Machine& machine, const std::string& name, const std::string& fsroot) {
  const std::string folder = fsroot + "/sys/class/net/" + name;
  NetworkPort port;
  port.name = port.interface = name;
  port.pci = pci_behind(machine, folder);
  port.link_layer = layer_of(folder);
  set_interface_state(port, folder);
  port.mtu = number_in<std::uint32_t>(folder + "/mtu");
  port.members = members_of(folder);
  port.master = master_of(folder);
  port.rate = interface_rate(port, folder);
  port.virtual_function = is_virtual_function(machine, port.pci, fsroot);
  port.port = number_in<std::uint32_t>(folder + "/dev_port").value_or(0) + 1;
  return port;
}

// "4: ACTIVE", "1: DOWN"; "5: ACTIVE_DEFER" carries nothing.
void set_rdma_state(NetworkPort& port, const std::string& folder) {
  const std::string state = first_line(folder + "/state").value_or("");
  port.state_text = printable(state, 32);
  if (state.empty()) return;
  const bool active = state.find("ACTIVE") != std::string::npos && state.find("DEFER") == std::string::npos;
  port.state = active ? PortState::up : PortState::down;
}

// "400 Gb/sec (4X NDR)". A port that is down says what it would begin at.
std::optional<Rate> rdma_rate(const NetworkPort& port, const std::string& folder) {
  const auto gigabits = number_in<double>(folder + "/rate");
  if (port.state == PortState::down || !gigabits || !(*gigabits > 0) || *gigabits > 1e6) return std::nullopt;
  return Rate{*gigabits * 1e9};
}

NetworkPort rdma_port(const Machine& machine, const std::string& device, const std::string& number,
                      const std::string& fsroot) {
  const std::string entry = fsroot + "/sys/class/infiniband/" + device;
  const std::string folder = entry + "/ports/" + number;
  NetworkPort port;
  port.name = number == "1" ? device : device + ":" + number;
  port.rdma_device = device;
  std::from_chars(number.data(), number.data() + number.size(), port.port);
  port.pci = pci_behind(machine, entry);
  port.link_layer = printable(first_line(folder + "/link_layer").value_or(""), 16);
  set_rdma_state(port, folder);
  port.rate = rdma_rate(port, folder);
  port.firmware = printable(first_line(entry + "/fw_ver").value_or(""), 32);
  port.virtual_function = is_virtual_function(machine, port.pci, fsroot);
  return port;
}

// A function of SR-IOV says what its card could, not what was given to it.
void set_rated(NetworkPort& port) {
  if (port.pci && !port.virtual_function && port.link_layer == "Ethernet")
    port.rated = fastest_supported(port.interface);
}

// All of a bond's members carry, but in mode active-backup one at a time. As its present rate, it is known
// where that of each member is.
void set_bond_rated(NetworkPort& bond, const std::vector<NetworkPort>& interfaces,
                    const std::string& fsroot) {
  const std::string mode =
      first_line(fmt::format("{}/sys/class/net/{}/bonding/mode", fsroot, bond.interface)).value_or("");
  if (mode.empty()) return;
  Rate all, fastest;
  for (const std::string& member : bond.members) {
    const auto found = std::ranges::find(interfaces, member, &NetworkPort::interface);
    if (found == interfaces.end() || !found->rated) return;
    all.bits_per_second += found->rated->bits_per_second;
    fastest = std::max(fastest, *found->rated);
  }
  bond.rated = mode.rfind("active-backup", 0) == 0 ? fastest : all;
}

// A table of up to 255, filled from its beginning: the first are those of the interface itself, whose
// link-local ones are always there. Entries that are free are zero, or cannot be read.
constexpr int kGidsToRead = 16;

// Of a port whose interface is not in this network namespace the kernel shows none.
void set_gids(NetworkPort& port, const std::string& fsroot) {
  if (port.link_layer != "Ethernet" || port.interface.empty()) return;
  const std::string folder =
      fmt::format("{}/sys/class/infiniband/{}/ports/{}", fsroot, port.rdma_device, port.port);
  if (!is_there(folder + "/gids/0") || !is_there(folder + "/gid_attrs/types")) return;
  port.gids = Gids::none;
  for (int i = 0; i < kGidsToRead && port.gids != Gids::usable; ++i) {
    const std::string gid = first_line(fmt::format("{}/gids/{}", folder, i)).value_or("");
    const std::string type = first_line(fmt::format("{}/gid_attrs/types/{}", folder, i)).value_or("");
    if (gid.find_first_not_of("0:") == std::string::npos || type.empty()) continue;
    const Gids kind = type != "RoCE v2"            ? Gids::version_1
                      : gid.rfind("fe80:", 0) == 0 ? Gids::link_local
                                                   : Gids::usable;
    port.gids = std::max(port.gids, kind);
  }
}

// The interfaces of this process's own network namespace; of a sysfs that shows another namespace's, those
// that are not ours are left out: the same name may be another link's.
bool is_ours(const std::string& name, const std::vector<Interface>& own, const std::string& fsroot) {
  const auto index = number_in<std::uint32_t>(fsroot + "/sys/class/net/" + name + "/ifindex");
  return std::ranges::any_of(
      own, [&](const Interface& interface) { return interface.name == name && interface.index == index; });
}

// The near end of a function of SR-IOV in a card that switches between its functions (devlink's switchdev):
// "pf0vf3", "c1pf0sf88". No port of the node's own.
bool is_representor(const std::string& folder) {
  const std::string name = first_line(folder + "/phys_port_name").value_or("");
  const std::size_t at = name.find("pf");
  return at != std::string::npos && name.find_first_of("vs", at + 2) != std::string::npos;
}

// An RDMA port and its interface are one port: same function, same number.
void join(NetworkPort& port, std::vector<NetworkPort>& interfaces) {
  const auto found = std::ranges::find_if(interfaces, [&](const NetworkPort& interface) {
    return port.pci && interface.pci == port.pci && interface.port == port.port;
  });
  if (found == interfaces.end()) return;
  port.interface = found->interface;
  port.mtu = found->mtu;
  port.rated = found->rated;
  port.master = found->master;
  if (found->master.empty())
    interfaces.erase(found);  // a bond's member stays: the bond's bytes go through it
}

// RoCE over a bond: one RDMA device (mlx5_bond_0) at the first member stands for all of them.
void stand_for_bond(NetworkPort& port, std::vector<NetworkPort>& interfaces) {
  if (port.master.empty()) return;
  const auto bond = std::ranges::find_if(interfaces, [&](const NetworkPort& interface) {
    return interface.interface == port.master && !interface.members.empty();
  });
  if (bond == interfaces.end()) return;
  port.interface = bond->interface;
  port.mtu = bond->mtu;
  port.members = bond->members;
  if (bond->rate) port.rate = bond->rate;
  port.rated = bond->rated;
  port.master.clear();
  interfaces.erase(bond);
}

}  // namespace

void add_ports(Machine& machine, const std::string& fsroot, bool live) {
  const std::vector<Interface> own = live ? list_interfaces() : std::vector<Interface>{};
  std::vector<NetworkPort> interfaces;
  for (const std::string& name : sorted_names(fsroot + "/sys/class/net")) {
    if (!is_there(fmt::format("{}/sys/class/net/{}/ifindex", fsroot, name)))
      continue;  // "bonding_masters" is a file
    if (live && !is_ours(name, own, fsroot)) continue;
    if (is_representor(fmt::format("{}/sys/class/net/{}", fsroot, name))) continue;
    interfaces.push_back(interface_port(machine, name, fsroot));
    if (live) set_rated(interfaces.back());
  }
  for (NetworkPort& port : interfaces)
    if (!port.members.empty()) set_bond_rated(port, interfaces, fsroot);
  std::vector<NetworkPort> ports;
  const std::string infiniband = fsroot + "/sys/class/infiniband";
  for (const std::string& device : sorted_names(infiniband)) {
    for (const std::string& number : sorted_names(fmt::format("{}/{}/ports", infiniband, device))) {
      ports.push_back(rdma_port(machine, device, number, fsroot));
      join(ports.back(), interfaces);
    }
  }
  for (NetworkPort& port : ports) {
    stand_for_bond(port, interfaces);
    set_gids(port, fsroot);
  }
  std::move(interfaces.begin(), interfaces.end(), std::back_inserter(ports));
  machine.ports = std::move(ports);
}

}  // namespace netcheck::topology
