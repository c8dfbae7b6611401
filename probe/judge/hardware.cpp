// A machine's own findings: ports, PCIe, ways, settings; across nodes see fleet.h. Pure.
#include "judge/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace netcheck::judge {

namespace {

/// RDMA needs its buffers locked in memory: NCCL some 100 MB per process, UCX the user's own messages.
/// systemd gives a daemon 8 MiB, kernels before 5.16 64 KiB. 1 GiB is more than a set-up without large
/// messages takes.
constexpr std::uint64_t kMemlockEnough = std::uint64_t{1} << 30;

/// Below it RoCE's path MTU is 1024 bytes (InfiniBand's are 256 … 4096, and 58 of an Ethernet frame are
/// headers).
constexpr std::uint32_t kRoceMtuFor2048 = 2048 + 58;

using Findings = std::vector<Finding>;

/// "mlx5_0", "mlx5_0 and mlx5_1", "mlx5_0, mlx5_1 and 6 more"
std::string some_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  if (names.size() == 2) return names[0] + " and " + names[1];
  if (names.empty()) return "none";
  return fmt::format("{}, {} and {} more", names[0], names[1], names.size() - 2);
}

/// GPUs 0, 1, 2, 5 → "GPUs 0-2, 5"
std::string name_gpus(const std::vector<std::uint32_t>& gpus) {
  std::string text;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t last = i;
    while (last + 1 < gpus.size() && gpus[last + 1] == gpus[last] + 1)
      ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", gpus[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : "-", gpus[last]);
    i = last + 1;
  }
  return fmt::format("GPU{} {}", gpus.size() == 1 ? "" : "s", text);
}

bool is_fabric(const NetworkPort& port) {
  return port.why_not.empty();
}

bool uses_rdma(const Machine& machine) {
  return std::ranges::any_of(
      machine.ports, [](const NetworkPort& port) { return is_fabric(port) && !port.rdma_device.empty(); });
}

void ports_down(const Machine& machine, const Limits& limits, Findings& findings) {
  for (const RailLimit& rail : limits.rails) {
    const NetworkPort& port = machine.ports[rail.port];
    if (port.state != PortState::down) continue;
    findings.push_back({Severity::fault, "port-down", port.name,
                        fmt::format("{} is down ({}): {} of {} rail{} lost{}", port.name, port.state_text, 1,
                                    limits.rails.size(), limits.rails.size() == 1 ? "" : "s",
                                    rail.gpus.empty() ? "" : "; it serves " + name_gpus(rail.gpus)),
                        port.link_layer == "InfiniBand"
                            ? "look at cable and switch port (ibstat, iblinkinfo), and at the subnet manager"
                            : "look at cable and switch port (ethtool, ip -s link)"});
  }
}

void ports_slow(const Machine& machine, const Limits& limits, Findings& findings) {
  for (const RailLimit& rail : limits.rails) {
    const NetworkPort& port = machine.ports[rail.port];
    if (port.state == PortState::down || !port.rate || !rail.rated || !(*port.rate < *rail.rated)) continue;
    findings.push_back(
        {Severity::fault, "port-slow", port.name,
         fmt::format("{} runs at {} of {}", port.name, in_words(*port.rate), in_words(*rail.rated)),
         "reseat or replace the cable; compare the speed setting of the switch port"});
  }
}

/// None of the node's ports runs at its rating: cables or switches are made for less, which may be meant so.
void ports_below_rating(const Machine& machine, const Limits& limits, Findings& findings) {
  std::map<std::pair<double, double>, std::vector<std::string>> by_rates;  // (held to, rated)
  for (const RailLimit& rail : limits.rails) {
    const NetworkPort& port = machine.ports[rail.port];
    if (port.state != PortState::down && rail.rated && port.rated && *rail.rated < *port.rated)
      by_rates[{rail.rated->bits_per_second, port.rated->bits_per_second}].push_back(port.name);
  }
  for (const auto& [rates, names] : by_rates)
    findings.push_back(
        {Severity::note, "port-below-rating", names.front(),
         fmt::format("{} {} held to {}, as their like run; the cards could {}", some_of(names),
                     names.size() == 1 ? "is" : "are", in_words(Rate{rates.first}),
                     in_words(Rate{rates.second})),
         "nothing, where cables and switches are made for that; else see their speed setting"});
}

