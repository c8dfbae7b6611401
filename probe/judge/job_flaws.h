// What is wrong with the hardware of a job's nodes, by what each says of itself and by who is not like the
// others, weighed as the site weighs it. Pure. Used by verdict and line.
//
// A node that lies can only bring itself up: its own word stands beside its own name, an odd one is odd by
// what more than half of its class say, and of what it sends nothing reaches the line but codes, device names
// and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/figures.h"
#include "judge/history.h"

namespace netcheck::judge {

struct JobFlaw {
  Flaw flaw = Flaw::port_down;
  Weight weight = Weight::warn;
  std::vector<std::uint32_t> nodes;  ///< empty: nodes differ, and none is odd by most of them
  std::string short_words;           ///< "mlx5_3", "7 GPUs, others 8"; may be empty
  std::string what;                  ///< in one line, for records
  /// A part of theirs is broken, by their own word (is_broken_part).
  bool broken_part = false;
};

/// Those that the site does not ignore, what fails first. What a node says itself is not told again of the
/// odd.
[[nodiscard]] std::vector<JobFlaw> flaws_of(const Plan& plan);

/// "n3(port-down: mlx5_3)", "n[1-4](iommu)", "odd-mtu(nodes differ)".
[[nodiscard]] std::string describe(const JobFlaw& flaw, const Plan& plan);

/// For `warn=`: all flaws that are told, thresholds that cannot be reached, and a figure that falls short of
/// the limit where no part of it is asked for.
[[nodiscard]] std::vector<std::string> hardware_warnings(const Plan& plan,
                                                         const std::optional<Figures>& figures);

/// What the line says as limit=: where it decides, or a warning is about it.
[[nodiscard]] std::optional<Rate> limit_to_tell(const Plan& plan, const std::optional<Figures>& figures);

/// Flaws and limit, for the record.
[[nodiscard]] Json hardware_to_json(const Plan& plan);

}  // namespace netcheck::judge
