// Rates, sizes and times, read from people and printed for them. Pure; compiled into the plugin as well.
#include "contract/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace netcheck {

namespace {

/// 1e15 bit/s is three hundred times the fastest node sold (3.2 Tb/s); above it is a slip of the hand.
constexpr double kMaxBitsPerSecond = 1e15;
constexpr double kMaxSeconds = 86'400;  ///< one day: no job waits longer for a check
constexpr std::size_t kMaxNumberBytes = 32;
constexpr const char* kRateExample = "for example 400Gbps or 50GB/s";
constexpr const char* kDurationExample = "for example 8s, 500ms or 2min";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// "400Gbps" → 400 and "Gbps". The number is plain decimal: no sign, no exponent, no "inf" or "nan", so that
/// what is accepted is what a person would write.
struct Quantity {
  double number = 0;
  std::string_view unit;
};

Result<Quantity> split_quantity(std::string_view what, std::string_view text, const char* example) {
  const auto refuse = [&](std::string reason) {
    return fail(fmt::format("read the {}", what), fmt::format("'{}'", printable(text, 48)), std::move(reason),
                example);
  };
  if (text.empty()) return refuse("it is empty");
  if (text.front() == '-') return refuse("it is negative");
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string_view digits = text.substr(0, end);
  if (digits.empty() || digits.front() == '.') return refuse("it does not begin with a number");
  if (digits.size() > kMaxNumberBytes) return refuse("its number is too long");
  Quantity quantity;
  const char* last = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), last, quantity.number, std::chars_format::fixed);
  if (error != std::errc{} || stop != last || digits.back() == '.' || !std::isfinite(quantity.number))
    return refuse(fmt::format("'{}' is not a number", digits));
  if (quantity.number == 0) return refuse("it must be above zero");
  if (end == std::string_view::npos) return refuse("it has no unit");
  quantity.unit = text.substr(end);
  return quantity;
}

/// Bits per second of one unit; 0 when it is none. The letter b or B alone tells bits from bytes.
double rate_unit(std::string_view unit) {
  double scale = 1;
  if (!unit.empty()) {
    switch (lower(unit.front())) {
      case 'k':
        scale = 1e3;
        break;
      case 'm':
        scale = 1e6;
        break;
      case 'g':
        scale = 1e9;
        break;
      case 't':
        scale = 1e12;
        break;
      default:
        break;
    }
    if (scale > 1) unit.remove_prefix(1);
  }
  if (unit.size() != 3 || lower(unit[2]) != 's') return 0;
  if (unit[0] == 'b' && lower(unit[1]) == 'p') return scale;
  if (unit[0] == 'B' && unit[1] == '/') return scale * 8;
  return 0;
}

/// Up to three decimals without trailing zeros: "400", "1.25".
std::string trimmed(double number) {
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Rate rate_of(double bytes, Ns took) {
  return {bytes * 8 / std::chrono::duration<double>(took).count()};
}

Result<Rate> parse_rate(std::string_view text) {
  auto quantity = split_quantity("rate", text, kRateExample);
  if (!quantity) return tl::unexpected(quantity.error());
  const auto refuse = [&](std::string reason) {
    return fail("read the rate", fmt::format("'{}'", printable(text, 48)), std::move(reason), kRateExample);
  };
  const double scale = rate_unit(quantity->unit);
  if (scale == 0) {
    return refuse(
        fmt::format("'{}' is no unit: bits per second are bps, Kbps, Mbps, Gbps, Tbps, bytes B/s, KB/s, "
                    "MB/s, GB/s, TB/s",
                    printable(quantity->unit, 16)));
  }
  const double rate = quantity->number * scale;
  if (rate < 1 || rate > kMaxBitsPerSecond) return refuse("it must be from 1bps to 1000Tbps");
  return Rate{rate};
}

Result<Ns> parse_duration(std::string_view text) {
  auto quantity = split_quantity("time", text, kDurationExample);
  if (!quantity) return tl::unexpected(quantity.error());
  const auto refuse = [&](std::string reason) {
    return fail("read the time", fmt::format("'{}'", printable(text, 48)), std::move(reason),
                kDurationExample);
  };
  double scale = 0;
  if (quantity->unit == "ms") scale = 1e-3;
  if (quantity->unit == "s") scale = 1;
  if (quantity->unit == "min") scale = 60;
  if (scale == 0)
    return refuse(fmt::format("'{}' is no unit: they are ms, s, min", printable(quantity->unit, 16)));
  const double seconds = quantity->number * scale;
  if (seconds > kMaxSeconds) return refuse("it is above one day");
  const Ns duration{std::llround(seconds * 1e9)};
  if (duration <= Ns::zero()) return refuse("it must be above zero");
  return duration;
}

std::string format_rate(Rate rate, bool trim) {
  struct Step {
    double from;
    const char* unit;
  };
  static constexpr std::array<Step, 3> kSteps{{{1e9, "Gbps"}, {1e6, "Mbps"}, {1e3, "Kbps"}}};
  double number = rate.bits_per_second;
  const char* unit = "bps";
  for (const Step& step : kSteps) {
    if (rate.bits_per_second < step.from) continue;
    number = rate.bits_per_second / step.from;
    unit = step.unit;
    break;
  }
  return trim ? trimmed(number) + unit : fmt::format("{:.1f}{}", number, unit);
}

std::string format_duration(Ns duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds >= 0.9995) return fmt::format("{:.1f}s", seconds);
  if (seconds >= 0.001 || seconds == 0) return fmt::format("{:.0f}ms", seconds * 1e3);
  return fmt::format("{:.0f}us", seconds * 1e6);
}

std::string format_bytes(std::uint64_t bytes) {
  struct Step {
    unsigned shift;
    const char* unit;
  };
  static constexpr std::array<Step, 3> kSteps{{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};
  for (const Step& step : kSteps) {
    const std::uint64_t size = std::uint64_t{1} << step.shift;
    if (bytes >= size && bytes % size == 0) return fmt::format("{}{}", bytes >> step.shift, step.unit);
  }
  return fmt::format("{}B", bytes);
}

}  // namespace netcheck
