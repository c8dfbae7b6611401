// The node's inventory: NICs, class of hardware, counts of sockets, NUMA nodes, cores and GPUs. As the probe
// user, within the check's start: 10 ms, most of them hwloc's.
#include "topology/inventory.h"

#include <hwloc.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "topology/interfaces.h"
#include "topology/machine.h"

namespace netcheck::topology {
namespace {

namespace fs = std::filesystem;

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { ::hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, FreeTopology>;

// hwloc's plugins (OpenCL, CUDA, NVML, GL) initialise drivers, which takes seconds and may hang; none is
// needed to count cores. They are found through this variable alone.
void keep_plugins_out() {
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
}

std::uint32_t count_of(const Topology& topology, hwloc_obj_type_t type) {
  const int count = ::hwloc_get_nbobjs_by_type(topology.get(), type);
  return count > 0 ? static_cast<std::uint32_t>(count) : 0;
}

void count_cores(Inventory& inventory) {
  keep_plugins_out();
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) return;
  const Topology topology(raw);
  ::hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  ::hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  ::hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // The node's cores, not those that slurmd's own cgroup leaves to us.
  ::hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (::hwloc_topology_load(raw) != 0) return;
  inventory.sockets = count_of(topology, HWLOC_OBJ_PACKAGE);
  inventory.numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE);
  inventory.cores = count_of(topology, HWLOC_OBJ_CORE);
}

// "0x10de" → 0x10de; "0x030200" (class, subclass, interface) → 0x030200.
std::uint32_t id_in(const std::string& path) {
  const std::string text = first_line(path).value_or("");
  return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 16));
}

std::uint32_t count_gpus(const std::string& fsroot) {
  std::uint32_t count = 0;
  std::error_code error;
  for (fs::directory_iterator at(fsroot + "/sys/bus/pci/devices", error), end; !error && at != end;
       at.increment(error)) {
    const std::string device = at->path().string();
    const auto vendor = static_cast<std::uint16_t>(id_in(device + "/vendor"));
    if (fs::exists(device + "/physfn", error)) continue;  // a part of a GPU, for a virtual machine
    if (is_gpu(vendor, static_cast<std::uint16_t>(id_in(device + "/class") >> 8))) ++count;
  }
  return count;
}

// Names that mean that nobody filled the field in.
bool says_nothing(const std::string& product) {
  return product.empty() || product == "To Be Filled By O.E.M." || product == "Default string" ||
         product == "System Product Name" || product == "Not Specified" || product == "None";
}

std::string cpu_model(const std::string& fsroot) {
  std::ifstream file(fsroot + "/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t start = line.find_first_not_of(": \t", std::string("model name").size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return {};
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t") + 1);
  return text;
}

}  // namespace

std::string machine_of(const std::string& fsroot) {
  const std::string product = trimmed(first_line(fsroot + "/sys/class/dmi/id/product_name").value_or(""));
  return printable(says_nothing(product) ? cpu_model(fsroot) : product, 128);
}

std::string gpu_model_of(const std::string& fsroot) {
  std::vector<std::string> cards;
  std::error_code error;
  for (fs::directory_iterator at(fsroot + "/proc/driver/nvidia/gpus", error), end; !error && at != end;
       at.increment(error))
    cards.push_back(at->path().string());
  std::ranges::sort(cards);
  for (const std::string& card : cards) {
    std::ifstream file(card + "/information");
    for (std::string line; std::getline(file, line);) {
      constexpr std::string_view kModel = "Model:";
      if (line.rfind(kModel, 0) != 0) continue;
      const std::size_t start = line.find_first_not_of(" \t", kModel.size());
      return start == std::string::npos ? "" : printable(trimmed(line.substr(start)), 128);
    }
  }
  return {};
}

Inventory take_inventory(const std::string& node, const Wanted& wanted, const std::string& fsroot) {
  Inventory inventory;
  inventory.node = node;
  inventory.version = NETCHECK_VERSION;
  if (utsname name{}; ::uname(&name) == 0) inventory.kernel = printable(name.release, 64);
  count_cores(inventory);
  inventory.gpus = count_gpus(fsroot);
  inventory.machine = machine_of(fsroot);
  inventory.nics = list_nics(list_interfaces(), wanted.exclude, fsroot);
  return inventory;
}

}  // namespace netcheck::topology
