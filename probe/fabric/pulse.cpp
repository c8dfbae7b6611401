#include "fabric/pulse.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

namespace netcheck::fabric {

namespace {

/// What is missing between two beats counts from here on: timers are a millisecond late, and a kernel that
/// keeps books on interrupts takes their part of a working millisecond off the thread's.
constexpr Ns kLeast = std::chrono::milliseconds(2);
/// The kernel's own account is exact, and has every wake-up of an idle machine in it, microseconds each.
constexpr Ns kLeastQueued = std::chrono::milliseconds(1);

Ns processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Ns(time.tv_nsec);
}

}  // namespace

Pulse::Pulse()
    : schedstat_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)),
      wall_(std::chrono::steady_clock::now()),
      processor_(processor_time()),
      queued_(queued()) {}

Pulse::~Pulse() {
  if (schedstat_ >= 0) ::close(schedstat_);
}

/// The second of three numbers: on a processor, waiting for one, slices. proc(5) has no word of it; the
/// kernel's Documentation/scheduler/sched-stats.rst has.
Ns Pulse::queued() const {
  std::array<char, 96> text{};
  if (schedstat_ < 0 || ::pread(schedstat_, text.data(), text.size() - 1, 0) <= 0) return queued_;
  char* at = nullptr;
  static_cast<void>(std::strtoll(text.data(), &at, 10));
  return Ns(std::strtoll(at, nullptr, 10));
}

void Pulse::beat() {
  const Time wall = std::chrono::steady_clock::now();
  const Ns processor = processor_time(), queue = queued();
  const Ns rested = std::max(Ns::zero(), std::min(rest_until_, wall) - wall_);
  const Ns missing = (wall - wall_) - rested - (processor - processor_);
  const Ns waited = queue - queued_;
  // Stopped or throttled it is in no queue; queued after a rest that ended early, its rest hides it.
  kept_ += std::max(missing >= kLeast ? missing : Ns::zero(), waited >= kLeastQueued ? waited : Ns::zero());
  wall_ = wall;
  processor_ = processor;
  queued_ = queue;
  rest_until_ = {};
}

Ns Pulse::kept() {
  beat();
  return kept_;
}

}  // namespace netcheck::fabric
