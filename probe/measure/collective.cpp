// Sizes and bus bandwidth factors, after nccl-tests (doc/PERFORMANCE.md and src/*.cu). Pure. Called by the
// judge, as root too.
#include "measure/collective.h"

namespace netcheck {
namespace {

/// nccl-tests aligns each rank's share to 16 bytes, the widest store of a GPU.
constexpr std::uint64_t kAlignment = 16;

}  // namespace

bool moves_blocks(Op op) {
  switch (op) {
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::alltoall:
    case Op::gather:
    case Op::scatter:
      return true;
    case Op::all_reduce:
    case Op::broadcast:
    case Op::reduce:
    case Op::transfer:
      return false;
  }
  return false;
}

double bus_factor(Op op, std::uint32_t ranks) {
  if (ranks == 0) return 0;
  const auto n = static_cast<double>(ranks);
  if (op == Op::all_reduce) return 2 * (n - 1) / n;
  return moves_blocks(op) ? (n - 1) / n : 1;
}

std::uint64_t actual_bytes(Op op, Type type, std::uint32_t ranks, std::uint64_t wanted) {
  const std::uint64_t element = size_of(type);
  const std::uint64_t count = wanted / element;
  if (!moves_blocks(op)) return count * element;
  if (ranks == 0) return 0;
  const std::uint64_t base = (count / ranks) & ~(kAlignment / element - 1);
  return base * ranks * element;
}

Rate alg_bandwidth(std::uint64_t bytes, Ns per_operation) {
  if (per_operation <= Ns::zero()) return {};
  return rate_of(static_cast<double>(bytes), per_operation);
}

Rate bus_bandwidth(Op op, std::uint32_t ranks, std::uint64_t bytes, Ns per_operation) {
  return {alg_bandwidth(bytes, per_operation).bits_per_second * bus_factor(op, ranks)};
}

}  // namespace netcheck
