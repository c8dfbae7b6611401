// The data that batches carry: small integers whose sums are exact in every type, so that each byte of a
// result can be checked. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "measure/batch.h"

namespace netcheck {

/// The element that `rank` contributes at element `index` of its buffer: 0 … 7, mixed from (seed, rank,
/// index).
[[nodiscard]] std::uint8_t pattern(std::uint64_t seed, std::uint32_t rank, std::uint64_t index);

/// Fills `work` (and nothing else) with what `rank` contributes to `batch` (see schedule.h for the layout).
void fill(const Batch& batch, std::uint32_t ranks, std::uint32_t rank, std::span<std::byte> work);

/// Elements of the result that are not what they should be. `result` is `work` after the operation, or
/// `landing` for alltoall. A rank that receives nothing (a sender, a non-root) has 0 wrong.
[[nodiscard]] std::uint64_t count_wrong(const Batch& batch, std::uint32_t ranks, std::uint32_t rank,
                                        std::span<const std::byte> result);

/// Adds `count` elements of `from` to `into` (Store::add).
void add_elements(Type type, std::span<const std::byte> from, std::span<std::byte> into);

}  // namespace netcheck
