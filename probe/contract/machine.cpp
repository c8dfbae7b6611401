// PCIe's generations and rates, and how they are written for people. Pure.
#include "contract/machine.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace netcheck {

namespace {

/// GT/s of one lane by generation: PCI Express Base Specification, revisions 1.0 to 6.0.
constexpr std::array<double, 6> kGenerations = {2.5, 5, 8, 16, 32, 64};

double payload_of(double gigatransfers) {
  if (gigatransfers <= 5) return 8.0 / 10;
  if (gigatransfers <= 32) return 128.0 / 130;
  return 242.0 / 256;
}

}  // namespace

Rate rate_of(const PciSpeed& speed) {
  return {speed.gigatransfers * 1e9 * speed.lanes * payload_of(speed.gigatransfers)};
}

std::string format_speed(const PciSpeed& speed) {
  for (std::size_t i = 0; i < kGenerations.size(); ++i)
    if (std::abs(kGenerations[i] - speed.gigatransfers) < 0.01)
      return fmt::format("Gen{} x{}", i + 1, speed.lanes);
  return fmt::format("{:g} GT/s x{}", speed.gigatransfers, speed.lanes);
}

std::string in_words(Rate rate) {
  const double gigabits = rate.bits_per_second / 1e9;
  if (gigabits <= 0) return "0 Gb/s";
  if (gigabits >= 99.95) return fmt::format("{:.0f} Gb/s", gigabits);
  if (gigabits >= 1) return fmt::format("{:g} Gb/s", std::round(gigabits * 10) / 10);
  return fmt::format("{:g} Mb/s", std::round(gigabits * 1e4) / 10);
}

}  // namespace netcheck
