// Virtual time: an event heap. Events of one instant run in the order in which they were set, so a run
// depends on its seed alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "contract/units.h"

namespace netcheck::sim {

class Clock {
 public:
  [[nodiscard]] Time now() const { return now_; }

  void at(Time when, std::function<void()> happen) {
    heap_.push_back({std::max(when, now_), next_++, std::move(happen)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void after(Ns delay, std::function<void()> happen) { at(now_ + delay, std::move(happen)); }

  /// The next event; false when there is none, or none before `limit`.
  bool step(Time limit) {
    if (heap_.empty() || heap_.front().when > limit) return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Event event = std::move(heap_.back());
    heap_.pop_back();
    now_ = event.when;
    event.happen();
    return true;
  }

 private:
  struct Event {
    Time when;
    std::uint64_t order = 0;
    std::function<void()> happen;
  };
  static bool later(const Event& a, const Event& b) {
    return std::pair(a.when, a.order) > std::pair(b.when, b.order);
  }
  std::vector<Event> heap_;
  std::uint64_t next_ = 0;
  Time now_{};
};

}  // namespace netcheck::sim
