// Starting and ending programs: nothing leaks in, nothing is left over.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/loop.h"
#include "system/proc.h"
#include "system/process.h"

namespace netcheck::system {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Launch shell(const std::string& script) {
  return Launch{.program = "/bin/sh", .arguments = {"-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

std::string output_of(const std::string& script) {
  const auto finished = run_to_end(shell(script), now() + seconds(10));
  return finished ? finished->output : describe(finished.error());
}

TEST(Process, StartsWithNothingButTheEnvironmentNamed) {
  ::setenv("NETCHECK_LEAK", "1", 1);
  EXPECT_THAT(output_of("env"), Not(HasSubstr("NETCHECK_LEAK")));
}

TEST(Process, ClosesEveryDescriptorThatIsNotNamed) {
  const Descriptor leak(::open("/dev/null", O_RDONLY));     // deliberately without O_CLOEXEC
  EXPECT_EQ(output_of("ls /proc/self/fd | wc -l"), "4\n");  // 0, 1, 2 and ls's own of the folder
}

TEST(Process, PlacesDescriptorsWhoseNumbersOverlap) {
  int first[2];
  int second[2];
  ASSERT_EQ(::pipe(first), 0);
  ASSERT_EQ(::pipe(second), 0);
  const Descriptor a(first[0]), a_write(first[1]), b(second[0]), b_write(second[1]);
  Launch launch =
      shell("echo one >&" + std::to_string(b_write.get()) + "; echo two >&" + std::to_string(a_write.get()));
  launch.descriptors = {{a_write.get(), b_write.get()}, {b_write.get(), a_write.get()}};
  auto process = Process::start(launch);
  ASSERT_TRUE(process) << describe(process.error());
  EXPECT_EQ(process->wait(now() + seconds(5)), 0);
  char text[8]{};
  ASSERT_EQ(::read(a.get(), text, 4), 4);
  EXPECT_STREQ(text, "one\n");
  ASSERT_EQ(::read(b.get(), text, 4), 4);
  EXPECT_STREQ(text, "two\n");
}

TEST(Process, SaysWhyAProgramDoesNotStart) {
  const auto process = Process::start(Launch{.program = "/nonexistent/program"});
  ASSERT_FALSE(process);
  EXPECT_THAT(describe(process.error()), HasSubstr("No such file or directory"));
}

TEST(Process, KillsTheWholeGroup) {
  auto process = Process::start(shell("sleep 1000 & sleep 1000 & wait"));
  ASSERT_TRUE(process);
  while (descendants_of(process->pid()).size() < 2)
    ::usleep(1000);
  const auto children = descendants_of(process->pid());
  process->kill_group();
  ASSERT_TRUE(process->wait(now() + seconds(5)));
  for (const auto& child : children) {
    const Time deadline = now() + seconds(5);
    while (start_time_of(child.pid) == child.start_time && now() < deadline)
      ::usleep(1000);
    EXPECT_NE(start_time_of(child.pid), child.start_time);
  }
}

TEST(Process, DropsToTheAccountForGood) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  const auto account = find_account("games", now() + seconds(10));  // in every Debian's passwd, owns nothing
  ASSERT_TRUE(account);
  Launch launch = shell("id -u; id -G; cat /proc/self/status | grep NoNewPrivs");
  launch.account = *account;
  const auto finished = run_to_end(launch, now() + seconds(10));
  ASSERT_TRUE(finished) << describe(finished.error());
  EXPECT_EQ(finished->output,
            std::to_string(account->uid) + "\n" + std::to_string(account->gid) + "\nNoNewPrivs:\t1\n");
}

TEST(Process, NeverRaisesALimit) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  Launch inner = shell("ulimit -H -p; ulimit -p");
  inner.account = Account{"", 64'998, 64'998};
  inner.max_tasks = 1'000;
  auto limited = Process::fork([&] {
    const rlimit less{300, 400};
    ::setrlimit(RLIMIT_NPROC, &less);
    const auto finished = run_to_end(inner, now() + seconds(10));
    return finished && finished->output == "400\n300\n" ? 0 : 1;
  });
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->wait(now() + seconds(20)), 0);
}

TEST(Process, IsACopyThatEndsWithWhatItsBodyReturns) {
  auto copy = Process::fork([] { return 42; });
  ASSERT_TRUE(copy) << describe(copy.error());
  EXPECT_EQ(copy->wait(now() + seconds(10)), 42 << 8);  // as waitpid gives it
}

TEST(Process, EndsACopyThatHangs) {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
  {
    auto copy = Process::fork([] { return ::pause(); });
    ASSERT_TRUE(copy) << describe(copy.error());
    EXPECT_FALSE(copy->wait(now() + milliseconds(50)));
    pid = copy->pid();
    start_time = copy->start_time();
  }
  EXPECT_NE(start_time_of(pid), start_time);
}

TEST(FindAccount, KnowsAnAccountAndSaysWhenThereIsNone) {
  const auto root = find_account("root", now() + seconds(10));
  ASSERT_TRUE(root) << describe(root.error());
  EXPECT_EQ(root->uid, 0U);
  EXPECT_EQ(root->gid, 0U);
  const auto none = find_account("no-such-account", now() + seconds(10));
  ASSERT_FALSE(none);
  EXPECT_THAT(describe(none.error()), HasSubstr("no-such-account: no such account"));
}

TEST(Process, ResetsTheOomScoreThatSlurmdHandsDown) {
  Launch launch = shell("cat /proc/self/oom_score_adj");
  launch.oom_score_adj = 300;
  const auto finished = run_to_end(launch, now() + seconds(10));
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->output, "300\n");
}

