// Interfaces and RDMA ports → NICs, each with the reason why it is no fabric NIC, if any. As the probe user.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "topology/interfaces.h"
#include "topology/machine.h"

namespace netcheck::topology {
namespace {

namespace fs = std::filesystem;

// Links that container engines, hypervisors and tunnels make, by the names they give them.
struct Virtual {
  const char* glob;
  const char* what;
};
constexpr Virtual kVirtual[] = {
    {"docker*", "container bridge"},
    {"br-*", "container bridge"},
    {"podman*", "container bridge"},
    {"cni*", "container bridge"},
    {"lxcbr*", "container bridge"},
    {"lxdbr*", "container bridge"},
    {"virbr*", "virtual machines' bridge"},
    {"vnet*", "virtual machine's link"},
    {"veth*", "container's link"},
    {"cali*", "container's link"},
    {"lxc*", "container's link"},
    {"flannel*", "container overlay"},
    {"cilium*", "container overlay"},
    {"kube-*", "container overlay"},
    {"tun*", "tunnel"},
    {"tap*", "tunnel"},
    {"wg*", "tunnel"},
    {"sit*", "tunnel"},
    {"gre*", "tunnel"},
    {"dummy*", "dummy link"},
    {"ifb*", "shaping device"},
};

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

template <typename Number>
std::optional<Number> number(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  Number value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end == text->data()) return std::nullopt;
  return value;
}

std::optional<std::int32_t> numa_of(const std::string& device) {
  const auto node = number<std::int32_t>(first_line(device + "/numa_node"));
  if (!node || *node < 0) return std::nullopt;  // -1: the firmware does not say
  return node;
}

// The folder in sysfs that is about this very interface, or "" when this sysfs belongs to another network
// namespace, where the same name may be another link's.
std::string sysfs_of(const Interface& interface, const std::string& fsroot) {
  std::string folder = fsroot + "/sys/class/net/" + interface.name;
  if (number<std::uint32_t>(first_line(folder + "/ifindex")) != interface.index) return {};
  if (first_line(folder + "/address").value_or("") != interface.mac) return {};
  return folder;
}

// Mb/s in sysfs. A link without a device behind it has no rated speed (veth says 10000 whatever it is shaped
// to), unless it is a bond, which adds up its members'.
std::optional<Rate> speed_of(const std::string& folder) {
  if (!exists(folder + "/device") && !exists(folder + "/bonding")) return std::nullopt;
  const auto megabits = number<std::int64_t>(first_line(folder + "/speed"));
  if (!megabits || *megabits <= 0 || *megabits >= UINT32_MAX) return std::nullopt;  // -1: unknown
  return Rate{static_cast<double>(*megabits) * 1e6};
}

// A function of SR-IOV whose card has a device of that kind ("net", "infiniband") here as well: it shares the
// card's cable, and is for a virtual machine.
bool is_spare_function(const std::string& folder, const char* kind) {
  return !names_in(folder + "/device/physfn/" + kind).empty();
}

std::string why_not(const Interface& interface, const std::string& folder,
                    const std::vector<std::string>& exclude) {
  if (interface.loopback) return "loopback";
  if (matches_any(exclude, interface.name)) return kExcluded;
  if (const char* kind = kind_of_virtual(interface.name)) return kind;
  if (!folder.empty() && exists(folder + "/master")) return "part of a bond or bridge";
  if (!folder.empty() && is_spare_function(folder, "net")) return kFunction;
  if (!interface.running) return "down";
  if (interface.addresses.empty()) return "no address";
  return {};
}

Nic nic_of(const Interface& interface, const std::vector<std::string>& exclude, const std::string& fsroot) {
  Nic nic;
  nic.name = nic.ucx_device = interface.name;
  nic.address = interface.addresses.empty() ? "" : interface.addresses.front();
  nic.up = interface.running;
  nic.mtu = interface.mtu;
  const std::string folder = sysfs_of(interface, fsroot);
  nic.why_not = why_not(interface, folder, exclude);
  if (folder.empty()) return nic;
  nic.speed = speed_of(folder);
  nic.numa = numa_of(folder + "/device");
  return nic;
}

// "400 Gb/sec (4X NDR)"; "2.5 Gb/sec (1X SDR)".
std::optional<Rate> rate_of_port(const std::string& port) {
  const auto gigabits = number<double>(first_line(port + "/rate"));
  if (!gigabits || !(*gigabits > 0) || *gigabits > 1e6) return std::nullopt;
  return Rate{*gigabits * 1e9};
}

Nic nic_of_port(const std::string& device, const std::string& port, const std::vector<Interface>& interfaces,
                const std::vector<std::string>& exclude, const std::string& fsroot) {
  const std::string folder = fsroot + "/sys/class/infiniband/" + device;
  Nic nic;
  nic.rdma = true;
  nic.name = port == "1" ? device : device + ":" + port;
  nic.ucx_device = device + ":" + port;
  const std::string state = first_line(folder + "/ports/" + port + "/state").value_or("");  // "4: ACTIVE"
  nic.up = state.find("ACTIVE") != std::string::npos && state.find("DEFER") == std::string::npos;
  nic.speed = rate_of_port(folder + "/ports/" + port);
  nic.numa = numa_of(folder + "/device");
  for (const std::string& name : names_in(folder + "/device/net"))
    for (const Interface& interface : interfaces)
      if (interface.name == name && nic.address.empty() && !interface.addresses.empty())
        nic.address = interface.addresses.front();
  if (matches_any(exclude, nic.name) || matches_any(exclude, nic.ucx_device))
    nic.why_not = kExcluded;
  else if (is_spare_function(folder, "infiniband"))
    nic.why_not = kFunction;
  else if (!nic.up)
    nic.why_not = "port not active" + (state.empty() ? "" : " (" + printable(state, 32) + ")");
  return nic;
}

}  // namespace

const char* kind_of_virtual(const std::string& interface) {
  for (const Virtual& kind : kVirtual)
    if (::fnmatch(kind.glob, interface.c_str(), 0) == 0) return kind.what;
  return nullptr;
}

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; });
}

std::vector<Nic> list_nics(const std::vector<Interface>& interfaces, const std::vector<std::string>& exclude,
                           const std::string& fsroot) {
  std::vector<Nic> nics;
  nics.reserve(interfaces.size());
  for (const Interface& interface : interfaces)
    nics.push_back(nic_of(interface, exclude, fsroot));
  const std::string infiniband = fsroot + "/sys/class/infiniband";
  for (const std::string& device : names_in(infiniband))
    for (const std::string& port : names_in(fmt::format("{}/{}/ports", infiniband, device)))
      nics.push_back(nic_of_port(device, port, interfaces, exclude, fsroot));
  return nics;
}

}  // namespace netcheck::topology
