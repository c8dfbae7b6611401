// Questions that hang, crash or flood, and what becomes of them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <thread>

#include "contract/wire.h"
#include "doctor/collect.h"
#include "doctor/question.h"
#include "system/loop.h"

namespace netcheck::doctor {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(DoctorQuestions, AreAskedAtOnceAndAnsweredByName) {
  const Time began = system::now();
  Questions questions;
  for (const char* name : {"a", "b", "c", "d"})
    questions.ask(name, 10s, [name] {
      std::this_thread::sleep_for(300ms);
      return Result<Json>(Json(name));
    });
  const auto answers = questions.answers();
  EXPECT_LT(system::now() - began, 1'200ms);  // one after another they would take that
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(*answers.at("c"), Json("c"));
}

TEST(DoctorQuestions, AreGivenUpAtTheirTimeAndTheirChildKilled) {
  Questions questions;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  questions.ask("hangs", 100ms, [] {
    for (;;)
      ::pause();
    return Result<Json>(Json());
  });
  questions.ask("well", 10s, [] { return Result<Json>(Json(7)); });
  ::close(ends[1]);  // now the children alone hold it: it closes when they are gone
  const auto answers = questions.answers();
  EXPECT_EQ(*answers.at("well"), Json(7));
  ASSERT_FALSE(answers.at("hangs"));
  EXPECT_THAT(answers.at("hangs").error().reason, HasSubstr("no answer within 100ms"));
  char nothing = 0;
  EXPECT_EQ(::read(ends[0], &nothing, 1), 0);
  ::close(ends[0]);
}

TEST(DoctorQuestions, SayThatTheirChildDied) {
  Questions questions;
  questions.ask("dies", 10s, [] {
    ::raise(SIGKILL);
    return Result<Json>(Json());
  });
  questions.ask("throws", 10s, []() -> Result<Json> { throw std::runtime_error("odd"); });
  questions.ask("fails", 10s, []() -> Result<Json> { return fail("try", "it", "no \x01 luck", "again"); });
  questions.ask("floods", 10s, [] { return Result<Json>(Json(std::string(3U << 20U, 'x'))); });
  questions.ask("prints", 10s, [] {
    std::printf("not in the report\n");
    std::fflush(stdout);
    return Result<Json>(Json(1));
  });
  testing::internal::CaptureStdout();
  const auto answers = questions.answers();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(answers.at("dies").error().reason, HasSubstr("signal 9"));
  EXPECT_EQ(answers.at("throws").error().reason, "odd");
  EXPECT_EQ(answers.at("fails").error().remedy, "again");
  EXPECT_FALSE(answers.at("floods"));
  EXPECT_TRUE(answers.at("prints"));
}

TEST(DoctorCollect, NamesWhoElseHasTheAccountsNumber) {
  const auto root = ask_account("root");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->at("uid"), 0);
  EXPECT_EQ(ask_account("no-such-account")->at("found"), false);
  EXPECT_TRUE(account_facts("no-such-account", ask_account("no-such-account")).missing);
}

TEST(DoctorCollect, ResolvesWithoutANetwork) {
  const auto numbers = look_up("127.0.0.1");
  ASSERT_TRUE(numbers);
  EXPECT_EQ(*numbers, Json::array({"127.0.0.1"}));
  EXPECT_FALSE(look_up("no such name"));
  EXPECT_THAT(ask_interfaces(Policy{}, "n1", "127.0.0.1").error().reason, HasSubstr("loopback"));
}

TEST(DoctorCollect, SeesFilesAsTheyAre) {
  EXPECT_FALSE(look_at("/no/such/file").there);
  EXPECT_TRUE(look_at("/tmp").folder);
  EXPECT_FALSE(look_at("/proc/self/cwd", false).folder);  // a symbolic link
  const auto own = running_processes();
  EXPECT_TRUE(
      std::ranges::any_of(own, [](const Running& one) { return one.pid == ::getpid() && !one.elsewhere; }));
}

TEST(DoctorCollect, RunsProgramsWithADeadline) {
  EXPECT_EQ(*ask_program("/bin/echo", {"slurm 1"}, 10s), Json("slurm 1\n"));
  EXPECT_THAT(ask_program("/bin/false", {}, 10s).error().reason, HasSubstr("exit 1"));
  EXPECT_FALSE(ask_program("/bin/sleep", {"100"}, 100ms));
  EXPECT_EQ(find_program("no-such-program", ""), "");
}

}  // namespace
}  // namespace netcheck::doctor