/// GPUs and fabric ports at or below each device.
std::vector<std::set<std::string>> what_is_behind(const Machine& machine) {
  std::vector<std::set<std::string>> behind(machine.pci.size());
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    behind[machine.gpus[i].pci].insert(fmt::format("GPU {}", i));
  for (const NetworkPort& port : machine.ports)
    if (is_fabric(port) && port.pci) behind[*port.pci].insert(port.name);
  for (std::size_t i = behind.size(); i-- > 0;)
    if (const auto& parent = machine.pci[i].parent)
      behind[*parent].insert(behind[i].begin(), behind[i].end());
  return behind;
}

std::string name_device(const Machine& machine, std::uint32_t device, const std::set<std::string>& behind) {
  const bool port = machine.pci[device].kind == PciKind::port;
  return fmt::format("{} ({}{})", machine.pci[device].address, port ? "the switch of " : "",
                     some_of({behind.begin(), behind.end()}));
}

void pcie_links(const Machine& machine, Findings& findings) {
  const auto behind = what_is_behind(machine);
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i) {
    if (behind[i].empty()) continue;
    const auto hop = link_above(machine, i);
    if (!hop || hop->device != i || !(hop->narrower || hop->slower)) continue;
    const std::string what =
        fmt::format("{} has trained at {}; both ends can {} ({} of {})", name_device(machine, i, behind[i]),
                    hop->now_text, hop->most_text, in_words(*hop->now), in_words(*hop->most));
    if (hop->narrower) {
      findings.push_back({Severity::fault, "pcie-narrow", machine.pci[i].address, what,
                          "reseat the card or its riser; look for PCIe errors in dmesg; then reboot"});
    } else if (machine.pci[i].kind == PciKind::gpu) {
      // Drivers let an idle GPU's link fall back to save power; it comes back with traffic.
      findings.push_back({Severity::note, "pcie-slow", machine.pci[i].address, what,
                          "an idle GPU may save power that way: look again while it works"});
    } else {
      findings.push_back({Severity::fault, "pcie-slow", machine.pci[i].address, what,
                          "look at the slot's speed setting in the firmware and for PCIe errors in dmesg"});
    }
  }
}

std::string names_of_ports(const Machine& machine, const std::vector<std::uint32_t>& ports) {
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const std::uint32_t port : ports)
    names.push_back(machine.ports[port].name);
  return some_of(names);
}

/// The nearest RDMA ports that the site keeps away, where they are nearer to `gpu` than `distance`.
std::vector<std::uint32_t> excluded_nearer(const Machine& machine, std::uint32_t gpu, Distance distance) {
  std::vector<std::uint32_t> nearer;
  for (std::uint32_t i = 0; i < machine.ports.size(); ++i) {
    const NetworkPort& port = machine.ports[i];
    const bool by_site =
        port.why_not == "excluded by the site" || port.why_not == "not among the site's devices";
    if (!by_site || !port.pci || port.rdma_device.empty() || port.state == PortState::down) continue;
    const Distance own = distance_between(machine, machine.gpus[gpu].pci, *port.pci);
    if (own > distance || (own == distance && nearer.empty())) continue;
    if (own < distance) nearer.clear();
    distance = own;
    nearer.push_back(i);
  }
  return nearer;
}

/// Why a GPU's traffic goes far: the same of several GPUs is told once.
struct FarGroup {
  Severity severity = Severity::note;
  std::string code, rest, remedy;
  std::vector<std::uint32_t> gpus;
};

