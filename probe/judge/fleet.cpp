// Traits counted by value, key by key. Pure.
#include "judge/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "contract/job.h"
#include "contract/wire.h"

namespace netcheck::judge {

namespace {

constexpr std::size_t kMaxTraits = 64;      ///< there are 14
constexpr std::size_t kMaxWordBytes = 255;  ///< as in contract's machines

/// How many of each: "8 × 400 Gb/s", "7 × 400 Gb/s + 1 × 200 Gb/s", the most frequent first.
std::string tally(const std::vector<std::string>& values) {
  std::map<std::string, std::size_t> times;
  for (const std::string& value : values)
    ++times[value];
  std::vector<std::pair<std::string, std::size_t>> sorted(times.begin(), times.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& entry) { return entry.second; });
  std::string text;
  for (const auto& [value, count] : sorted)
    text += fmt::format("{}{} × {}", text.empty() ? "" : " + ", count, value);
  return text;
}

class Traits {
 public:
  Traits(const Machine& machine, const Limits& limits) : machine_(machine), limits_(limits) {}

  std::vector<Trait> all() {
    if (!machine_.pci.empty() || !machine_.gpus.empty()) add_count("GPUs", machine_.gpus.size());
    add_tally("GPU model", machine_.gpus, [](const Gpu& gpu) { return gpu.model; });
    add_count("fabric ports", limits_.rails.size());
    add_count("fabric ports up", ports_up());
    add_rails();
    add_widths();
    add_nvlinks();
    if (!machine_.numa.empty()) add_count("NUMA nodes", machine_.numa.size());
    add_cores();
    add_versions();
    return std::move(traits_);
  }

 private:
  void add(std::string key, std::string value) {
    traits_.push_back({std::move(key), std::move(value), false});
  }
  void add_count(std::string key, std::size_t count) {
    traits_.push_back({std::move(key), std::to_string(count), true});
  }

  template <typename List, typename Say>
  void add_tally(const char* key, const List& list, Say say) {
    std::vector<std::string> values;
    for (const auto& one : list)
      if (std::string value = say(one); !value.empty()) values.push_back(std::move(value));
    if (!values.empty()) add(key, tally(values));
  }

  [[nodiscard]] std::size_t ports_up() const {
    return static_cast<std::size_t>(std::ranges::count_if(limits_.rails, [&](const RailLimit& rail) {
      return machine_.ports[rail.port].state != PortState::down;
    }));
  }

  void add_rails() {
    add_tally("rails of", limits_.rails, [&](const RailLimit& rail) {
      const NetworkPort& port = machine_.ports[rail.port];
      return port.rate ? in_words(*port.rate) : std::string();
    });
    add_tally("MTU", limits_.rails, [&](const RailLimit& rail) {
      const auto& mtu = machine_.ports[rail.port].mtu;
      return mtu ? std::to_string(*mtu) : std::string();
    });
  }

  // Lanes alone: the generation of an idle GPU's link comes and goes.
  void add_widths() {
    std::set<std::uint32_t> devices;
    for (const Gpu& gpu : machine_.gpus)
      devices.insert(gpu.pci);
    for (const RailLimit& rail : limits_.rails)
      if (const auto pci = pci_of(machine_, machine_.ports[rail.port])) devices.insert(*pci);
    add_tally("PCIe links of", devices, [&](std::uint32_t device) {
      const auto& now = machine_.pci[machine_.pci[device].physical.value_or(device)].link.now;
      return now ? fmt::format("x{}", now->lanes) : std::string();
    });
  }

  void add_nvlinks() {
    if (!machine_.nvlinks_known || machine_.gpus.empty()) return;
    std::vector<std::string> counts;
    for (std::uint32_t gpu = 0; gpu < machine_.gpus.size(); ++gpu)
      counts.push_back(std::to_string(nvlinks_of(machine_, gpu).count));
    add("NVLinks of GPUs", tally(counts));
  }

  void add_cores() {
    std::uint32_t cores = 0;
    for (const NumaNode& node : machine_.numa)
      cores += node.cores;
    if (cores > 0) add_count("cores", cores);
  }

  void add_versions() {
    if (!machine_.kernel.empty()) add("kernel", machine_.kernel);
    std::set<std::string> gpus, nics, firmware;
    for (const Gpu& gpu : machine_.gpus)
      gpus.insert(version_of(gpu.pci));
    for (const RailLimit& rail : limits_.rails) {
      const NetworkPort& port = machine_.ports[rail.port];
      if (const auto pci = pci_of(machine_, port)) nics.insert(version_of(*pci));
      firmware.insert(port.firmware);
    }
    add_set("GPU driver", gpus);
    add_set("NIC driver", nics);
    add_set("firmware of rails", firmware);
  }

