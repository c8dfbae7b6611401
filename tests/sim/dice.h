// Everything random in a run comes from here, and so from its seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "contract/units.h"

namespace netcheck::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  [[nodiscard]] double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  /// 0 … count − 1.
  [[nodiscard]] std::uint32_t pick(std::uint32_t count) {
    return static_cast<std::uint32_t>(engine_() % count);
  }
  [[nodiscard]] std::uint32_t pick(std::uint32_t first, std::uint32_t last) {
    return first + pick(last - first + 1);
  }
  [[nodiscard]] bool chance(double probability) { return real(0, 1) < probability; }
  [[nodiscard]] double logarithmic(double low, double high) {
    return low * std::exp(real(0, 1) * std::log(high / low));
  }
  [[nodiscard]] Ns time(Ns low, Ns high) {
    return Ns(
        static_cast<std::int64_t>(real(static_cast<double>(low.count()), static_cast<double>(high.count()))));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace netcheck::sim
