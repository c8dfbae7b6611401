// What is wrong with a machine's GPUs: far from their ports, lost, held down, without NVLinks. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "judge/hardware_parts.h"

namespace netcheck::judge {

namespace {

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

void add_gpus_far(const Machine& machine, const Limits& limits, Findings& findings) {
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

void add_gpus_without_driver(const Machine& machine, Findings& findings) {
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i) {
    const PciDevice& device = machine.pci[machine.gpus[i].pci];
    if (machine.gpus[i].known_to_driver != false) continue;
    findings.push_back(
        {Severity::fault, "gpu-lost", fmt::format("GPU {}", i),
         fmt::format("{} is on the bus as GPU {}, and its driver does not know it", device.address, i),
         "look for Xid errors in dmesg; then reset or replace it"});
  }
}

/// What holds a GPU down, told once of all that it holds down.
void add_gpus_capped(const Machine& machine, const Limits& limits, Findings& findings) {
  std::map<std::string, std::vector<std::uint32_t>> slowed;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> limited;  // (may, delivered)
  for (const std::uint32_t gpu : limits.gpus) {
    const Gpu& one = machine.gpus[gpu];
    if (!one.slowed.empty()) slowed[one.slowed].push_back(gpu);
    if (one.power_limit && one.power_default && *one.power_limit < *one.power_default)
      limited[{*one.power_limit, *one.power_default}].push_back(gpu);
  }
  for (const auto& [why, gpus] : slowed)
    findings.push_back({Severity::warning, "gpu-capped", name_gpus(gpus),
                        fmt::format("the clocks of {} are held down: {}", name_gpus(gpus), why),
                        "nvidia-smi -q -d PERFORMANCE; look at power supplies, cables, cooling"});
  for (const auto& [watts, gpus] : limited) {
    const bool all = gpus.size() == limits.gpus.size();  // then it is meant so
    findings.push_back({all ? Severity::note : Severity::warning, "gpu-capped", name_gpus(gpus),
                        fmt::format("{} may take {} W of {}{}", name_gpus(gpus), watts.first, watts.second,
                                    all ? "" : "; the others of this node may take more"),
                        "nvidia-smi -pl, on all alike"});
  }
}

/// Names under which NVIDIA sells the boards that only come with NVLinks. "NVIDIA H100 80GB HBM3" is one, its
/// PCIe and NVL cards say so.
bool is_made_for_nvlink(const std::string& model) {
  const auto has = [&](const char* word) { return model.find(word) != std::string::npos; };
  if (has("SXM") || has("HGX")) return true;
  if (has("PCIe") || has("NVL")) return false;
  return std::ranges::any_of(std::array{"H100", "H200", "H800", "H20", "B200", "B300"}, has);
}

void add_nvlinks(const Machine& machine, const Limits& limits, Findings& findings) {
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
  if (!is_made_for_nvlink(model)) return;
  findings.push_back(
      {Severity::fault, "nvlink-missing", name_gpus(limits.gpus),
       fmt::format("{} ({}) have no NVLink: traffic inside the node crosses PCIe", name_gpus(limits.gpus),
                   model),
       "look at the fabric manager (systemctl status nvidia-fabricmanager) and nvidia-smi topo -m"});
}

}  // namespace

void add_gpu_findings(const Machine& machine, const Limits& limits, Findings& findings) {
  add_gpus_far(machine, limits, findings);
  add_gpus_without_driver(machine, findings);
  add_gpus_capped(machine, limits, findings);
  add_nvlinks(machine, limits, findings);
}

std::string some_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  if (names.size() == 2) return names[0] + " and " + names[1];
  if (names.empty()) return "none";
  return fmt::format("{}, {} and {} more", names[0], names[1], names.size() - 2);
}

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

}  // namespace netcheck::judge
