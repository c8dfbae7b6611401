// Rails and their ways, filled evenly until something is full. Pure.
#include "measure/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace netcheck {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
/// Rates that differ by less than this part are one rate: they come from products of rounded numbers.
constexpr double kSameRate = 1e-6;

/// A link that several rails may share, and how much of each rail's traffic crosses it.
struct Shared {
  PciHop hop;
  std::string whose;            ///< "GPU 3's path", "mlx5_3's path"
  std::vector<double> portion;  ///< by rail
};

using SharedLinks = std::map<std::uint32_t, Shared>;  // by the link's lower end

void cross(SharedLinks& links, const PciHop& hop, std::size_t rails, std::size_t rail, double portion,
           const std::string& whose) {
  Shared& link = links[hop.device];
  if (link.portion.empty()) {
    link.hop = hop;
    link.whose = whose;
    link.portion.assign(rails, 0);
  }
  link.portion[rail] += portion;
}

/// All rails' rates rise together; a rail stops at its own capacity, or when a link on its way is full. That
/// is how flows share links (max-min fairness). `narrow`: by rail the link that stopped it.
std::vector<double> fill(const std::vector<double>& capacity, const std::vector<const Shared*>& links,
                         const std::vector<double>& room, std::vector<const Shared*>& narrow) {
  std::vector<double> rate(capacity.size(), 0), left = room;
  std::vector<bool> stopped(capacity.size(), false);
  narrow.assign(capacity.size(), nullptr);
  while (std::ranges::find(stopped, false) != stopped.end()) {
    double step = kUnlimited;
    for (std::size_t i = 0; i < rate.size(); ++i)
      if (!stopped[i]) step = std::min(step, capacity[i] - rate[i]);
    std::vector<double> load(links.size(), 0);
    for (std::size_t l = 0; l < links.size(); ++l) {
      for (std::size_t i = 0; i < rate.size(); ++i)
        if (!stopped[i]) load[l] += links[l]->portion[i];
      if (load[l] > 0) step = std::min(step, left[l] / load[l]);
    }
    for (std::size_t i = 0; i < rate.size(); ++i)
      if (!stopped[i]) rate[i] += step;
    for (std::size_t l = 0; l < links.size(); ++l) {
      left[l] -= step * load[l];
      if (load[l] == 0 || left[l] > kSameRate * room[l]) continue;
      for (std::size_t i = 0; i < rate.size(); ++i) {
        if (stopped[i] || links[l]->portion[i] == 0) continue;
        stopped[i] = true;
        if (rate[i] < capacity[i] * (1 - kSameRate)) narrow[i] = links[l];
      }
    }
    for (std::size_t i = 0; i < rate.size(); ++i)
      if (rate[i] >= capacity[i] * (1 - kSameRate)) stopped[i] = true;
  }
  return rate;
}

/// The functions that carry a port's bytes: its own; of a bond each member's, an equal part of them.
std::vector<std::uint32_t> cards_of(const Machine& machine, const NetworkPort& port) {
  std::vector<std::uint32_t> cards;
  for (const std::string& member : port.members)
    for (const NetworkPort& other : machine.ports)
      if (other.interface == member && other.pci) cards.push_back(*other.pci);
  if (cards.empty() && port.pci) cards.push_back(*port.pci);
  return cards;
}

/// The rails of the given GPUs, each with the GPUs that it serves. `only_up`: as things are at present.
std::vector<RailLimit> rails_of(const Machine& machine, const std::vector<std::uint32_t>& gpus,
                                bool only_up) {
  std::map<std::uint32_t, RailLimit> rails;
  for (const std::uint32_t gpu : gpus)
    for (const std::uint32_t port : nearest_ports(machine, gpu, only_up).ports) {
      rails[port].port = port;
      rails[port].gpus.push_back(gpu);
    }
  if (machine.gpus.empty() || gpus.empty())
    for (std::uint32_t i = 0; i < machine.ports.size(); ++i)
      if (machine.ports[i].why_not.empty() && !(only_up && machine.ports[i].state == PortState::down))
        rails[i].port = i;
  std::vector<RailLimit> list;
  list.reserve(rails.size());
  for (auto& [port, rail] : rails)
    list.push_back(std::move(rail));
  return list;
}

SharedLinks links_of(const Machine& machine, const std::vector<RailLimit>& rails) {
  SharedLinks links;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const NetworkPort& port = machine.ports[rails[i].port];
    const auto cards = cards_of(machine, port);
    const double portion = 1 / static_cast<double>(std::max<std::size_t>(rails[i].gpus.size(), 1)) /
                           static_cast<double>(std::max<std::size_t>(cards.size(), 1));
    for (const std::uint32_t pci : cards) {
      if (rails[i].gpus.empty())
        for (const PciHop& hop : hops_to_root(machine, pci))
          cross(links, hop, rails.size(), i, portion, port.name + "'s path");
      for (const std::uint32_t gpu : rails[i].gpus)
        for (const PciHop& hop : way_between(machine, machine.gpus[gpu].pci, pci).hops)
          cross(links, hop, rails.size(), i, portion, fmt::format("GPU {}'s path", gpu));
    }
  }
  return links;
}

