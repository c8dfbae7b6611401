// Which devices the fabric opens, and in which order: ranks of a node are its lanes. As the probe user.
#include <algorithm>

#include "topology/interfaces.h"
#include "topology/inventory.h"

namespace netcheck::topology {
namespace {

using Lanes = std::vector<std::string>;

bool fits(const Nic& nic, const std::string& glob) {
  return matches_any({glob}, nic.name) || matches_any({glob}, nic.ucx_device);
}

// A device that the site names is taken even where its kind would not be chosen (a bridge), but not when it
// cannot work or when the site excludes it.
bool can_be_named(const Nic& nic) {
  if (nic.why_not == kExcluded || !nic.up) return false;
  return nic.rdma || !nic.address.empty();
}

std::string names_of(const Inventory& inventory) {
  std::string names;
  for (const Nic& nic : inventory.nics)
    names += (names.empty() ? "" : ", ") + nic.name;
  return names.empty() ? "none" : printable(names, 200);
}

Result<Lanes> named_lanes(const Inventory& inventory, const std::vector<std::string>& globs) {
  Lanes lanes;
  for (const std::string& glob : globs) {
    const Nic* refused = nullptr;
    bool taken = false;
    for (const Nic& nic : inventory.nics) {
      if (!fits(nic, glob)) continue;
      if (!can_be_named(nic)) {
        refused = &nic;
        continue;
      }
      taken = true;
      if (std::find(lanes.begin(), lanes.end(), nic.ucx_device) == lanes.end())
        lanes.push_back(nic.ucx_device);
    }
    if (taken) continue;
    if (refused != nullptr)
      return fail("use the device", glob, refused->name + " is " + (refused->up ? refused->why_not : "down"));
    return fail("use the device", glob, "this node has no such device",
                "its devices are: " + names_of(inventory));
  }
  return lanes;
}

// The inventory knows one address of each interface; the one our connection uses may be another.
const Nic* owner_of(const Inventory& inventory, const std::string& address) {
  if (address.empty()) return nullptr;
  const auto by_name = [&](const std::string& name) -> const Nic* {
    const auto found = std::find_if(inventory.nics.begin(), inventory.nics.end(),
                                    [&](const Nic& nic) { return !nic.rdma && nic.name == name; });
    return found == inventory.nics.end() ? nullptr : &*found;
  };
  if (const std::size_t scope = address.find('%'); scope != std::string::npos)
    return by_name(address.substr(scope + 1));  // "fe80::1%eth0"
  for (const Nic& nic : inventory.nics)
    if (!nic.rdma && nic.address == address) return &nic;
  for (const Interface& interface : list_interfaces())
    if (std::find(interface.addresses.begin(), interface.addresses.end(), address) !=
        interface.addresses.end())
      return by_name(interface.name);
  return nullptr;
}

}  // namespace

Result<Lanes> choose_lanes(const Inventory& inventory, const Wanted& wanted,
                           const std::string& local_address) {
  if (!wanted.devices.empty()) return named_lanes(inventory, wanted.devices);
  Lanes lanes;
  for (const Nic& nic : inventory.nics)
    if (nic.rdma && nic.up && nic.why_not.empty()) lanes.push_back(nic.ucx_device);
  if (!lanes.empty()) return lanes;
  const bool loopback = local_address.rfind("127.", 0) == 0 || local_address == "::1";
  const Nic* nic = nullptr;
  if (!loopback) {
    nic = owner_of(inventory, local_address);
  } else {  // nodes of a test, all on one machine
    for (const Nic& candidate : inventory.nics)
      if (candidate.why_not == "loopback") nic = &candidate;
  }
  if (nic == nullptr)
    return fail("choose a network device", local_address.empty() ? "(no address)" : local_address,
                "no interface of this node has that address", "name the devices in [fabric] devices");
  if (nic->why_not == kExcluded)
    return fail("choose a network device", nic->name, "it leads to the other nodes, but the site excludes it",
                "name another in [fabric] devices");
  return Lanes{nic->ucx_device};
}

}  // namespace netcheck::topology