FarGroup why_far(const Machine& machine, std::uint32_t gpu) {
  const Nearest built = nearest_ports(machine, gpu, false), now = nearest_ports(machine, gpu, true);
  if (now.ports.empty() || now.distance == Distance::unknown || now.distance < Distance::node) return {};
  const std::string way =
      fmt::format("to {} over {}", names_of_ports(machine, now.ports), name_of(now.distance));
  if (built.distance < now.distance)
    return {Severity::warning, "gpu-far",
            fmt::format("{}; nearer, but down: {} ({})", way, names_of_ports(machine, built.ports),
                        name_of(built.distance)),
            "see what is said of the ports that are down"};
  if (const auto nearer = excluded_nearer(machine, gpu, now.distance); !nearer.empty())
    return {Severity::warning, "gpu-far",
            fmt::format("{}; nearer, but excluded by the site: {}", way, names_of_ports(machine, nearer)),
            "[fabric] devices and exclude in netcheck.toml"};
  if (now.distance == Distance::sys)
    return {Severity::note, "gpu-remote", way + ": their sockets have no fabric port",
            "where a slot is free there, move a card"};
  return {};
}

void gpus_far(const Machine& machine, const Limits& limits, Findings& findings) {
  std::vector<FarGroup> groups;
  for (const std::uint32_t gpu : limits.gpus) {
    FarGroup why = why_far(machine, gpu);
    if (why.code.empty()) continue;
    auto same = std::ranges::find(groups, why.rest, &FarGroup::rest);
    if (same == groups.end()) same = groups.insert(groups.end(), std::move(why));
    same->gpus.push_back(gpu);
  }
  for (const FarGroup& group : groups) {
    const std::string name = name_gpus(group.gpus);
    findings.push_back({group.severity, group.code, name,
                        fmt::format("{} {} {}", name, group.gpus.size() == 1 ? "goes" : "go", group.rest),
                        group.remedy});
  }
}

void gpus_without_driver(const Machine& machine, Findings& findings) {
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i) {
    const PciDevice& device = machine.pci[machine.gpus[i].pci];
    if (machine.gpus[i].known_to_driver != false) continue;
    findings.push_back(
        {Severity::fault, "gpu-lost", fmt::format("GPU {}", i),
         fmt::format("{} is on the bus as GPU {}, and its driver does not know it", device.address, i),
         "look for Xid errors in dmesg; then reset or replace it"});
  }
}

void nvlinks(const Machine& machine, const Limits& limits, Findings& findings) {
  if (!machine.nvlinks_known || limits.gpus.size() < 2) return;
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_count;
  for (const std::uint32_t gpu : limits.gpus)
    by_count[nvlinks_of(machine, gpu).count].push_back(gpu);
  const auto usual =
      std::ranges::max_element(by_count, {}, [](const auto& entry) { return entry.second.size(); });
  for (const auto& [count, gpus] : by_count) {
    if (count == usual->first) continue;
    if (count > usual->first && gpus.size() == usual->second.size()) continue;  // told from the other side
    findings.push_back(
        {count < usual->first ? Severity::fault : Severity::note, "nvlink-uneven", name_gpus(gpus),
         fmt::format("{} {} {} NVLink{}, the other{} {}", name_gpus(gpus), gpus.size() == 1 ? "has" : "have",
                     count, count == 1 ? "" : "s",
                     usual->second.size() == 1 ? "" : fmt::format(" {}", usual->second.size()), usual->first),
         "nvidia-smi nvlink -s; look for Xid 74 in dmesg and at the fabric manager"});
  }
  if (usual->first > 0) return;
  const std::string& model = machine.gpus[limits.gpus.front()].model;
  if (model.find("SXM") == std::string::npos && model.find("HGX") == std::string::npos) return;
  findings.push_back(
      {Severity::fault, "nvlink-missing", name_gpus(limits.gpus),
       fmt::format("{} ({}) have no NVLink: traffic inside the node crosses PCIe", name_gpus(limits.gpus),
                   model),
       "look at the fabric manager (systemctl status nvidia-fabricmanager) and nvidia-smi topo -m"});
}

