// Rates, sizes and times: how they are written by people and printed for them. Pure. Used everywhere, by the
// plugin too.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"

namespace netcheck {

using Ns = std::chrono::nanoseconds;
/// Monotonic (CLOCK_MONOTONIC): the same in every process of one node, meaningless between nodes.
using Time = std::chrono::time_point<std::chrono::steady_clock, Ns>;
using Bytes = std::vector<std::byte>;

/// Bits per second, decimal (1 Gbps = 1e9 bit/s). Finite and not negative wherever it comes from parse_rate.
struct Rate {
  double bits_per_second = 0;
  friend auto operator<=>(const Rate&, const Rate&) = default;
};

/// Bytes moved in `took` as a rate. `took` must be positive.
[[nodiscard]] Rate rate_of(double bytes, Ns took);

/// "400Gbps", "800Mbps", "50GB/s", "62.5MB/s": bits (bps, Kbps, Mbps, Gbps, Tbps) or bytes per second (B/s,
/// KB/s, MB/s, GB/s, TB/s), decimal, letters in any case except b (bit) against B (byte). Refused: no unit,
/// zero, negative, nan, inf, out of range (1 bps … 1e15 bps), trailing text.
[[nodiscard]] Result<Rate> parse_rate(std::string_view text);

/// "8s", "500ms", "2min": a positive time up to one day. A bare number is refused: its unit would be a guess.
[[nodiscard]] Result<Ns> parse_duration(std::string_view text);

/// As in the sacct line: "96.3Gbps", "2950.4Gbps", "479.0Mbps": one decimal; Gbps from 1e9 up, then Mbps,
/// Kbps, bps. With `trim`, as a threshold is written: up to three decimals, no trailing zeros: "400Gbps",
/// "1.25Gbps".
[[nodiscard]] std::string format_rate(Rate rate, bool trim = false);

/// "5.1s", "120ms".
[[nodiscard]] std::string format_duration(Ns duration);

/// "1048576 B" as "1MiB" where exact, else bytes: "1000B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

}  // namespace netcheck