TEST(Process, UnblocksSignalsThatTheParentBlocked) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const std::string blocked = output_of("grep SigBlk /proc/self/status");
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(blocked, HasSubstr("0000000000000000"));
}

TEST(RunToEnd, GivesUpAtTheDeadlineAndSaysSo) {
  const auto finished = run_to_end(shell("sleep 1000"), now() + milliseconds(50));
  ASSERT_FALSE(finished);
  EXPECT_THAT(describe(finished.error()), HasSubstr("did not end in time"));
}

TEST(RunToEnd, DoesNotWaitForAnOrphanThatHoldsThePipe) {
  const Time begin = now();
  const auto finished = run_to_end(shell("sleep 1000 & echo done"), begin + seconds(60));
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->output, "done\n");
  EXPECT_LT(now() - begin, seconds(50));  // the condition is: not the deadline
}

TEST(RunToEnd, CutsAFlood) {
  const auto finished = run_to_end(shell("head -c 5000000 /dev/zero"), now() + seconds(30), 1000);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->output.size(), 1000U);
}

/// Runs `body` in a child that is a subreaper of its own, so that the test program keeps its children.
int in_a_child(int (*body)()) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(EndDescendants, ReachesAnOrphanInItsOwnSession) {
  EXPECT_EQ(in_a_child([] {
              become_subreaper();
              auto process = Process::start(shell("setsid sh -c 'sleep 1000 & sleep 1000' & exit 0"));
              if (!process || !process->wait(now() + seconds(5))) return 1;
              while (descendants_of(::getpid()).size() < 2)
                ::usleep(1000);
              if (!end_descendants(now() + seconds(5)).empty()) return 2;
              return descendants_of(::getpid()).empty() ? 0 : 3;
            }),
            0);
}

TEST(EndDescendants, ReachesProcessesThatForkFasterThanTheyCanBeListed) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_a_child([] {
              become_subreaper();
              const Account account{"", 64'999, 64'999};  // nobody's
              Launch launch = shell("for i in 1 2 3 4; do (hop() { (hop) & exit; }; hop) & done; exit 0");
              launch.account = account;
              auto process = Process::start(launch);
              if (!process) return 1;
              ::usleep(100'000);
              if (!end_descendants(now() + seconds(10), account).empty()) return 2;
              return descendants_of(::getpid()).empty() ? 0 : 3;
            }),
            0);
}

TEST(EndDescendants, EndsAStoppedProcess) {
  EXPECT_EQ(in_a_child([] {
              become_subreaper();
              auto process = Process::start(shell("kill -STOP $$"));
              return process && end_descendants(now() + seconds(5)).empty() ? 0 : 1;
            }),
            0);
}

TEST(Process, StopsAnAccountThatForksWithoutEnd) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_a_child([] {
              become_subreaper();
              const Account account{"", 64'998, 64'998};  // nobody's
              // dash ends where it cannot fork. Itself and the 19 that it gets are the account's 20.
              Launch launch = shell("for i in $(seq 100); do sleep 1000 & echo $i; done");
              launch.account = account;
              launch.max_tasks = 20;
              const auto stopped = run_to_end(launch, now() + seconds(20));
              if (!end_descendants(now() + seconds(10), account).empty() || !stopped) return 1;
              if (!stopped->output.ends_with("\n19\n")) return 2;
              return stopped->errors.find("Cannot fork") == std::string::npos ? 3 : 0;
            }),
            0);
}

TEST(ParseStat, IsNotFooledByTheCommandName) {
  const auto stat =
      parse_stat("42 (a) R 1 (b)) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1000 1\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->start_time, 987654U);
}

TEST(ParseStat, RefusesWhatIsCut) {
  EXPECT_FALSE(parse_stat("42 (sh) S 7 42"));
  EXPECT_FALSE(parse_stat(""));
}

TEST(StartTimeOf, KnowsOneProcessFromAnother) {
  EXPECT_TRUE(start_time_of(::getpid()));
  EXPECT_FALSE(start_time_of(0x3fffffff));  // above the kernel's largest pid, 2^22
}

}  // namespace
}  // namespace netcheck::system