void memlock(const Machine& machine, Findings& findings) {
  if (!machine.memlock_bytes || *machine.memlock_bytes >= kMemlockEnough || !uses_rdma(machine)) return;
  findings.push_back(
      {Severity::warning, "memlock", "RLIMIT_MEMLOCK",
       fmt::format("this process may lock {} in memory: RDMA registers its buffers there, and fails",
                   format_bytes(*machine.memlock_bytes)),
       "for jobs: LimitMEMLOCK=infinity in slurmd's unit, PropagateResourceLimitsExcept=MEMLOCK in "
       "slurm.conf"});
}

void mtus(const Machine& machine, const Limits& limits, Findings& findings) {
  std::map<std::uint32_t, std::vector<std::string>> by_mtu;
  std::vector<std::string> small;
  for (const RailLimit& rail : limits.rails) {
    const NetworkPort& port = machine.ports[rail.port];
    if (!port.mtu) continue;
    by_mtu[*port.mtu].push_back(port.name);
    if (!port.rdma_device.empty() && port.link_layer == "Ethernet" && *port.mtu < kRoceMtuFor2048)
      small.push_back(port.name);
  }
  if (by_mtu.size() > 1) {
    std::string all;
    for (const auto& [mtu, names] : by_mtu)
      all += fmt::format("{}{} on {}", all.empty() ? "" : ", ", mtu, some_of(names));
    findings.push_back({Severity::warning, "mtu-uneven", by_mtu.begin()->second.front(),
                        "rails differ in their MTU: " + all, "ip link set dev NAME mtu SIZE, on all alike"});
  } else if (!small.empty()) {
    findings.push_back(
        {Severity::note, "mtu-small", small.front(),
         fmt::format("{} carr{} RoCE with an MTU of {}: its packets then hold 1024 bytes, of 4096",
                     some_of(small), small.size() == 1 ? "ies" : "y", by_mtu.begin()->first),
         "an MTU of 9000 here and on the switches"});
  }
}

/// NCCL's manual, Troubleshooting, "PCI Access Control Services": an IOMMU that translates, and ACS at a
/// switch, send what goes between a GPU and a NIC up to the CPU.
void detours(const Machine& machine, const Limits& limits, Findings& findings) {
  if (limits.gpus.empty()) return;
  const auto behind = what_is_behind(machine);
  std::set<std::string> translated;
  std::vector<std::string> redirecting;
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i) {
    const PciDevice& device = machine.pci[i];
    const bool leaf = device.kind == PciKind::gpu || device.kind == PciKind::nic;
    if (leaf && device.translated == true) translated.insert(behind[i].begin(), behind[i].end());
    const bool in_switch =
        device.facing == Facing::down && device.parent && machine.pci[*device.parent].kind == PciKind::port;
    if (in_switch && device.redirects == true && !behind[i].empty()) redirecting.push_back(device.address);
  }
  if (!translated.empty())
    findings.push_back(
        {Severity::warning, "iommu", "IOMMU",
         fmt::format("the IOMMU translates what {} send: between GPU and NIC it goes by the CPU",
                     some_of({translated.begin(), translated.end()})),
         "iommu=pt on the kernel's command line, or no IOMMU (the firmware's setup)"});
  if (!redirecting.empty())
    findings.push_back(
        {Severity::warning, "acs", redirecting.front(),
         fmt::format("ACS is on at {} port{} of switches ({}): what goes between GPU and NIC below "
                     "them goes by the CPU",
                     redirecting.size(), redirecting.size() == 1 ? "" : "s", some_of(redirecting)),
         "off in the firmware's setup, or setpci as in NCCL's manual (Troubleshooting)"});
}

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::fault:
      return "fault";
  }
  return "";
}

std::vector<Finding> findings_of(const Machine& machine, const Limits& limits) {
  Findings findings;
  ports_down(machine, limits, findings);
  ports_slow(machine, limits, findings);
  ports_below_rating(machine, limits, findings);
  pcie_links(machine, findings);
  gpus_far(machine, limits, findings);
  gpus_without_driver(machine, findings);
  nvlinks(machine, limits, findings);
  memlock(machine, findings);
  mtus(machine, limits, findings);
  detours(machine, limits, findings);
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::severity);
  return findings;
}

}  // namespace netcheck::judge
