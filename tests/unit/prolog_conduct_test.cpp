// supervise() and the site's file: which jobs are checked, by which values, and who hears of it.
#include "prolog/guard.h"
#include "prolog_stand.h"

namespace netcheck::prolog::test {
namespace {

TEST_F(Supervise, DoesNothingWhileTheSitesOwnSwitchIsThere) {
  config("[when]\nkill_switch = \"" + (base_ / "off").string() + "\"\n[check]\ntime = \"5s\"\n");
  std::ofstream(base_ / "off") << "";
  EXPECT_EQ(run().code, 0);
  EXPECT_TRUE(fs::is_empty(base_ / "run"));
  fs::remove(base_ / "off");
  EXPECT_EQ(run().code, 0);
  EXPECT_FALSE(fs::is_empty(base_ / "run"));
}

TEST_F(Supervise, ChecksJobsThatDidNotAskOnlyWhereTheSiteWantsIt) {
  session::Report report = report_of(false);
  report.claimed = "pass";
  report.line = "netcheck=pass busbw=900Mbps op=all_gather nodes=2 time=1.0s";
  reports(session::to_json(report).dump());
  EXPECT_EQ(run("n2", std::nullopt).code, 0);
  EXPECT_TRUE(fs::is_empty(base_ / "run"));
  config("[when]\nmode = \"always\"\n");
  EXPECT_EQ(run("n2", std::nullopt).code, 0);
  EXPECT_EQ(line(), report.line);
}

TEST_F(Supervise, TellsNobodyWhoDidNotAskOfAFileThatCannotBeRead) {
  config("[when]\nmode = \"always\"\nmood = 1\n");
  const Ran ran = run("n1", std::nullopt);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.said, HasSubstr("netcheck.toml:3: unknown key 'mood'"));
  EXPECT_FALSE(fs::exists(base_ / "scontrol.log"));
}

TEST_F(Supervise, SaysToTheUserThatHisJobsAreNotChecked) {
  config("[when]\nallow_users = [\"alice\"]\n");
  expect_clean(run("n1"));
  EXPECT_THAT(line(), HasSubstr("netcheck=inconclusive phase=start"));
  EXPECT_THAT(line(), HasSubstr("not measured: the site checks no jobs of user"));
}

// The first node asks squeue for the time limit; the others learn from it, through the probe's assignment.
TEST_F(Supervise, HandsTheFirstNodesReasonToTheProbe) {
  program("cat <&3 > $BASE/scratch/assignment");
  tool("squeue",
       "case \"$*\" in *TimeLimit*) printf '%-24s%-24s%-24s\\n' $JOB 0:30 NO ;; *)"
       " printf '%-20s%-20s%-20s%-20s%-20s%-20s%s\\n' $JOB $JOB N/A N/A N/A 1 '' ;; esac");
  expect_clean(run("n1"));
  EXPECT_THAT(content(base_ / "scratch/assignment"),
              HasSubstr("\"not_measured\":\"not measured: its time limit of 30s is under the site's 60s\""));
  fs::remove(base_ / "scratch/assignment");
  expect_clean(run("n2"));
  EXPECT_THAT(content(base_ / "scratch/assignment"), HasSubstr("\"not_measured\":\"\""));
}

TEST_F(Supervise, ChecksAJobOfWhichSlurmSaysNothing) {
  program("cat <&3 > $BASE/scratch/assignment");
  tool("squeue", "sleep 60");
  expect_clean(run("n1"));
  EXPECT_THAT(content(base_ / "scratch/assignment"), HasSubstr("\"not_measured\":\"\""));
  EXPECT_THAT(record().at("remarks").dump(), HasSubstr("time limit and owner of the nodes are not known"));
}

// Whoever shares its nodes is told that, not that they are busy: with what else would they be?
TEST_F(Supervise, LooksAtSharingBeforeItAsksWhetherTheNodeIsBusy) {
  const auto folder = Folder::open((base_ / "run").string(), 0755);
  ASSERT_TRUE(folder);
  const auto lock = try_lock(*folder, {17, "n1"});
  ASSERT_TRUE(lock && lock->taken);
  tool("squeue",
       "case \"$*\" in *TimeLimit*) printf '%-24s%-24s%-24s\\n' $JOB 1:00:00 OK ;; *)"
       " printf '%-20s%-20s%-20s%-20s%-20s%-20s%s\\n' $JOB $JOB N/A N/A N/A 1 '' ;; esac");
  session::Report report = report_of(true);
  report.history.refusal = judge::Refusal{judge::Phase::rendezvous, "what a probe says"};
  reports(session::to_json(report).dump());
  expect_clean(run("n1"));
  EXPECT_THAT(line(), testing::StartsWith("netcheck=inconclusive phase=start nodes=2 time="));
  EXPECT_THAT(line(),
              testing::EndsWith(
                  " reason=\"not measured: the job does not own its nodes: submit it with --exclusive\""));
  EXPECT_TRUE(record().contains("report"));  // the others were told
  // A job that owns them meets the lock.
  tool("squeue",
       "case \"$*\" in *TimeLimit*) printf '%-24s%-24s%-24s\\n' $JOB 1:00:00 NO ;; *)"
       " printf '%-20s%-20s%-20s%-20s%-20s%-20s%s\\n' $JOB $JOB N/A N/A N/A 1 '' ;; esac");
  expect_clean(run("n1"));
  EXPECT_THAT(line(), HasSubstr("another check is running on n1 (job 17)"));
}

TEST_F(Supervise, AppliesTheRulesForTheJob) {
  config("[[rule]]\nnodes = 2\nmin = \"400Mbps\"\n[[rule]]\nnodes = 3\nmin = \"1Gbps\"\n");
  expect_clean(run());
  EXPECT_EQ(record().at("settings").at("threshold.min"), "400Mbps");
  EXPECT_THAT(record().at("sources").at("threshold.min").get<std::string>(), HasSubstr("rule 1 at "));
}

}  // namespace
}  // namespace netcheck::prolog::test
