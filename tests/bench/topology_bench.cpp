// What knowing the hardware costs: reading this machine and recorded ones, and holding thousands of nodes
// against each other. Google Benchmark; run by scripts/bench-topology and by hand.
//
//   topology_bench [FILE…] [--benchmark_…]     FILE: recordings to be read, too (hwloc's XML, NCCL's, our
//   own)
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "contract/wire.h"
#include "judge/fleet.h"
#include "judge/hardware.h"
#include "measure/limits.h"
#include "topology/machine.h"

namespace {

using namespace netcheck;

constexpr std::uint32_t kNodes = 4096;

template <typename T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "topology_bench: %s\n", describe(result.error()).c_str());
  std::exit(2);
}

/// The most that this process has had in memory, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

/// What `work` adds to the peak, in a process of its own: memory that earlier work freed would be used again.
template <typename Work>
double peak_added_by(Work work) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins here (proc(5))
    const double before = peak_mib();
    work();
    const double added = peak_mib() - before;
    const bool told = ::write(ends[1], &added, sizeof added) == sizeof added;
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  double added = -1;
  if (::read(ends[0], &added, sizeof added) != sizeof added) added = -1;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return added;
}

void judge_it(Machine machine) {
  topology::tell_roles(machine, {});
  const Limits limits = limits_of(machine);
  benchmark::DoNotOptimize(judge::findings_of(machine, limits));
}

void this_machine(benchmark::State& state) {
  state.counters["MiB"] = peak_added_by([] { judge_it(value_or_exit(topology::read_machine())); });
  for (auto iteration : state) {
    (void)iteration;
    judge_it(value_or_exit(topology::read_machine()));
  }
}

void recording(benchmark::State& state, const std::string& file) {
  state.counters["MiB"] = peak_added_by([&] { judge_it(value_or_exit(topology::read_recording(file))); });
  for (auto iteration : state) {
    (void)iteration;
    judge_it(value_or_exit(topology::read_recording(file)));
  }
}

/// One node in a thousand has a GPU less, one in five hundred another MTU.
std::vector<judge::NodeTraits> fleet(const Machine& good) {
  Machine lacking = good, other = good;
  if (!lacking.gpus.empty()) lacking.gpus.pop_back();
  lacking.nvlinks.clear();
  for (NetworkPort& port : other.ports)
    port.mtu = 1500;
  std::vector<judge::NodeTraits> nodes;
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    const Machine& machine = i % 1000 == 999 ? lacking : i % 500 == 250 ? other : good;
    nodes.push_back(judge::traits_of(machine, limits_of(machine)));
    nodes.back().node = "n" + std::to_string(i);
  }
  return nodes;
}

void compare_nodes(benchmark::State& state) {
  Machine machine = value_or_exit(topology::read_recording(NETCHECK_FIXTURES "/hgx.json"));
  topology::tell_roles(machine, {});
  const auto nodes = fleet(machine);
  state.counters["MiB"] = 0;  // the CSV reporter wants the same counters of all
  for (auto iteration : state) {
    (void)iteration;
    benchmark::DoNotOptimize(judge::odd_ones(nodes));
  }
}

/// The leader's whole work, from what the nodes send.
void decode_and_compare(benchmark::State& state) {
  Machine machine = value_or_exit(topology::read_recording(NETCHECK_FIXTURES "/hgx.json"));
  topology::tell_roles(machine, {});
  std::vector<Bytes> frames;
  for (const judge::NodeTraits& node : fleet(machine))
    frames.push_back(to_cbor(judge::to_json(node)));
  state.counters["MiB"] = 0;
  state.SetLabel(std::to_string(frames.front().size()) + " bytes each");
  for (auto iteration : state) {
    (void)iteration;
    std::vector<judge::NodeTraits> nodes;
    for (const Bytes& frame : frames)
      nodes.push_back(value_or_exit(
          read_frame(frame, "a node", [](const Json& json) { return judge::traits_from_json(json); })));
    benchmark::DoNotOptimize(judge::odd_ones(nodes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("this_machine", this_machine)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("hgx.json", recording, std::string(NETCHECK_FIXTURES "/hgx.json"))
      ->Unit(benchmark::kMillisecond);
  for (int i = 1; i < argc; ++i)
    benchmark::RegisterBenchmark(argv[i], recording, std::string(argv[i]))->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("compare_4096_nodes", compare_nodes)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("decode_and_compare_4096_nodes", decode_and_compare)
      ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
