// For developers: measures with the fabric alone, without a session. Plays all nodes in one process, each
// node's fabric child in a network namespace of its own, and prints what each rank measured.
//
//   fabric_nodes --host build/tests/fakes/fabric_host --modules build --nodes 4 --namespace n --device eth0
//                --op all_gather --bytes 16777216 --iterations 10 [--edge 0-1 --edge 2-3]
//
// Node i's child runs in the network namespace /run/netns/n<i>; without --namespace all run here. Each device
// of a node is a rank. --fabric nccl measures GPUs, named by their PCI bus ids; --set NAME=VALUE is for the
// module, with %n in the value for the node's number.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "judge/names.h"
#include "measure/collective.h"
#include "measure/statistics.h"
#include "nodes.h"

namespace netcheck::fabric {
namespace {

constexpr double kNsPerUs = 1e3;

struct Wishes {
  std::string host, modules, space, fabric = "ucx", op = "all_gather", type = "f32", algorithm;
  std::vector<std::string> devices, edges, settings;
  std::uint32_t nodes = 4, warmup = 1, iterations = 10, repeats = 1, limit = 20;
  std::uint64_t bytes = 16 << 20;
  [[nodiscard]] std::uint32_t ranks() const { return nodes * static_cast<std::uint32_t>(devices.size()); }
};

/// A program that enters the node's namespace and becomes the host.
std::string wrapper(const std::string& directory, const Wishes& wishes, std::uint32_t node) {
  const std::string path = fmt::format("{}/node{}", directory, node);
  std::ofstream(path) << fmt::format("#!/bin/sh\nexec /usr/bin/nsenter --net=/run/netns/{}{} {} \"$@\"\n",
                                     wishes.space, node, wishes.host);
  ::chmod(path.c_str(), 0700);
  return path;
}

std::string peak_memory(pid_t child) {
  std::ifstream status(fmt::format("/proc/{}/status", child));
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return line.substr(line.find_first_not_of(" \t", 6));
  return "?";
}

void print_memory() {
  std::ifstream list(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (pid_t pid = 0; list >> pid;)
    fmt::print("child {}: peak resident {}\n", pid, peak_memory(pid));
}

bool print(const std::vector<std::optional<Event>>& events, const Batch& batch, std::uint32_t ranks) {
  Ns slowest{};
  bool good = true;
  for (std::size_t node = 0; node < events.size(); ++node) {
    const auto* measured = events[node] ? std::get_if<Measured>(&*events[node]) : nullptr;
    if (measured == nullptr) {
      const auto* failed = events[node] ? std::get_if<Failed>(&*events[node]) : nullptr;
      good = false;
      if (failed == nullptr) {
        fmt::print("node {}: no answer\n", node);
        continue;
      }
      fmt::print("node {}: {}: {}\n", node, judge::name(failed->trouble), failed->detail);
      for (const auto& sample : failed->partial)
        fmt::print("  rank {}: {} operations, {} B\n", sample.rank, sample.done.size(), sample.received);
      continue;
    }
    for (const auto& sample : measured->local) {
      good = good && sample.wrong == 0;
      if (sample.done.empty()) continue;
      const auto time = rank_time(sample);
      if (!time) continue;
      slowest = std::max(slowest, *time);
      const Rate whole =
          batch.iterations < 2
              ? Rate{}
              : rate_of(static_cast<double>(batch.bytes) * static_cast<double>(batch.iterations - 1),
                        sample.done.back() - sample.done.front());
      fmt::print("node {} rank {}: median {:.1f} us {}, mean {}, {} wrong\n", node, sample.rank,
                 static_cast<double>(time->count()) / kNsPerUs,
                 format_rate(bus_bandwidth(batch.op, ranks, batch.bytes, *time)),
                 format_rate({whole.bits_per_second * bus_factor(batch.op, ranks)}), sample.wrong);
    }
  }
  if (good && slowest > Ns{})
    fmt::print("{} of {} B: busbw {}\n", name(batch.op), batch.bytes,
               format_rate(bus_bandwidth(batch.op, ranks, batch.bytes, slowest)));
  return good;
}

/// Gives up on those who have not answered by the limit, as a session would.
std::vector<std::optional<Event>> run(Nodes& nodes, const Team& team, const Batch& batch, Ns limit) {
  auto events = nodes.run(team, batch, limit);
  for (std::uint32_t node = 0; node < nodes.size(); ++node)
    if (!events[node]) {
      nodes.fabric(node).abandon();
      events[node] = nodes.gather({node}, std::chrono::seconds(1))[node];
    }
  return events;
}

Batch batch_of(const Wishes& wishes) {
  Batch batch;
  batch.team = 1;
  batch.op = parse_op(wishes.op).value();
  batch.algorithm = wishes.algorithm;
  batch.type = parse_type(wishes.type).value();
  batch.bytes = actual_bytes(batch.op, batch.type, wishes.ranks(), wishes.bytes);
  batch.warmup = wishes.warmup;
  batch.iterations = wishes.iterations;
  for (const auto& edge : wishes.edges) {
    const auto dash = edge.find('-');
    batch.edges.push_back({static_cast<std::uint32_t>(std::stoul(edge.substr(0, dash))),
                           static_cast<std::uint32_t>(std::stoul(edge.substr(dash + 1)))});
  }
  return batch;
}

Options options_of(const Wishes& wishes, std::uint32_t node) {
  Options options{.devices = wishes.devices, .max_bytes = 0, .settings = {}};
  for (const auto& setting : wishes.settings) {
    const auto equals = setting.find('=');
    std::string value = equals == std::string::npos ? "" : setting.substr(equals + 1);
    if (const auto at = value.find("%n"); at != std::string::npos) value.replace(at, 2, std::to_string(node));
    options.settings[setting.substr(0, equals)] = value;
  }
  return options;
}

template <typename Good>
bool all(const char* what, const std::vector<std::optional<Event>>& events) {
  for (const auto& event : events) {
    if (event && std::holds_alternative<Good>(*event)) continue;
    const auto* failed = event ? std::get_if<Failed>(&*event) : nullptr;
    fmt::print("{}: {}\n", what, failed != nullptr ? failed->detail : "no answer");
    return false;
  }
  return true;
}

int measure(const Wishes& wishes) {
  std::string directory = "/tmp/fabric_nodes-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 3;
  std::vector<ChildCommand> commands;
  for (std::uint32_t node = 0; node < wishes.nodes; ++node)
    commands.push_back({wishes.space.empty() ? wishes.host : wrapper(directory, wishes, node), wishes.modules,
                        wishes.fabric});
  Nodes nodes(commands);
  const Time begin = system::now();
  const Ns limit = std::chrono::seconds(wishes.limit);
  for (std::uint32_t node = 0; node < wishes.nodes; ++node)
    nodes.fabric(node).open(options_of(wishes, node));
  if (!all<Ready>("open", nodes.gather(nodes.everyone(), limit))) return 3;
  const Time opened = system::now();
  Team team{1, {}};
  for (std::uint32_t node = 0; node < wishes.nodes; ++node)
    for (std::uint16_t lane = 0; lane < wishes.devices.size(); ++lane)
      team.ranks.push_back({node, lane});
  const auto joined = nodes.form(team, limit);
  if (!all<Joined>("form", joined)) return 3;
  fmt::print("transport: {}\n", std::get<Joined>(*joined[0]).transport);
  const Time formed = system::now();
  Batch batch = batch_of(wishes);
  Batch connect = batch;
  connect.bytes = actual_bytes(batch.op, batch.type, wishes.ranks(), 4096);
  connect.warmup = 0;
  connect.iterations = 1;
  connect.id = 1;
  bool good = print(run(nodes, team, connect, std::chrono::seconds(wishes.limit)), connect, wishes.ranks());
  fmt::print("open {}, form {}, connect {}\n", format_duration(opened - begin),
             format_duration(formed - opened), format_duration(system::now() - formed));
  for (std::uint32_t i = 0; good && i < wishes.repeats; ++i) {
    batch.id = 2 + i;
    good = print(run(nodes, team, batch, std::chrono::seconds(wishes.limit)), batch, wishes.ranks());
  }
  print_memory();
  std::filesystem::remove_all(directory);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace netcheck::fabric

int main(int argc, char** argv) {
  netcheck::fabric::Wishes wishes;
  CLI::App app("Measures with a fabric alone");
  app.add_option("--host", wishes.host)->required();
  app.add_option("--modules", wishes.modules)->required();
  app.add_option("--namespace", wishes.space);
  app.add_option("--device", wishes.devices)->required();
  app.add_option("--nodes", wishes.nodes);
  app.add_option("--fabric", wishes.fabric);
  app.add_option("--set", wishes.settings);
  app.add_option("--op", wishes.op);
  app.add_option("--type", wishes.type);
  app.add_option("--algorithm", wishes.algorithm);
  app.add_option("--bytes", wishes.bytes);
  app.add_option("--warmup", wishes.warmup);
  app.add_option("--iterations", wishes.iterations);
  app.add_option("--repeats", wishes.repeats);
  app.add_option("--edge", wishes.edges);
  app.add_option("--limit", wishes.limit, "seconds after which a batch is given up");
  CLI11_PARSE(app, argc, argv);
  return netcheck::fabric::measure(wishes);
}