  [[nodiscard]] std::string version_of(std::uint32_t device) const {
    const auto found =
        std::ranges::find(machine_.drivers, machine_.pci[device].driver, &DriverVersion::driver);
    return found == machine_.drivers.end() ? "" : found->version;
  }

  /// Which there are, not how many of each: a card less is another trait.
  void add_set(const char* key, const std::set<std::string>& values) {
    std::string text;
    for (const std::string& value : values)
      if (!value.empty()) text += (text.empty() ? "" : " + ") + value;
    if (!text.empty()) add(key, text);
  }

  const Machine& machine_;
  const Limits& limits_;
  std::vector<Trait> traits_;
};

using ByValue = std::map<std::string, std::vector<std::uint32_t>>;

std::string names_of(const std::vector<NodeTraits>& nodes, const std::vector<std::uint32_t>& which) {
  std::vector<std::string> names;
  names.reserve(which.size());
  for (const std::uint32_t node : which)
    names.push_back(nodes[node].node);
  return fold_node_list(names);
}

std::string with_key(const Trait& trait, const std::string& value) {
  return trait.counted ? value + " " + trait.key : trait.key + " " + value;
}

void add_oddities(const std::vector<NodeTraits>& nodes, const Trait& trait, const ByValue& by_value,
                  std::vector<Oddity>& oddities) {
  if (by_value.size() < 2) return;
  std::size_t all = 0;
  for (const auto& [value, which] : by_value)
    all += which.size();
  const auto usual =
      std::ranges::max_element(by_value, {}, [](const auto& entry) { return entry.second.size(); });
  if (usual->second.size() * 2 <= all) {
    std::string text;
    for (const auto& [value, which] : by_value)
      text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", value, names_of(nodes, which));
    oddities.push_back(
        {trait.key, {}, {}, {}, printable(fmt::format("{} differ: {}", trait.key, text), 512)});
    return;
  }
  for (const auto& [value, which] : by_value) {
    if (value == usual->first) continue;
    oddities.push_back({trait.key, which, value, usual->first,
                        fmt::format("{} {} {}, the other {} nodes {}", names_of(nodes, which),
                                    which.size() == 1 ? "has" : "have", with_key(trait, value),
                                    usual->second.size(), usual->first)});
  }
}

const char* name_of(Gids gids) {
  switch (gids) {
    case Gids::none:
      return "none";
    case Gids::version_1:
      return "RoCE v1";
    case Gids::link_local:
      return "link-local";
    case Gids::usable:
      return "of IP addresses";
    case Gids::unknown:
      break;
  }
  return "";
}

/// Everything of a machine that two nodes of a kind have alike, by name.
std::vector<std::pair<std::string, std::string>> details(const Machine& machine) {
  std::vector<std::pair<std::string, std::string>> list;
  list.emplace_back("product", machine.product);
  const Limits limits = limits_of(machine);
  for (const Trait& trait : traits_of(machine, limits).traits)
    list.emplace_back(trait.key, trait.value);
  for (const LibraryVersion& library : machine.libraries)
    list.emplace_back(library.library + ": version", library.version);
  if (limits.nominal) list.emplace_back("limit", in_words(*limits.nominal));
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const std::string name = fmt::format("GPU {}", i);
    list.emplace_back(name + ": address", machine.pci[machine.gpus[i].pci].address);
    list.emplace_back(name + ": model", machine.gpus[i].model);
    if (machine.gpus[i].mig) list.emplace_back(name + ": MIG", *machine.gpus[i].mig ? "on" : "off");
    if (!machine.gpus[i].slowed.empty()) list.emplace_back(name + ": held down", machine.gpus[i].slowed);
    if (const auto& watts = machine.gpus[i].power_limit)
      list.emplace_back(name + ": power limit", fmt::format("{} W", *watts));
  }
  for (const NetworkPort& port : machine.ports) {
    if (port.virtual_function && !port.why_not.empty()) continue;
    if (port.pci) list.emplace_back(port.name + ": address", machine.pci[*port.pci].address);
    if (!port.state_text.empty()) list.emplace_back(port.name + ": state", port.state_text);
    if (port.rate) list.emplace_back(port.name + ": rate", in_words(*port.rate));
    if (port.rated) list.emplace_back(port.name + ": rated", in_words(*port.rated));
    if (!port.firmware.empty()) list.emplace_back(port.name + ": firmware", port.firmware);
    if (port.gids != Gids::unknown) list.emplace_back(port.name + ": GIDs", name_of(port.gids));
    if (port.mtu) list.emplace_back(port.name + ": MTU", std::to_string(*port.mtu));
    list.emplace_back(port.name + ": fabric", port.why_not.empty() ? "yes" : "no, " + port.why_not);
  }
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i) {
    const PciDevice& device = machine.pci[i];
    if (device.physical) continue;
    if (const auto hop = link_above(machine, i))
      list.emplace_back(device.address + ": link", hop->now ? hop->now_text : hop->most_text);
    if (!device.driver.empty()) list.emplace_back(device.address + ": driver", device.driver);
    if (device.relaxed_ordering)
      list.emplace_back(device.address + ": relaxed ordering", *device.relaxed_ordering ? "yes" : "no");
    if (device.max_read_request)
      list.emplace_back(device.address + ": read request", format_bytes(*device.max_read_request));
  }
  return list;
}

}  // namespace

