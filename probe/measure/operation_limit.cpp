// What each operation could reach over the rails of equal machines. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "measure/limits.h"

namespace netcheck {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

OperationLimit inside_node(const Limits& limits, double ranks, Op op) {
  if (ranks < 2) return {std::nullopt, "one rank: nothing crosses a network"};
  if (limits.nvlink) return {limits.nvlink, fmt::format("NVLinks of a GPU, {}", in_words(*limits.nvlink))};
  if (limits.pcie_between && (op == Op::transfer || op == Op::broadcast || op == Op::reduce ||
                              op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter))
    return {limits.pcie_between, fmt::format("PCIe between GPUs, {}", in_words(*limits.pcie_between))};
  return {std::nullopt, "unknown: what connects the GPUs is not known"};
}

OperationLimit lesser(OperationLimit one, OperationLimit other) {
  if (!one.bus || !other.bus) return one.bus ? one : other;
  return *other.bus < *one.bus ? other : one;
}

}  // namespace

OperationLimit limit_of(const Limits& limits, Op op, std::uint32_t nodes) {
  const bool gpus = !limits.gpus.empty();
  const double ranks = gpus ? static_cast<double>(limits.gpus.size()) : 1;
  if (nodes < 2) {
    if (!gpus) return {std::nullopt, "one node: nothing crosses a network"};
    return inside_node(limits, ranks, op);
  }
  if (!limits.nominal) return {std::nullopt, limits.derivation};
  const double wire = limits.nominal->bits_per_second, count = nodes, all = count * ranks;
  double slowest = kNoLimit;
  for (const RailLimit& rail : limits.rails)
    slowest = std::min(slowest, rail.nominal->bits_per_second);
  const OperationLimit inside = gpus && ranks > 1 && (limits.nvlink || limits.pcie_between)
                                    ? inside_node(limits, ranks, op)
                                    : OperationLimit{};
  switch (op) {
    case Op::all_reduce:
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::broadcast:
    case Op::reduce:
      // Rings over all ranks, spread over the rails: each crosses a node's border once out and once in, and
      // every rank sends to one neighbour as much as the bus bandwidth counts.
      return lesser({Rate{wire}, "all rails of a node"}, inside);
    case Op::alltoall:
      // A rank sends S/n to each of n; r of a node send r·S·(N-1)/N out of it. busbw = (n-1)/n · S/t.
      return {Rate{wire / ranks * (all - 1) / all * count / (count - 1)},
              gpus ? "a GPU's share of the rails; part of it stays in the node" : "all rails of a node"};
    case Op::gather:
    case Op::scatter:
      // The root's own rail carries what is from and to other nodes: (n-r)/n · S.
      if (!gpus) return {Rate{wire}, "all rails of a node"};
      return {Rate{slowest * (all - 1) / (all - ranks)}, "the root's rail; the node's own ranks go inside"};
    case Op::transfer:
      if (!gpus) return {Rate{wire}, "all rails of a node"};
      return {Rate{slowest}, "one rail: the slowest"};
  }
  return {};
}

}  // namespace netcheck
