// From completion times to one figure, and its spread. Pure. No samples is an error, never 0.
#pragma once

#include <optional>
#include <vector>

#include "measure/batch.h"

namespace netcheck {

/// Median of a non-empty set (mean of the middle two). nullopt when empty.
[[nodiscard]] std::optional<double> median(std::vector<double> values);
/// Linear interpolation between closest ranks, q in [0, 1]. nullopt when empty.
[[nodiscard]] std::optional<double> quantile(std::vector<double> values, double q);
/// Median absolute deviation from the median, times 1.4826 (the normal distribution's sigma).
[[nodiscard]] std::optional<double> spread(const std::vector<double>& values);

/// A rank's time per operation: the median of the differences of its completion times, the first left out.
/// With one completion only, that time itself. Error when there is none, or when it is not positive: nothing
/// takes no time.
[[nodiscard]] Result<Ns> rank_time(const Sample& sample);

/// A transfer's time per operation, over all of them and the whole time since the barrier. Error as above.
[[nodiscard]] Result<Ns> mean_time(const Sample& sample);

/// The same, but rank_time() where the mean is more than a quarter above it, something having stood still for
/// a moment, and no operation was over at once, as those are that wait for a reader who is late. Not
/// rank_time() throughout: bytes arrive in segments of 64 KiB, so that of a few short operations the middle
/// one reads up to a tenth too fast (docs/measurement.md).
[[nodiscard]] Result<Ns> transfer_time(const Sample& sample);

/// The operation's time: the maximum of the ranks' medians (docs/measurement.md says why not the median of
/// maxima). Error naming the first rank without samples.
[[nodiscard]] Result<Ns> operation_time(const std::vector<Sample>& samples);

/// The part of the timed span in which the processes of all these ranks can be said to have run: the product,
/// over the ranks, of 1 less twice what the process is known to have been kept. 1 where none was kept, 0 from
/// half of the span on. Twice, since pieces below 2 ms are not seen, nor the first milliseconds of each where
/// it slept (fabric/pulse.h), and buffers that ran empty take time to fill; and since the product takes it
/// that stops fall together as chance has it, while such as never do add up. Kept for x of the span in all
/// they leave 1 - x, and the product is e^-2x at most, which is less up to an x of 0.8. `span`: of all; where
/// zero, each sample's own. A kept process with a span of zero leaves 0, and so does one whose node lacked
/// something: how long nobody knows.
[[nodiscard]] double part_running(const std::vector<Sample>& samples, Ns span = Ns::zero());

/// What a way that carried so many bytes for others in `span` would have carried for the check instead: twice
/// as much, since a protocol that gives way gets less than the others leave (docs/measurement.md). 0 where
/// the span is zero.
[[nodiscard]] Rate room_of_others(std::uint64_t bytes, Ns span);

struct Spread {
  Ns median{}, p5{}, p95{};
  double variation = 0;  ///< standard deviation / mean of the differences
};
[[nodiscard]] Result<Spread> spread_of(const Sample& sample);

/// Above this coefficient of variation a run is called noisy. 0.25: twice what idle shaped links show.
inline constexpr double kNoisy = 0.25;

}  // namespace netcheck
