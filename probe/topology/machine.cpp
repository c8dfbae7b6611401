// A node, live or from a recorded /sys and /proc. As the probe user or whoever runs `netcheck topo`.
#include "topology/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>

#include "topology/interfaces.h"
#include "topology/inventory.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

std::optional<std::uint64_t> memlock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return std::nullopt;
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimitedMemory : std::uint64_t{limit.rlim_cur};
}

// What a kernel says without a file for it, hwloc-gather-topology writes into one: "HostName: n3".
std::string gathered(const std::string& fsroot, std::string_view key) {
  std::ifstream file(fsroot + "/proc/hwloc-nofile-info");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) return printable(line.substr(key.size()), 64);
  return {};
}

std::string node_name(const std::string& fsroot) {
  if (fsroot.empty()) {
    utsname name{};
    return ::uname(&name) == 0 ? printable(name.nodename, 64) : std::string();
  }
  const auto name = first_line(fsroot + "/proc/sys/kernel/hostname");
  return name ? printable(*name, 64) : gathered(fsroot, "HostName: ");
}

std::string kernel_release(const std::string& fsroot) {
  if (fsroot.empty()) {
    utsname name{};
    return ::uname(&name) == 0 ? printable(name.release, 64) : std::string();
  }
  const auto release = first_line(fsroot + "/proc/sys/kernel/osrelease");
  return release ? printable(*release, 64) : gathered(fsroot, "OSRelease: ");
}

// hwloc would take the processors that it runs on where the folder has none.
Result<void> check_root(const std::string& fsroot) {
  std::error_code error;
  if (!std::filesystem::is_directory(fsroot, error))
    return fail("read the machine in", fsroot, error ? error.message() : "it is no folder");
  if (!std::filesystem::is_directory(fsroot + "/sys/devices/system/cpu", error))
    return fail("read the machine in", fsroot, "there is no sys/devices/system/cpu in it",
                "what is wanted is a node's /sys and /proc, as hwloc-gather-topology records them");
  return {};
}

}  // namespace

Result<Machine> read_machine(const std::string& fsroot) {
  const bool live = fsroot.empty();
  if (!live) {
    if (auto checked = check_root(fsroot); !checked) return tl::unexpected(checked.error());
  }
  auto machine = tree_of_system(fsroot);
  if (!machine) return machine;
  add_pci_attributes(*machine, fsroot);
  add_gpu_names(*machine, fsroot);
  add_driver_versions(*machine, fsroot);
  add_ports(*machine, fsroot, live);
  machine->node = node_name(fsroot);
  machine->kernel = kernel_release(fsroot);
  machine->product = machine_of(live ? "/" : fsroot);
  machine->source = live ? "this machine" : fsroot;
  if (live) machine->memlock_bytes = memlock_limit();
  if (machine->pci.empty())
    machine->notes.emplace_back(
        "no GPU and no network card is to be seen on PCI: speeds and distances are not known");
  return machine;
}

}  // namespace netcheck::topology