std::string in_words(const Machine& machine, const Shared& link) {
  std::string speed = link.hop.most_text;
  const std::string rate = in_words(*link.hop.most);
  if (speed != rate) speed += " = " + rate;
  const auto rails = std::ranges::count_if(link.portion, [](double portion) { return portion > 0; });
  return fmt::format("{} narrows at {} to {}{}", link.whose, machine.pci[link.hop.device].address, speed,
                     rails > 1 ? fmt::format(", which {} rails share", rails) : "");
}

/// What comes behind the place in the words above: "Gen4 x8 = 126 Gb/s".
std::string speed_in(const std::string& narrows) {
  return narrows.substr(std::min(narrows.find(" to "), narrows.size()));
}

void fill_nominal(const Machine& machine, std::vector<RailLimit>& rails) {
  std::vector<double> capacity;
  capacity.reserve(rails.size());
  for (const RailLimit& rail : rails)
    capacity.push_back(rail.rated ? rail.rated->bits_per_second : kUnlimited);
  const SharedLinks all = links_of(machine, rails);
  std::vector<const Shared*> links, narrow;
  std::vector<double> room;
  for (const auto& [device, link] : all) {
    if (!link.hop.most) continue;
    links.push_back(&link);
    room.push_back(link.hop.most->bits_per_second);
  }
  // A rail of unknown speed loads the links as if it were without end: the others would look too slow. So
  // rails are filled only where all are known.
  if (std::ranges::find(capacity, kUnlimited) != capacity.end()) return;
  const auto rates = fill(capacity, links, room, narrow);
  for (std::size_t i = 0; i < rails.size(); ++i) {
    rails[i].nominal = Rate{rates[i]};
    if (narrow[i] != nullptr) rails[i].narrows = in_words(machine, *narrow[i]);
  }
}

void fill_present(const Machine& machine, const std::vector<std::uint32_t>& gpus,
                  std::vector<RailLimit>& nominal) {
  std::vector<RailLimit> rails = rails_of(machine, gpus, true);
  const SharedLinks all = links_of(machine, rails);
  std::vector<double> capacity, room;
  std::vector<const Shared*> links, narrow;
  for (const RailLimit& rail : rails) {
    const NetworkPort& port = machine.ports[rail.port];
    const auto rate = port.rate ? port.rate : rated_speed(machine, port);
    if (!rate) return;
    capacity.push_back(rate->bits_per_second);
  }
  for (const auto& [device, link] : all) {
    if (!link.hop.now && !link.hop.most) continue;
    links.push_back(&link);
    room.push_back((link.hop.now ? link.hop.now : link.hop.most)->bits_per_second);
  }
  const auto rates = fill(capacity, links, room, narrow);
  for (RailLimit& rail : nominal) {
    rail.present = Rate{0};
    for (std::size_t i = 0; i < rails.size(); ++i)
      if (rails[i].port == rail.port) rail.present = Rate{rates[i]};
  }
}

std::optional<Rate> sum(const std::vector<RailLimit>& rails, std::optional<Rate> RailLimit::*which) {
  Rate total;
  for (const RailLimit& rail : rails) {
    if (!(rail.*which)) return std::nullopt;
    total.bits_per_second += (rail.*which)->bits_per_second;
  }
  return rails.empty() ? std::nullopt : std::optional(total);
}

/// A link that rails share narrows each of them, and is told once; of links that are narrow alike the first.
std::string what_narrows(const std::vector<RailLimit>& rails) {
  std::set<std::string> links;
  std::map<std::string, std::size_t> alike;  // by what they narrow to
  std::vector<std::string> firsts;
  for (const RailLimit& rail : rails)
    if (!rail.narrows.empty() && links.insert(rail.narrows).second)
      if (alike[speed_in(rail.narrows)]++ == 0) firsts.push_back(rail.narrows);
  std::string text;
  for (const std::string& first : firsts) {
    const std::size_t more = alike[speed_in(first)] - 1;
    text += "; " + first + (more == 0 ? "" : fmt::format(", and {} more alike", more));
  }
  return text;
}

