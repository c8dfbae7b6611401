// How messages are told apart: UCX matches a receive to a send by 64 bits. Pure.
//
//   kind 2 | team 16 | batch 18 | sender's rank 16 | step 12
//
// so that what is late from an old batch never matches a new one. Messages between two ranks keep their
// order; the step (modulo 4,096) need only outlast the receives that are posted ahead. Used by Course.
#pragma once

#include <cstdint>

namespace netcheck::fabric::ucx {

enum class Kind : std::uint8_t { data, token, credit };

inline constexpr std::uint32_t kMaxTeam = (1U << 16U) - 1;
inline constexpr std::uint32_t kMaxBatch = (1U << 18U) - 1;
inline constexpr std::uint32_t kMaxRanks = 1U << 16U;
inline constexpr std::uint64_t kSteps = 1U << 12U;
inline constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

/// `team` ≤ kMaxTeam, `batch` ≤ kMaxBatch, `from` < kMaxRanks: checked where a batch is taken.
[[nodiscard]] constexpr std::uint64_t tag_of(Kind kind, std::uint32_t team, std::uint32_t batch,
                                             std::uint32_t from, std::uint64_t step) {
  return static_cast<std::uint64_t>(kind) << 62U | static_cast<std::uint64_t>(team) << 46U |
         static_cast<std::uint64_t>(batch) << 28U | static_cast<std::uint64_t>(from) << 12U | step % kSteps;
}

}  // namespace netcheck::fabric::ucx
