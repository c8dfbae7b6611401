// What a process was kept from running. Relations between clocks, never times: this machine is busy.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <functional>
#include <thread>

#include "fabric/pulse.h"

namespace netcheck::fabric {
namespace {

using std::chrono::milliseconds;

Time now() {
  return std::chrono::steady_clock::now();
}

/// Beats for so long, as the host does while its module works.
void work(Pulse& pulse, Ns time) {
  for (const Time end = now() + time; now() < end;)
    pulse.beat();
}

/// What a child that works for 400 ms is told that it was kept, while `disturb` has it.
Ns kept_of_child(const std::function<void(pid_t)>& disturb) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Pulse pulse;
    EXPECT_EQ(::write(ends[1], "", 1), 1);
    work(pulse, milliseconds(400));
    const Ns kept = pulse.kept();
    ::_exit(::write(ends[1], &kept, sizeof kept) == sizeof kept ? 0 : 1);
  }
  char begun = 0;
  EXPECT_EQ(::read(ends[0], &begun, 1), 1);
  disturb(child);
  Ns kept{-1};
  EXPECT_EQ(::read(ends[0], &kept, sizeof kept), static_cast<ssize_t>(sizeof kept));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return kept;
}

TEST(Pulse, MissesWhatTheProcessWasStopped) {
  Ns stopped{};
  const Ns kept = kept_of_child([&](pid_t child) {
    ::kill(child, SIGSTOP);
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    const Time begin = now();
    std::this_thread::sleep_for(milliseconds(100));
    stopped = now() - begin;
    ::kill(child, SIGCONT);
  });
  EXPECT_GE(kept, stopped);
}

TEST(Pulse, MissesManyShortStops) {
  Ns stopped{};
  const Ns kept = kept_of_child([&](pid_t child) {
    for (int i = 0; i < 5; ++i) {
      ::kill(child, SIGSTOP);
      int status = 0;
      if (::waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return;
      const Time begin = now();
      std::this_thread::sleep_for(milliseconds(20));
      stopped += now() - begin;
      ::kill(child, SIGCONT);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  EXPECT_GE(kept, stopped);
}

TEST(Pulse, LeavesOutARestThatWasAnnounced) {
  const Time begin = now();
  Pulse pulse;
  pulse.rest_until(now() + milliseconds(50));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LE(pulse.kept(), now() - begin - milliseconds(49));
}

TEST(Pulse, CountsASleepThatWasNot) {
  Pulse pulse;
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_GE(pulse.kept(), milliseconds(25));
}

TEST(Pulse, LeavesOutTheTimeInWhichItWorked) {
  const Time begin = now();
  Pulse pulse;
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  const Ns before = std::chrono::seconds(time.tv_sec) + Ns(time.tv_nsec);
  while (now() < begin + milliseconds(30)) {  // one long call into a library, without a beat
  }
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  const Ns worked = std::chrono::seconds(time.tv_sec) + Ns(time.tv_nsec) - before;
  EXPECT_LE(pulse.kept(), now() - begin - worked + milliseconds(1));
}

TEST(Pulse, TakesNoRestTwice) {
  Pulse pulse;
  pulse.rest_until(now() + std::chrono::hours(1));
  pulse.beat();
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_GE(pulse.kept(), milliseconds(25));
}

}  // namespace
}  // namespace netcheck::fabric
