// A machine's own findings: ports, PCIe, ways, settings; across nodes see fleet.h. Pure.
#include "judge/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "judge/hardware_parts.h"

namespace netcheck::judge {

namespace {

/// RDMA needs its buffers locked in memory: NCCL some 100 MB per process, UCX the user's own messages.
/// systemd gives a daemon 8 MiB, kernels before 5.16 64 KiB. 1 GiB is more than a set-up without large
/// messages takes.
constexpr std::uint64_t kMemlockEnough = std::uint64_t{1} << 30;

/// Below it RoCE's path MTU is 1024 bytes (InfiniBand's are 256 … 4096, and 58 of an Ethernet frame are
/// headers).
constexpr std::uint32_t kRoceMtuFor2048 = 2048 + 58;

bool is_fabric(const NetworkPort& port) {
  return port.why_not.empty();
}

bool uses_rdma(const Machine& machine) {
  return std::ranges::any_of(
      machine.ports, [](const NetworkPort& port) { return is_fabric(port) && !port.rdma_device.empty(); });
}

/// Where nothing is known of PCI, or no port is to be seen at all, nothing is known to be missing.
void parts_missing(const Machine& machine, const Expected& expected, Findings& findings) {
  const auto add = [&](const char* code, const char* what, std::size_t there, std::uint32_t wanted,
                       const char* remedy) {
    if (there < wanted)
      findings.push_back({Severity::fault, code, fmt::format("{} of {}", there, wanted),
                          fmt::format("{} {}{} {} there; the site says {}", there, what,
                                      there == 1 ? "" : "s", there == 1 ? "is" : "are", wanted),
                          remedy});
  };
  if (expected.gpus && !machine.pci.empty())
    add("gpus-missing", "GPU", machine.gpus.size(), *expected.gpus,
        "look for Xid 79 (fallen off the bus) in dmesg; then reboot, or look at power and seat of the card");
  const auto ports = static_cast<std::size_t>(std::ranges::count_if(machine.ports, is_fabric));
  if (expected.ports && !machine.ports.empty())
    add("ports-missing", "fabric port", ports, *expected.ports,
        "look whether the card is on the bus (lspci) and its driver has taken it (dmesg)");
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

/// InfiniBand Architecture Specification, annexes A16 (RoCE) and A17 (version 2, which is routed). What is
/// not up has no address, and that it is down is told already.
void gids(const Machine& machine, const Limits& limits, Findings& findings) {
  struct Kind {
    Gids gids;
    Severity severity;
    const char* what;
    const char* remedy;
  };
  constexpr Kind kKinds[] = {
      {Gids::none, Severity::fault, "no GID, without which no RDMA goes over it",
       "see that its interface is up and has an address (ip address, rdma link)"},
      {Gids::version_1, Severity::warning, "GIDs of RoCE v1 alone, which UCX and NCCL do not choose",
       "default_roce_mode of the device (cma_roce_mode), or a newer driver"},
      {Gids::link_local, Severity::note, "link-local GIDs alone, which no router forwards",
       "give its interface an IP address"}};
  for (const Kind& kind : kKinds) {
    std::vector<std::string> names;
    for (const RailLimit& rail : limits.rails) {
      const NetworkPort& port = machine.ports[rail.port];
      if (port.gids == kind.gids && port.state != PortState::down) names.push_back(port.name);
    }
    if (!names.empty())
      findings.push_back(
          {kind.severity, "roce-gid", names.front(),
           fmt::format("{} {} {}", some_of(names), names.size() == 1 ? "has" : "have", kind.what),
           kind.remedy});
  }
}

/// Only root sees these registers. Relaxed ordering: without it, what a card writes waits for what it wrote
/// before, which on processors of several dies costs up to half (NVIDIA's and AMD's tuning guides have it
/// on). PCI Express Base Specification 7.5.3.4: reads of 512 bytes are what cards begin with; 128 and 256 are
/// a slot's firmware being careful.
void orderings(const Machine& machine, const Limits& limits, Findings& findings) {
  constexpr std::uint32_t kUsualRead = 512;
  std::vector<std::string> strict, small;
  for (const RailLimit& rail : limits.rails) {
    const NetworkPort& port = machine.ports[rail.port];
    if (!port.pci) continue;
    const PciDevice& device = machine.pci[*port.pci];
    if (device.relaxed_ordering == false && !port.rdma_device.empty()) strict.push_back(port.name);
    if (device.max_read_request && *device.max_read_request < kUsualRead) small.push_back(port.name);
  }
  if (!strict.empty())
    findings.push_back(
        {Severity::warning, "pcie-ordering", strict.front(),
         fmt::format("{} may not send with relaxed ordering", some_of(strict)),
         "PCI_WR_ORDERING of mlxconfig, the firmware's setup of the slots; lspci -vv: RlxdOrd+"});
  if (!small.empty())
    findings.push_back({Severity::warning, "pcie-reads", small.front(),
                        fmt::format("{} read{} memory in pieces of less than {} bytes", some_of(small),
                                    small.size() == 1 ? "s" : "", kUsualRead),
                        "MaxReadReq in lspci -vv; the firmware's setup, or setpci CAP_EXP+8.w"});
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

std::vector<Finding> findings_of(const Machine& machine, const Limits& limits, const Expected& expected) {
  Findings findings;
  parts_missing(machine, expected, findings);
  ports_down(machine, limits, findings);
  ports_slow(machine, limits, findings);
  ports_below_rating(machine, limits, findings);
  pcie_links(machine, findings);
  add_gpu_findings(machine, limits, findings);
  gids(machine, limits, findings);
  orderings(machine, limits, findings);
  memlock(machine, findings);
  mtus(machine, limits, findings);
  detours(machine, limits, findings);
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::severity);
  return findings;
}

}  // namespace netcheck::judge
