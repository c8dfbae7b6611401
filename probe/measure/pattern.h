// The data that batches carry: small integers whose sums are exact in every type, so that each byte of a
// result can be checked. Pure. Called by the fabric modules and the simulator, as the probe user.
//
// Exactness: an element is 0 … 7, so a sum over n ranks is at most 7n. i32 and f32 hold that exactly for all
// 65,536 ranks a team may have (458,752 < 2^24). u8 sums are checked modulo 256, as every u8 sum is taken.
// bf16 holds integers exactly up to 256 only: beyond 32 ranks each element of a sum gets contributions from
// one rank in k = ⌈n/32⌉, other ranks at the next element, so that every sum stays ≤ 224 and every rank is
// checked within k elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/batch.h"

namespace netcheck {

/// The element that `rank` contributes at element `index` of its buffer: 0 … 7, mixed from (seed, rank,
/// index). It repeats after 4,099 elements: a prime, so that no piece of a power-of-two size looks like its
/// neighbour.
[[nodiscard]] std::uint8_t pattern(std::uint64_t seed, std::uint32_t rank, std::uint64_t index);

/// Fills `work` (and nothing else) with what `rank` contributes to `batch` (see schedule.h for the layout),
/// and the rest of it with bytes that no contribution holds, so that bytes that never came are seen.
/// `work` is Batch::bytes long.
void fill(const Batch& batch, std::uint32_t ranks, std::uint32_t rank, std::span<std::byte> work);

/// Fills a `landing` buffer with bytes that no contribution holds.
void poison(std::span<std::byte> landing);

/// Elements of the result that are not what they should be. `result` is `landing` where uses_landing(op),
/// else `work`, after the operation; a block that it is too short for counts as wrong. A rank that
/// receives nothing (a sender, a non-root) has 0 wrong.
[[nodiscard]] std::uint64_t count_wrong(const Batch& batch, std::uint32_t ranks, std::uint32_t rank,
                                        std::span<const std::byte> result);

/// Bytes of a buffer that hold `period` over and over.
struct Stretch {
  std::uint64_t offset = 0, length = 0;
  std::vector<std::byte> period;  ///< whole elements, some 16 KiB at most
};
/// What fill() writes, and what count_wrong() compares with, for memory that these cannot reach: a GPU's.
[[nodiscard]] std::vector<Stretch> contributed_stretches(const Batch& batch, std::uint32_t ranks,
                                                         std::uint32_t rank);
[[nodiscard]] std::vector<Stretch> expected_stretches(const Batch& batch, std::uint32_t ranks,
                                                      std::uint32_t rank);
/// What memory holds that nobody has written to: no contribution, in any type.
inline constexpr std::byte kPoison{0xA5};

/// Adds the elements of `from` to those of `into` (Store::add); of the shorter one's length. Integers wrap;
/// bf16 rounds to nearest even.
void add_elements(Type type, std::span<const std::byte> from, std::span<std::byte> into);

}  // namespace netcheck
