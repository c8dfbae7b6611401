// Order statistics over completion times. Pure. Called by the judge (root and probe user) and the benches.
#include "measure/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace netcheck {
namespace {

/// A median absolute deviation of normal noise, times this, is its standard deviation: 1 / Φ⁻¹(3/4).
constexpr double kMadToSigma = 1.4826;

tl::unexpected<Error> no_samples(const Sample& sample) {
  return fail("time", fmt::format("rank {}", sample.rank), "it completed no timed operation");
}

/// Times per operation in nanoseconds. The first completion counts only when there is no other: it holds the
/// ranks' different ways out of the barrier.
std::vector<double> differences(const Sample& sample) {
  std::vector<double> values;
  if (sample.done.size() == 1) values.push_back(static_cast<double>(sample.done.front().count()));
  for (std::size_t i = 1; i < sample.done.size(); ++i)
    values.push_back(static_cast<double>((sample.done[i] - sample.done[i - 1]).count()));
  return values;
}

/// A mean above this many medians is no mean of operations that are alike. Its inverse is the part of the
/// median below which a node counts as slow: one late moment makes nobody slow.
constexpr double kStoodStill = 1.25;
/// An operation of less than this part of the median had been waiting when its turn came: the bytes were
/// there, and only the reader was late. Then the median reads too fast, and the mean is the truth.
constexpr double kCaughtUp = 0.5;

/// Of 10 ms stops and 10 ms runs 35 to 45 % is seen, and rates fell to 0.7.
constexpr double kCountsFor = 2;

Ns rounded(double nanoseconds) {
  return Ns{std::llround(nanoseconds)};
}

}  // namespace

std::optional<double> median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

std::optional<double> quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

std::optional<double> spread(const std::vector<double>& values) {
  const auto middle = median(values);
  if (!middle) return std::nullopt;
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values)
    deviations.push_back(std::abs(value - *middle));
  return *median(std::move(deviations)) * kMadToSigma;
}

Result<Ns> rank_time(const Sample& sample) {
  const auto middle = median(differences(sample));
  if (!middle) return no_samples(sample);
  const Ns time = rounded(*middle);
  if (time <= Ns::zero())
    return fail("time", fmt::format("rank {}", sample.rank), "its operations took no time at all");
  return time;
}

Result<Ns> mean_time(const Sample& sample) {
  if (sample.done.empty()) return no_samples(sample);
  const Ns time =
      rounded(static_cast<double>(sample.done.back().count()) / static_cast<double>(sample.done.size()));
  if (time <= Ns::zero())
    return fail("time", fmt::format("rank {}", sample.rank), "its operations took no time at all");
  return time;
}

Result<Ns> transfer_time(const Sample& sample) {
  auto mean = mean_time(sample);
  const auto middle = rank_time(sample);
  if (!mean || !middle) return mean;
  const auto median_ns = static_cast<double>(middle->count());
  const bool stood_still = static_cast<double>(mean->count()) > kStoodStill * median_ns;
  const bool caught_up = std::ranges::min(differences(sample)) < kCaughtUp * median_ns;
  return stood_still && !caught_up ? middle : mean;
}

Result<Ns> operation_time(const std::vector<Sample>& samples) {
  if (samples.empty()) return fail("time", "the operation", "no rank reported");
  Ns slowest{};
  for (const auto& sample : samples) {
    const auto time = rank_time(sample);
    if (!time) return tl::unexpected(time.error());
    slowest = std::max(slowest, *time);
  }
  return slowest;
}

double part_running(const std::vector<Sample>& samples, Ns span) {
  double part = 1;
  for (const auto& sample : samples) {
    if (sample.lack != Lack::nothing) return 0;
    if (sample.kept <= Ns::zero()) continue;
    Ns whole = span;
    if (whole == Ns::zero() && !sample.done.empty()) whole = sample.done.back();
    if (whole <= Ns::zero()) return 0;
    const double seen = static_cast<double>(sample.kept.count()) / static_cast<double>(whole.count());
    part *= std::max(0.0, 1 - kCountsFor * seen);
  }
  return part;
}

Rate room_of_others(std::uint64_t bytes, Ns span) {
  if (span <= Ns::zero()) return {};
  return {kCountsFor * rate_of(static_cast<double>(bytes), span).bits_per_second};
}

Result<Spread> spread_of(const Sample& sample) {
  const std::vector<double> values = differences(sample);
  if (values.empty()) return no_samples(sample);
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  const double deviation = values.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
  return Spread{.median = rounded(*median(values)),
                .p5 = rounded(*quantile(values, 0.05)),
                .p95 = rounded(*quantile(values, 0.95)),
                .variation = mean > 0 ? deviation / mean : 0};
}

}  // namespace netcheck
