// Heading, tree, matrix, limits and findings as text.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "picture/outline.h"
#include "picture/picture.h"

namespace netcheck::picture {

namespace {

/// Columns of a UTF-8 text that has one column per character (letters, ×, ─).
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t have = columns(text);
  if (have < width) text.append(width - have, ' ');
  return text;
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

bool is_leaf(const Node& node) {
  return node.below.empty() && node.part != Part::socket && node.part != Part::numa;
}

void print(const std::vector<Node>& nodes, const std::string& indent, std::string& text) {
  std::size_t names = 0, links = 0;
  for (const Node& node : nodes) {
    if (!is_leaf(node)) continue;
    names = std::max(names, columns(node.name));
    links = std::max(links, columns(node.link));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    const bool last = i + 1 == nodes.size();
    std::string line = indent + (last ? "└─ " : "├─ ");
    const bool leaf = is_leaf(node);
    line += leaf ? padded(node.name, names) : node.name;
    if (!node.place.empty()) line += "  " + node.place;
    if (links > 0 && leaf)
      line += "  " + padded(node.link, links);
    else if (!node.link.empty())
      line += "  " + node.link;
    if (!node.about.empty()) line += "  " + node.about;
    if (node.trouble) line += "  !";
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
    print(node.below, indent + (last ? "   " : "│  "), text);
  }
}

/// What the matrix has a row for.
struct Entry {
  std::string name;       ///< "GPU0", "mlx5_0"; "NIC0" where names are long
  std::string full_name;  ///< of a port
  std::optional<std::uint32_t> gpu;
  std::uint32_t pci = 0;
};

/// As nvidia-smi does it: NIC0 …, and below the matrix what they are called.
void shorten(std::vector<Entry>& entries) {
  constexpr std::size_t kShort = 8;
  if (std::ranges::none_of(entries, [](const Entry& entry) { return columns(entry.name) > kShort; })) return;
  std::size_t count = 0;
  for (Entry& entry : entries)
    if (!entry.gpu) entry.name = fmt::format("NIC{}", count++);
}

std::vector<Entry> entries_of(const Machine& machine) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    entries.push_back({fmt::format("GPU{}", i), "", i, machine.gpus[i].pci});
  const bool any_fabric =
      std::ranges::any_of(machine.ports, [](const NetworkPort& port) { return port.why_not.empty(); });
  for (const NetworkPort& port : machine.ports) {
    const auto pci = pci_of(machine, port);
    const bool spare = port.virtual_function && !port.why_not.empty();  // of SR-IOV: there may be 500
    if (pci && !spare && (port.why_not.empty() || !port.rdma_device.empty() || !any_fabric))
      entries.push_back({port.name, port.name, std::nullopt, *pci});
  }
  shorten(entries);
  return entries;
}

std::string cell(const Machine& machine, const Entry& row, const Entry& column) {
  if (&row == &column) return "X";
  if (row.gpu && column.gpu)
    if (const std::uint32_t links = nvlinks_between(machine, *row.gpu, *column.gpu); links > 0)
      return fmt::format("NV{}", links);
  // Two ports of one card: closer than a switch, and nvidia-smi calls it PIX.
  if (row.pci == column.pci) return netcheck::name_of(Distance::pix);
  return netcheck::name_of(distance_between(machine, row.pci, column.pci));
}

std::string numa_of_entry(const Machine& machine, const Entry& entry) {
  const auto& numa = host_bridge_of(machine, entry.pci).numa;
  return numa ? std::to_string(*numa) : "?";
}

constexpr struct {
  const char* word;
  const char* meaning;
} kLegend[] = {{"PIX", "at most one PCIe switch"},
               {"PXB", "several PCIe switches"},
               {"PHB", "a host bridge: through the CPU"},
               {"NODE", "two host bridges of one NUMA node"},
               {"SYS", "between NUMA nodes or sockets"},
               {"NV", "that many NVLinks"},
               {"?", "not known"}};

std::string legend(const std::set<std::string>& used) {
  std::string text;
  for (const auto& [word, meaning] : kLegend) {
    const std::string name = word;
    const bool there = std::ranges::any_of(used, [&](const std::string& cell) {
      return cell == name || (name == "NV" && cell.rfind("NV", 0) == 0);
    });
    if (there)
      text += fmt::format("{}{} {}", text.empty() ? "  " : "; ", name == "NV" ? "NV#" : name, meaning);
  }
  return text + '\n';
}

std::string unknown_or(const std::optional<Rate>& rate) {
  return rate ? in_words(*rate) : "unknown";
}

std::string gpus_of(const RailLimit& rail) {
  std::string text;
  for (const std::uint32_t gpu : rail.gpus)
    text += fmt::format("{}{}", text.empty() ? "GPU " : ", ", gpu);
  return text;
}

std::string rails(const Machine& machine, const Limits& limits) {
  std::size_t names = 0, ratings = 0;
  for (const RailLimit& rail : limits.rails) {
    names = std::max(names, columns(name_of(machine.ports[rail.port])));
    ratings = std::max(ratings, columns(unknown_or(rail.nominal)));
  }
  std::string text;
  for (const RailLimit& rail : limits.rails) {
    std::string line = fmt::format("  {}  {}", padded(name_of(machine.ports[rail.port]), names),
                                   padded(unknown_or(rail.nominal), ratings));
    if (rail.nominal && rail.present && *rail.present < *rail.nominal)
      line += fmt::format("  at present {}", in_words(*rail.present));
    if (!rail.gpus.empty()) line += "  serves " + gpus_of(rail);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

constexpr struct {
  Op op;
  const char* name;
} kOperations[] = {{Op::all_reduce, "all_reduce"},
                   {Op::all_gather, "all_gather"},
                   {Op::alltoall, "alltoall"},
                   {Op::transfer, "sendrecv"}};
/// Within a node, the smallest job between nodes, and one where what stays in the node hardly counts.
constexpr std::uint32_t kNodes[] = {1, 2, 16};

std::string operations(const Limits& limits) {
  std::string text =
      "\nBus bandwidth that could be reached (ring algorithms; nccl-tests' convention), Gb/s and GB/s:\n";
  text += fmt::format("  {:<12}", "nodes");
  for (const std::uint32_t nodes : kNodes)
    text += fmt::format("{:>16}", nodes);
  text += '\n';
  for (const auto& [op, name] : kOperations) {
    text += fmt::format("  {:<12}", name);
    for (const std::uint32_t nodes : kNodes) {
      const auto limit = limit_of(limits, op, nodes).bus;
      const int digits = limit && *limit < Rate{10e9} ? 1 : 0;  // 0.4 Gb/s is not 0
      text += fmt::format("{:>16}", limit ? fmt::format("{:.{}f} = {:.{}f}", limit->bits_per_second / 1e9,
                                                        digits, limit->bits_per_second / 8e9, digits + 1)
                                          : "-");
    }
    text += '\n';
  }
  return text;
}

std::string versions(const Machine& machine) {
  std::vector<std::string> words;
  if (!machine.kernel.empty()) words.push_back("kernel " + machine.kernel);
  for (const DriverVersion& driver : machine.drivers)
    words.push_back(driver.driver + " " + driver.version);
  std::set<std::string> firmware;
  for (const NetworkPort& port : machine.ports)
    if (port.why_not.empty() && !port.firmware.empty()) firmware.insert(port.firmware);
  for (const std::string& version : firmware)
    words.push_back("firmware " + version);
  for (const LibraryVersion& library : machine.libraries)
    words.push_back(library.library + " " + library.version);
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string heading(const Machine& machine) {
  std::set<std::int32_t> sockets;
  std::uint32_t cores = 0;
  for (const NumaNode& numa : machine.numa) {
    if (numa.socket) sockets.insert(*numa.socket);
    cores += numa.cores;
  }
  const auto fabric = static_cast<std::size_t>(
      std::ranges::count_if(machine.ports, [](const NetworkPort& port) { return port.why_not.empty(); }));
  std::string text = machine.node.empty() ? "a node" : machine.node;
  if (!machine.product.empty()) text += ", " + machine.product;
  text += ": ";
  if (!sockets.empty()) text += counted(sockets.size(), "socket") + ", ";
  if (!machine.numa.empty()) text += counted(machine.numa.size(), "NUMA node") + ", ";
  if (cores > 0) text += counted(cores, "core") + ", ";
  text += fmt::format("{}, {}\n", counted(machine.gpus.size(), "GPU"), counted(fabric, "fabric port"));
  text += "read from " + (machine.source.empty() ? "a recording" : machine.source) + '\n';
  if (const std::string told = versions(machine); !told.empty()) text += told + '\n';
  for (const std::string& note : machine.notes)
    text += fmt::format("note: {}\n", note);
  return text;
}

std::string tree(const Machine& machine) {
  std::string text;
  for (const Node& node : outline(machine)) {
    text += node.name + (node.about.empty() ? "" : "  " + node.about) + '\n';
    print(node.below, "", text);
  }
  const auto rest = ports_without_card(machine);
  if (!rest.empty()) text += "without a card\n";
  for (std::size_t i = 0; i < rest.size(); ++i)
    text += fmt::format("{} {}\n", i + 1 == rest.size() ? "└─" : "├─", rest[i]);
  return text;
}

std::string matrix(const Machine& machine) {
  const std::vector<Entry> entries = entries_of(machine);
  if (entries.size() < 2) return {};
  constexpr std::size_t kGap = 2, kWidestCell = 4;
  std::size_t first = 0;
  for (const Entry& entry : entries)
    first = std::max(first, columns(entry.name));
  std::string text = "  " + padded("", first);
  for (const Entry& entry : entries)
    text += std::string(kGap, ' ') + padded(entry.name, kWidestCell);
  text += std::string(kGap, ' ') + "NUMA\n";
  std::set<std::string> used;
  for (const Entry& row : entries) {
    text += "  " + padded(row.name, first);
    for (const Entry& column : entries) {
      const std::string word = cell(machine, row, column);
      used.insert(word);
      text += std::string(kGap, ' ') + padded(word, std::max(kWidestCell, columns(column.name)));
    }
    text += std::string(kGap, ' ') + numa_of_entry(machine, row) + '\n';
  }
  text += legend(used);
  std::string names;
  for (const Entry& entry : entries)
    if (entry.name != entry.full_name && !entry.gpu)
      names += fmt::format("{}{} {}", names.empty() ? "  " : "; ", entry.name, entry.full_name);
  return names.empty() ? text : text + names + '\n';
}

std::string limits(const Machine& machine, const Limits& limits) {
  std::string text = rails(machine, limits);
  text += fmt::format("  node: {}\n", limits.derivation);
  if (limits.nominal && limits.present && *limits.present < *limits.nominal)
    text += fmt::format("  at present: {}\n", in_words(*limits.present));
  if (limits.nvlink)
    text += fmt::format("  between GPUs: NVLink, {} of each GPU, one way\n", in_words(*limits.nvlink));
  if (limits.nominal || limits.nvlink || limits.pcie_between) text += operations(limits);
  return text;
}

std::string findings(const std::vector<judge::Finding>& findings) {
  if (findings.empty()) return "  none\n";
  std::string text;
  for (const judge::Finding& finding : findings) {
    text += fmt::format("  {:<8} {}: {}\n", judge::name_of(finding.severity), finding.code, finding.what);
    if (!finding.remedy.empty()) text += fmt::format("           → {}\n", finding.remedy);
  }
  return text;
}

std::string differences(const Machine& one, const Machine& other,
                        const std::vector<judge::Difference>& differences) {
  if (differences.empty()) return "no differences\n";
  const auto name = [](const Machine& machine) {
    return machine.node.empty() ? machine.source : machine.node;
  };
  std::size_t whats = 0, ones = columns(name(one));
  for (const judge::Difference& difference : differences) {
    whats = std::max(whats, columns(difference.what));
    ones = std::max(ones, columns(difference.one));
  }
  std::string text = fmt::format("{}  {}  {}\n", padded("", whats), padded(name(one), ones), name(other));
  for (const judge::Difference& difference : differences)
    text += fmt::format("{}  {}  {}\n", padded(difference.what, whats), padded(difference.one, ones),
                        difference.other);
  return text;
}

}  // namespace netcheck::picture
