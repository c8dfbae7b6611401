#include "fabric/pulse.h"

#include <algorithm>
#include <ctime>

namespace netcheck::fabric {

namespace {

/// What is missing between two beats counts from here on: timers are a millisecond late, and a kernel that
/// keeps books on interrupts takes their part of a working millisecond off the thread's. A busy machine's
/// scheduler takes 3 ms and more at a time.
constexpr Ns kLeast = std::chrono::milliseconds(2);

Ns processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Ns(time.tv_nsec);
}

}  // namespace

Pulse::Pulse() : wall_(std::chrono::steady_clock::now()), processor_(processor_time()) {}

void Pulse::beat() {
  const Time wall = std::chrono::steady_clock::now();
  const Ns processor = processor_time();
  const Ns rested = std::max(Ns::zero(), std::min(rest_until_, wall) - wall_);
  const Ns missing = (wall - wall_) - rested - (processor - processor_);
  if (missing >= kLeast) kept_ += missing;
  wall_ = wall;
  processor_ = processor;
  rest_until_ = {};
}

Ns Pulse::kept() {
  beat();
  return kept_;
}

}  // namespace netcheck::fabric
