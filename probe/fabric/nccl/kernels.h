// What runs on a GPU: two kernels, to write a pattern and to count where it is not. In PTX, written by hand
// for an old machine: the driver compiles it for the GPU that is there, and no toolkit is needed. In the
// fabric child, as the probe user.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace netcheck::fabric::nccl {

// Each kernel exists for elements of 1, 2 and 4 bytes: kernel_name(kFillKernel, 4) = "netcheck_fill_4".
//   netcheck_fill_N(to, elements, table, period)              to[i] = table[i mod period]
//   netcheck_count_N(of, elements, table, period, counter)    *counter += number of i: of[i] ≠ table[i mod
//   period]
// Addresses and `elements` have 64 bits, `period` 32; the counter 64. Any grid of fewer than 2^32 threads.
inline constexpr const char* kFillKernel = "netcheck_fill";
inline constexpr const char* kCountKernel = "netcheck_count";
inline constexpr std::array<std::size_t, 3> kWidths{1, 2, 4};
inline constexpr unsigned kBlock = 256, kMostBlocks = 1'024;  ///< fills the largest GPU there is

[[nodiscard]] std::string kernel_name(const char* kernel, std::size_t width);
/// The whole module's text.
[[nodiscard]] std::string kernels_ptx();

}  // namespace netcheck::fabric::nccl