/// "7 rails × 400 Gb/s + mlx5_3 126 Gb/s = 2926 Gb/s; GPU 3's path narrows at …"
std::string derive(const Machine& machine, const Limits& limits) {
  if (limits.rails.empty()) return "unknown: no fabric port is known";
  for (const RailLimit& rail : limits.rails)
    if (!rail.rated)
      return fmt::format("unknown: nothing says how fast {} is", machine.ports[rail.port].name);
  std::map<std::string, std::vector<const RailLimit*>, std::greater<>> by_rate;
  std::vector<std::string> order;
  for (const RailLimit& rail : limits.rails) {
    auto& group = by_rate[in_words(*rail.nominal)];
    if (group.empty()) order.push_back(in_words(*rail.nominal));
    group.push_back(&rail);
  }
  std::string text;
  for (const std::string& rate : order) {
    const auto& group = by_rate[rate];
    text += text.empty() ? "" : " + ";
    if (group.size() == 1 && limits.rails.size() > 1)
      text += fmt::format("{} {}", machine.ports[group.front()->port].name, rate);
    else
      text += fmt::format("{} rail{} × {}", group.size(), group.size() == 1 ? "" : "s", rate);
  }
  return fmt::format("{} = {}{}", text, in_words(*limits.nominal), what_narrows(limits.rails));
}

/// Whether NVLinks lead from each of the GPUs to each other, over others of them where need be. Bridges may
/// join pairs, and POWER8 the GPUs of one socket: what goes from one part to another takes another way.
bool all_joined(const Machine& machine, const std::vector<std::uint32_t>& gpus) {
  std::vector<std::uint32_t> reached{gpus.front()};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const std::uint32_t gpu : gpus)
      if (std::ranges::find(reached, gpu) == reached.end() && nvlinks_between(machine, reached[i], gpu) > 0)
        reached.push_back(gpu);
  return reached.size() == gpus.size();
}

void set_between_gpus(const Machine& machine, Limits& limits) {
  if (limits.gpus.size() < 2) return;
  bool all = all_joined(machine, limits.gpus);
  for (const std::uint32_t gpu : limits.gpus) {
    const NvLink links = nvlinks_of(machine, gpu);
    all = all && links.rate;
    if (links.rate && (!limits.nvlink || *links.rate < *limits.nvlink)) limits.nvlink = links.rate;
  }
  if (!all) limits.nvlink.reset();
  // Where they join some, POWER's processors may have NVLinks, too: not PCIe is between the others then.
  if (!machine.nvlinks_known || !machine.nvlinks.empty()) return;
  for (std::size_t i = 0; i < limits.gpus.size(); ++i) {
    const std::uint32_t next = limits.gpus[(i + 1) % limits.gpus.size()];
    for (const PciHop& hop :
         way_between(machine, machine.gpus[limits.gpus[i]].pci, machine.gpus[next].pci).hops)
      if (hop.most && (!limits.pcie_between || *hop.most < *limits.pcie_between))
        limits.pcie_between = hop.most;
  }
}

}  // namespace

std::optional<Rate> rated_speed(const Machine& machine, const NetworkPort& port) {
  const auto own = pci_of(machine, port);
  std::map<double, std::uint32_t> times;
  std::uint32_t ports = 0;
  bool some_as_rated = false;
  for (const NetworkPort& other : machine.ports) {
    if (!other.rate || other.link_layer != port.link_layer || other.why_not != port.why_not) continue;
    const auto pci = pci_of(machine, other);
    if (own.has_value() != pci.has_value()) continue;
    if (own && std::tie(machine.pci[*own].vendor, machine.pci[*own].device) !=
                   std::tie(machine.pci[*pci].vendor, machine.pci[*pci].device))
      continue;
    if (other.members.size() != port.members.size()) continue;
    ++times[other.rate->bits_per_second];
    ++ports;
    some_as_rated = some_as_rated || (other.rated && *other.rate >= *other.rated);
  }
  if (port.rated && (ports < 2 || some_as_rated)) return port.rated;
  // Ties go to the faster one: half the ports of a kind that have trained down are half of them at fault.
  double best = 0;
  std::uint32_t most = 0;
  for (const auto& [rate, count] : times)
    if (count >= most) best = rate, most = count;
  return most > 0 ? std::optional(Rate{best}) : port.rated;
}

Limits limits_of(const Machine& machine, const std::vector<std::uint32_t>& gpus) {
  Limits limits;
  limits.gpus = gpus;
  limits.rails = rails_of(machine, gpus, false);
  for (RailLimit& rail : limits.rails)
    rail.rated = rated_speed(machine, machine.ports[rail.port]);
  fill_nominal(machine, limits.rails);
  fill_present(machine, gpus, limits.rails);
  limits.nominal = sum(limits.rails, &RailLimit::nominal);
  limits.present = sum(limits.rails, &RailLimit::present);
  limits.derivation = derive(machine, limits);
  set_between_gpus(machine, limits);
  return limits;
}

Limits limits_of(const Machine& machine) {
  std::vector<std::uint32_t> all(machine.gpus.size());
  std::iota(all.begin(), all.end(), 0U);
  return limits_of(machine, all);
}

}  // namespace netcheck