Json to_json(const NodeTraits& node) {
  Json traits = Json::array();
  for (const Trait& trait : node.traits)
    traits.push_back({{"key", trait.key}, {"value", trait.value}, {"counted", trait.counted}});
  return {{"node", node.node}, {"product", node.product}, {"traits", std::move(traits)}};
}

NodeTraits traits_from_json(const Json& value) {
  const Fields fields(value, "traits");
  NodeTraits node{fields.text("node", kMaxWordBytes), fields.text("product", kMaxWordBytes), {}};
  for (const Json& one : fields.array("traits", kMaxTraits)) {
    const Fields trait(one, "trait");
    node.traits.push_back(
        {trait.text("key", kMaxWordBytes), trait.text("value", kMaxWordBytes), trait.flag("counted")});
  }
  return node;
}

NodeTraits traits_of(const Machine& machine, const Limits& limits) {
  return {machine.node, machine.product, Traits(machine, limits).all()};
}

std::vector<Oddity> odd_ones(const std::vector<NodeTraits>& nodes) {
  std::vector<std::string> keys;
  std::map<std::string, Trait> traits;                           // by key, any node's
  std::map<std::string, std::map<std::string, ByValue>> by_key;  // key → class → value → nodes
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    for (const Trait& trait : nodes[i].traits) {
      if (traits.try_emplace(trait.key, trait).second) keys.push_back(trait.key);
      ByValue& by_value = by_key[trait.key][nodes[i].product];
      const auto told = [i](const auto& entry) { return !entry.second.empty() && entry.second.back() == i; };
      if (std::ranges::none_of(by_value, told)) by_value[trait.value].push_back(i);
    }
  std::vector<Oddity> oddities;
  for (const std::string& key : keys)
    for (const auto& [product, by_value] : by_key[key])
      add_oddities(nodes, traits[key], by_value, oddities);
  return oddities;
}

std::optional<Flaw> flaw_of(std::string_view trait) {
  constexpr std::array<std::pair<std::string_view, Flaw>, 14> kKinds = {
      {{"GPUs", Flaw::odd_gpus},
       {"GPU model", Flaw::odd_gpus},
       {"fabric ports", Flaw::odd_ports},
       {"fabric ports up", Flaw::odd_ports},
       {"rails of", Flaw::odd_rate},
       {"MTU", Flaw::odd_mtu},
       {"PCIe links of", Flaw::odd_pcie},
       {"NVLinks of GPUs", Flaw::odd_nvlink},
       {"kernel", Flaw::odd_driver},
       {"GPU driver", Flaw::odd_driver},
       {"NIC driver", Flaw::odd_driver},
       {"firmware of rails", Flaw::odd_driver},
       {"NUMA nodes", Flaw::odd_cpu},
       {"cores", Flaw::odd_cpu}}};
  for (const auto& [key, flaw] : kKinds)
    if (key == trait) return flaw;
  return std::nullopt;
}

std::vector<Difference> differences(const Machine& one, const Machine& other) {
  const auto ours = details(one), theirs = details(other);
  const std::map<std::string, std::string> all_theirs(theirs.begin(), theirs.end());
  const std::map<std::string, std::string> all_ours(ours.begin(), ours.end());
  std::vector<Difference> list;
  for (const auto& [what, value] : ours) {
    const auto found = all_theirs.find(what);
    const std::string there = found == all_theirs.end() ? "-" : found->second;
    if (there != value) list.push_back({what, value, there});
  }
  for (const auto& [what, value] : theirs)
    if (!all_ours.contains(what)) list.push_back({what, "-", value});
  return list;
}

}  // namespace netcheck::judge
