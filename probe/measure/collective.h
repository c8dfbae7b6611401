// Bus bandwidth: the factors and sizes of nccl-tests (doc/PERFORMANCE.md), so that figures compare. Pure.
#pragma once

#include <cstdint>

#include "measure/batch.h"

namespace netcheck {

/// busbw / algbw for n ranks: 2(n-1)/n for all_reduce; (n-1)/n for all_gather, reduce_scatter, alltoall,
/// gather, scatter; 1 for broadcast, reduce, transfer. 0 for n = 1 where the factor has (n-1): nothing
/// crosses a network.
[[nodiscard]] double bus_factor(Op op, std::uint32_t ranks);

/// Whether the operation moves n equal blocks: all_gather, reduce_scatter, alltoall, gather, scatter.
[[nodiscard]] bool moves_blocks(Op op);

/// The size that is really moved for a wanted S: for operations that split the buffer, base·n·elt with
/// base = (count/n) & ~(16/elt - 1) elements per rank; else count·elt. 0 when S is too small to split.
[[nodiscard]] std::uint64_t actual_bytes(Op op, Type type, std::uint32_t ranks, std::uint64_t wanted);

/// S / t. 0 when the time is not positive (rank_time refuses such samples before).
[[nodiscard]] Rate alg_bandwidth(std::uint64_t bytes, Ns per_operation);
/// algbw × bus_factor: what each rank's link carried, comparable with its rated speed.
[[nodiscard]] Rate bus_bandwidth(Op op, std::uint32_t ranks, std::uint64_t bytes, Ns per_operation);

}  // namespace netcheck
