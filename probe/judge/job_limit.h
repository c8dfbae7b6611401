// What a job's nodes could nominally reach together, and the thresholds that are a part of it. Pure.
//
// A node's limit is what its rails are built for, at least what most nodes of its class say of theirs: rates
// are mostly known as they are at present, and a link that has trained down must not lower its own bar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

struct JobLimit {
  std::optional<Rate> all;   ///< bus bandwidth of the plan's operation: the slowest node's
  std::optional<Rate> rail;  ///< of one rail: the slowest one's
  /// Whether anything may be held against it: it is known, and RDMA carries the bytes. Between CPUs that copy
  /// (TCP) it is the processor's speed that is measured.
  bool counts = false;
  std::string why;  ///< where it does not count
};
[[nodiscard]] JobLimit limit_of_job(const Plan& plan);

/// Sets the thresholds in effect: min, site_floor, min_per_rail are at least what the fractions make of the
/// limit. Those of the site that no such hardware could reach are dropped and named
/// (Thresholds::unattainable).
void set_bars(Plan& plan);

/// Below this part of the limit a check that asks for no part of it warns.
inline constexpr double kShort = 0.8;

}  // namespace netcheck::judge
