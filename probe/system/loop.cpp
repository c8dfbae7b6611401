// epoll for descriptors, an ordered map for timers.
#include "system/loop.h"

#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "system/descriptor.h"

namespace netcheck::system {

Time now() {
  timespec ts{};
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return Time(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

struct Loop::State {
  struct Watch {
    std::uint8_t interest = 0;
    std::uint64_t generation =
        0;  // tells a new watch of a reused descriptor number from the old one's pending event
    std::function<void(std::uint8_t)> ready;
  };
  Descriptor epoll;
  std::unordered_map<int, Watch> watches;
  std::map<std::pair<Time, Timer>, std::function<void()>> timers;
  std::map<Timer, Time> timer_times;
  std::vector<std::function<void()>> posted;
  Timer next_timer = 1;
  std::uint64_t next_generation = 1;
  bool stopped = false;

  void fire_timers();
  void run_posted();
  [[nodiscard]] int timeout_ms(Time deadline) const;
};

Loop::Loop() : state_(std::make_unique<State>()) {
  state_->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!state_->epoll) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

Loop::~Loop() = default;

void Loop::watch(int fd, std::uint8_t interest, std::function<void(std::uint8_t)> ready) {
  const bool known = state_->watches.contains(fd);
  State::Watch& entry = state_->watches[fd];
  entry.interest = interest;
  entry.generation = state_->next_generation++;
  entry.ready = std::move(ready);
  epoll_event event{};
  event.events = ((interest & kRead) != 0 ? EPOLLIN : 0U) | ((interest & kWrite) != 0 ? EPOLLOUT : 0U);
  event.data.u64 = (entry.generation << 32U) | static_cast<std::uint32_t>(fd);
  const int operation = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(state_->epoll.get(), operation, fd, &event) == 0) return;
  // A descriptor number that was closed without forget() and given out again: its watch is not in the
  // kernel's set.
  if (errno == ENOENT && ::epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  const int error = errno;
  state_->watches.erase(fd);
  throw std::system_error(error, std::generic_category(), "epoll_ctl");
}

void Loop::forget(int fd) {
  if (state_->watches.erase(fd) > 0) ::epoll_ctl(state_->epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::Timer Loop::at(Time when, std::function<void()> fire) {
  const Timer timer = state_->next_timer++;
  state_->timers.emplace(std::make_pair(when, timer), std::move(fire));
  state_->timer_times.emplace(timer, when);
  return timer;
}

void Loop::cancel(Timer timer) {
  const auto found = state_->timer_times.find(timer);
  if (found == state_->timer_times.end()) return;
  state_->timers.erase({found->second, timer});
  state_->timer_times.erase(found);
}

void Loop::post(std::function<void()> call) {
  state_->posted.push_back(std::move(call));
}

void Loop::stop() {
  state_->stopped = true;
}

void Loop::State::fire_timers() {
  const Time current = now();
  while (!timers.empty() && timers.begin()->first.first <= current) {
    auto fire = std::move(timers.begin()->second);
    timer_times.erase(timers.begin()->first.second);
    timers.erase(timers.begin());
    fire();
  }
}

void Loop::State::run_posted() {
  std::vector<std::function<void()>> calls;
  calls.swap(posted);
  for (auto& call : calls)
    call();
}

int Loop::State::timeout_ms(Time deadline) const {
  if (!posted.empty()) return 0;
  Time until = deadline;
  if (!timers.empty()) until = std::min(until, timers.begin()->first.first);
  const Time current = now();
  if (until <= current) return 0;
  // Rounded up: waking a millisecond early would spin. A minute at most, so that the count fits whatever the
  // deadline.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - current);
  return static_cast<int>(std::min<std::chrono::milliseconds>(wait, std::chrono::minutes(1)).count());
}

void Loop::turn(Time deadline) {
  constexpr int kEventsPerTurn = 256;  // fair to timers with a thousand followers talking at once
  std::array<epoll_event, kEventsPerTurn> events{};
  const int count =
      ::epoll_wait(state_->epoll.get(), events.data(), kEventsPerTurn, state_->timeout_ms(deadline));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
    const auto found = state_->watches.find(fd);
    if (found == state_->watches.end()) continue;
    if ((found->second.generation & 0xffffffffU) != event.data.u64 >> 32U) continue;
    std::uint8_t ready = 0;
    if ((event.events & EPOLLIN) != 0) ready |= kRead;
    if ((event.events & EPOLLOUT) != 0) ready |= kWrite;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) ready |= kRead | kWrite;
    auto call = found->second.ready;  // a copy: the callback may forget or replace itself
    call(ready);
  }
  state_->run_posted();
  state_->fire_timers();
}

bool Loop::run_until(Time deadline) {
  state_->stopped = false;
  while (!state_->stopped) {
    if (now() >= deadline) return false;
    turn(deadline);
  }
  return true;
}

}  // namespace netcheck::system
