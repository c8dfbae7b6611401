// Which of several supervisors makes the check: one for each run of a job, one at a time on a node, and what
// the others say.
#include <sys/file.h>

#include "prolog_stand.h"

namespace netcheck::prolog::test {
namespace {

/// A lock that another job's check holds on this node.
class SuperviseBusy : public Supervise {
 protected:
  void SetUp() override {
    Supervise::SetUp();
    if (IsSkipped()) return;
    std::ofstream(base_ / "run/lock") << "4711\n";
    lock_.reset(::open((base_ / "run/lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(lock_.get(), LOCK_EX), 0);
  }
  system::Descriptor lock_;
};

TEST_F(SuperviseBusy, SaysAtOnceThatAnotherCheckIsRunning) {
  program("touch $BASE/scratch/started; sleep 10");
  const Ran ran = run("n1");
  expect_clean(ran);
  EXPECT_THAT(line(), HasSubstr("another check is running on n1 (job 4711)"));
  EXPECT_FALSE(fs::exists(base_ / "scratch/started"));  // the leader has nobody to tell
}

TEST_F(SuperviseBusy, LetsTheLeaderKnowOnAFollower) {
  program("cat <&3 > $BASE/scratch/assignment");
  expect_clean(run("n2"));
  EXPECT_EQ(Json::parse(content(base_ / "scratch/assignment")).at("declined"),
            "another check is running on n2 (job 4711)");
  EXPECT_THAT(line(), HasSubstr("phase=start"));
  EXPECT_THAT(line(), HasSubstr("another check is running on n2 (job 4711)"));
}

TEST_F(SuperviseBusy, RepeatsWhatTheLeaderMadeOfIt) {
  session::Report report = report_of(false);
  report.line = "netcheck=inconclusive phase=rendezvous nodes=2 time=1.9s reason=\"n2 takes no part: busy\"";
  reports(session::to_json(report).dump());
  expect_clean(run("n2"));
  EXPECT_EQ(line(), report.line);
  report.claimed = "pass";  // which no leader says without us
  report.line = "netcheck=pass";
  reports(session::to_json(report).dump());
  expect_clean(run("n2"));
  EXPECT_THAT(line(), HasSubstr("another check is running on n2 (job 4711)"));
}

TEST_F(SuperviseBusy, LeavesTheOtherCheckItsProcesses) {
  const auto account = system::find_account(kAccount, system::now() + std::chrono::seconds(10));
  ASSERT_TRUE(account);
  system::Launch others{.program = "/bin/sleep", .arguments = {"1000"}};
  others.account = *account;
  auto process = system::Process::start(others);
  ASSERT_TRUE(process);
  program("sleep 1000 & setsid sleep 1000 & touch $BASE/scratch/started");
  expect_clean(run("n2"));
  EXPECT_TRUE(fs::exists(base_ / "scratch/started"));
  EXPECT_EQ(process->poll(), std::nullopt);
}

TEST_F(Supervise, ChecksNothingWhileTheRemainsOfAnEarlierCheckLive) {
  std::ofstream(base_ / "run/stuck") << ::getpid() << " " << *system::start_time_of(::getpid()) << "\n";
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("process " + std::to_string(::getpid()) + " of an earlier check on n2"));
  std::ofstream(base_ / "run/stuck") << ::getpid() << " 1\n";  // it had the pid before us
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("exit 0 and no report"));
}

TEST_F(Supervise, ChecksARunOnceAndLeavesItsNoticeToIt) {
  program("echo x >> $BASE/scratch/started; kill -SEGV $$");
  run();
  const std::string noticed = content(base_ / "run/notices" / std::to_string(job_));
  const Json recorded = record();
  EXPECT_THAT(noticed, HasSubstr("signal 11"));
  const Ran again = run_again();
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.said, "");
  EXPECT_EQ(content(base_ / "scratch/started"), "x\n");
  EXPECT_EQ(content(base_ / "run/notices" / std::to_string(job_)), noticed);
  EXPECT_EQ(record(), recorded);
  restart_ = 1;  // another run of the same job
  EXPECT_THAT(run_again().said, HasSubstr("signal 11"));
  EXPECT_EQ(content(base_ / "scratch/started"), "x\nx\n");
}

TEST_F(Supervise, ChecksARunOnceWhenBothWaysInBeginAtTheSameTime) {
  program("echo x >> $BASE/scratch/started; sleep 0.1");
  for (int round = 1; round <= 10; ++round) {
    const pid_t script = start("said-1", "n2", ""), plugin = start("said-2", "n2", "");
    for (const pid_t child : {script, plugin}) {
      int status = -1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(content(base_ / "said-1").empty(), !content(base_ / "said-2").empty());
    EXPECT_THAT(line(), HasSubstr("exit 0 and no report"));  // and not: another check is running
    EXPECT_EQ(notice().line, line());
    EXPECT_EQ(content(base_ / "scratch/started").size(), 2u * static_cast<unsigned>(round));
    ++job_;
  }
}

TEST_F(Supervise, LeavesRecordAndNoticeEvenWhenItIsKilled) {
  program("touch $BASE/scratch/started; sleep 60");
  EXPECT_EQ(run("n2", "", SIGKILL).code, -1);
  EXPECT_EQ(record().at("verdict"), "inconclusive");
  EXPECT_THAT(line(), HasSubstr("the check has not ended"));
  EXPECT_EQ(notice().line, line());
  EXPECT_EQ(notice().environment.at("NETCHECK_VERDICT"), "inconclusive");
}

}  // namespace
}  // namespace netcheck::prolog::test
