// One thread, descriptors and timers: where a process waits. Every wait in the program is a Loop with a
// deadline. Used by the supervisor, the probe and the fabric child.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "contract/units.h"

namespace netcheck::system {

[[nodiscard]] Time now();  ///< CLOCK_MONOTONIC

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  enum Interest : std::uint8_t { kRead = 1, kWrite = 2 };
  /// Calls `ready(events)` whenever `fd` is readable/writable, closed or in error (then both bits). Replaces
  /// what was set.
  void watch(int fd, std::uint8_t interest, std::function<void(std::uint8_t)> ready);
  /// Must be called before `fd` is closed. Safe from within a callback.
  void forget(int fd);

  using Timer = std::uint64_t;
  Timer at(Time when, std::function<void()> fire);
  void cancel(Timer timer);  ///< harmless when it has fired
  /// Runs soon, from the loop, not from the caller's stack.
  void post(std::function<void()> call);

  /// Until stop() or `deadline`. True: stopped; false: the deadline came.
  bool run_until(Time deadline);
  /// One turn: waits at most until `deadline`, dispatches what is ready.
  void turn(Time deadline);
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace netcheck::system
