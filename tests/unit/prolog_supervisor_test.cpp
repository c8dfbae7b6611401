// supervise() from end to end, with a shell script in the place of the probe that crashes, hangs, floods,
// lies and leaves orphans. As root: privileges are dropped to the account "games", which every Debian has.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "contract/wire.h"
#include "judge/verdict.h"
#include "prolog/outcome.h"
#include "prolog/record.h"
#include "prolog/supervisor.h"
#include "system/loop.h"
#include "system/process.h"

// In place of the C library's: a directory service that never answers for this one name.
constexpr const char* kTarpit = "tarpit";
extern "C" int getpwnam_r(const char* name, passwd* entry, char* /*buffer*/, std::size_t /*bytes*/,
                          passwd** found) {
  while (std::strcmp(name, kTarpit) == 0)
    ::pause();
  const passwd* known = ::getpwnam(name);
  if (known != nullptr) *entry = *known;
  *found = known != nullptr ? entry : nullptr;
  return 0;
}

namespace netcheck::prolog {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kAccount = "games";
// Every fault below hangs for a minute or for ever: what ends within this has been ended. (The supervisor's
// own promise is 5 s here, which a loaded machine cannot keep for it.)
constexpr auto kPatience = std::chrono::seconds(20);

std::string content(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Supervise : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can drop privileges";
    if (::getpwnam(kAccount) == nullptr) GTEST_SKIP() << "no account " << kAccount;
    std::string name = (fs::temp_directory_path() / "netcheck-supervise-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
    fs::permissions(base_, fs::perms(0755));
    for (const char* folder : {"etc", "bin", "run", "scratch"})
      fs::create_directory(base_ / folder);
    fs::permissions(base_ / "scratch", fs::perms(01777));
    job_ = 100'000 + static_cast<std::uint32_t>(::getpid());  // its own ports, beside other tests
    config("[check]\ntime = \"3s\"\nrendezvous = \"500ms\"\nslice = \"500ms\"\n");
    tool("squeue", "printf '%-20s%-20s%-20s%-20s%-20s%-20s%s\\n' $JOB $JOB N/A N/A N/A 1 'ticket=42'");
    tool("scontrol", "echo \"$@\" >> $LOG");
    program("exit 0");
  }
  void TearDown() override {
    if (!base_.empty()) fs::remove_all(base_);
  }

  void config(const std::string& text) const {
    const bool names_account = text.find("probe_user") != std::string::npos;
    std::ofstream(config_path()) << text
                                 << (names_account ? ""
                                                   : fmt::format("[probe]\nprobe_user = \"{}\"\n", kAccount))
                                 << "[record]\nrun_directory = \"" << (base_ / "run").string() << "\"\n";
    fs::permissions(config_path(), fs::perms(0644));
  }
  [[nodiscard]] fs::path config_path() const { return base_ / "etc" / "netcheck.toml"; }
  void script(const fs::path& path, const std::string& body) const {
    fs::remove(path);
    std::ofstream(path) << "#!/bin/bash\nBASE=" << base_.string() << "\nJOB=" << job_
                        << "\nLOG=$BASE/scontrol.log\n"
                        << body << "\n";
    fs::permissions(path, fs::perms(0755));
  }
  void tool(const char* name, const std::string& body) const { script(base_ / "bin" / name, body); }
  void program(const std::string& body) const { script(base_ / "netcheck", body); }
  // The probe that reports this and ends well.
  void reports(const std::string& report) const {
    std::ofstream(base_ / "report.json") << report;
    program("cat $BASE/report.json >&4");
  }

  struct Ran {
    int code = -1;
    Ns took{};
    std::string said;
  };
  // In a process of its own: it becomes a subreaper, and kills all that is below it.
  pid_t start(const char* log, const std::string& self, std::optional<std::string> request) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int fd = ::open((base_ / log).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(fd, STDERR_FILENO);
      ::clearenv();
      set_environment(self);
      Invocation invocation;
      invocation.program = (base_ / "netcheck").string();
      invocation.config = config_path().string();
      invocation.request = std::move(request);
      invocation.run_directory = (base_ / "run").string();
      invocation.announce_deadline = announces_;
      invocation.notice_directory = notice_directory_;
      invocation.module_directories = {(base_ / "modules").string()};
      ::_exit(supervise(invocation));
    }
    return child;
  }
  // `end`: the signal that it gets once its probe has made scratch/started. `first`: no check of this run has
  // been there before.
  Ran run(const std::string& self = "n2", std::optional<std::string> request = "", int end = 0,
          bool first = true) {
    if (first) fs::remove_all(base_ / "run/records");
    const Time began = system::now();
    const pid_t child = start("said", self, std::move(request));
    for (int i = 0; end != 0 && i < 1'000 && !fs::exists(base_ / "scratch/started"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (end != 0) ::kill(child, end);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, system::now() - began, content(base_ / "said")};
  }
  Ran run_again() { return run("n2", "", 0, false); }
  void set_environment(const std::string& self) const {
    ::setenv("PATH", (base_ / "bin").c_str(), 1);
    if (job_ != 0) ::setenv("SLURM_JOB_ID", std::to_string(job_).c_str(), 1);
    ::setenv("SLURM_JOB_UID", "12345", 1);
    ::setenv("SLURM_JOB_GID", "12345", 1);
    ::setenv("SLURM_CLUSTER_NAME", "demo", 1);
    ::setenv("SLURM_JOB_RESTART_COUNT", std::to_string(restart_).c_str(), 1);
    ::setenv("SLURM_NODELIST", nodes_.c_str(), 1);
    ::setenv("SLURMD_NODENAME", self.c_str(), 1);
  }

  [[nodiscard]] Json record() const {
    return Json::parse(content(base_ / "run/records" / ("demo-" + std::to_string(job_) + "-0.json")));
  }
  [[nodiscard]] Notice notice() const {
    return read_notice(content(base_ / "run/notices" / std::to_string(job_))).value_or(Notice{});
  }
  [[nodiscard]] std::string line() const { return record().at("line").get<std::string>(); }
  // The promise for every fault: the job runs, within the deadline and 2 s, nothing of ours is left.
  void expect_clean(const Ran& ran) const {
    EXPECT_EQ(ran.code, 0) << ran.said;
    EXPECT_LT(ran.took, kPatience) << ran.said;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
      EXPECT_THAT(content(entry.path() / "cmdline"), testing::Not(HasSubstr(base_.string()))) << entry;
    }
  }

  [[nodiscard]] session::Report report_of(bool leader) const {
    session::Report report;
    report.leader = leader;
    report.plan.nodes = {{"n1", {}, ""}, {"n2", {}, ""}};
    report.claimed = "inconclusive";
    report.inventory.node = leader ? "n1" : "n2";
    return report;
  }

  fs::path base_;
  std::uint32_t job_ = 0, restart_ = 0;
  std::string nodes_ = "n[1-2]";
  bool announces_ = false;
  std::optional<std::string> notice_directory_;
};

TEST_F(Supervise, DoesNothingWithoutAJobOrARequest) {
  EXPECT_EQ(run("n2", std::nullopt).code, 0);
  EXPECT_TRUE(fs::is_empty(base_ / "run"));
  job_ = 0;
  const Ran by_hand = run();
  EXPECT_EQ(by_hand.code, 2);
  EXPECT_THAT(by_hand.said, HasSubstr("SLURM_JOB_ID"));
}

TEST_F(Supervise, DoesNothingWhileItIsSwitchedOff) {
  std::ofstream(base_ / "etc/disabled") << "";
  EXPECT_EQ(run().code, 0);
  EXPECT_TRUE(fs::is_empty(base_ / "run"));
}

TEST_F(Supervise, AnnouncesItsDeadlineBeforeAllElseToThePluginAlone) {
  const auto first_line = [this](const std::string& request) {
    const std::string said = run("n2", request).said;
    return said.substr(0, said.find('\n'));
  };
  EXPECT_THAT(first_line(""), testing::StartsWith("netcheck: job "));  // from a Prolog script
  announces_ = true;
  // The site's 3 s, and what a user may make of them: 20 s; less what has passed.
  EXPECT_THAT(first_line(""), testing::MatchesRegex("deadline 2[0-9][0-9][0-9]|deadline 3000"));
  EXPECT_THAT(first_line("time=60s"), testing::MatchesRegex("deadline 19[0-9][0-9][0-9]|deadline 20000"));
  EXPECT_THAT(first_line("nonsense"), testing::MatchesRegex("deadline 2[0-9][0-9][0-9]|deadline 3000"));
  config("[check]\nslize = 3\n");
  EXPECT_THAT(first_line(""), testing::MatchesRegex("deadline 7[0-9][0-9][0-9]|deadline 8000"));  // built in
}

TEST_F(Supervise, RepeatsWhatTheLeaderSaidOnAFollower) {
  session::Report report = report_of(false);
  report.claimed = "fail";
  report.line = "netcheck=fail busbw=96.3Mbps min=400Mbps op=all_gather nodes=2 slow=n1 time=1.9s";
  reports(session::to_json(report).dump());
  const Ran ran = run();
  expect_clean(ran);
  EXPECT_EQ(line(), report.line);
  EXPECT_EQ(notice().line, report.line);
  EXPECT_FALSE(notice().leader);
  EXPECT_EQ(notice().environment.at("NETCHECK_VERDICT"), "fail");
  EXPECT_EQ(notice().environment.at("NETCHECK_NODES"), "2");
  EXPECT_EQ(notice().environment.at("NETCHECK_RECORD"),
            record_path((base_ / "run").string(), {"demo", job_, 0}));
  EXPECT_FALSE(fs::exists(base_ / "scontrol.log"));  // the leader's to write
}

TEST_F(Supervise, GivesTheProbeItsAccountItsAssignmentAndNothingElse) {
  program(
      "{ id -u; id -G; cat <&3; env; grep -E 'NoNewPrivs|CapEff' /proc/self/status; ls -l /proc/self/fd;"
      " ulimit -u; ulimit -c; ulimit -l; } > $BASE/scratch/seen");
  expect_clean(run("n1"));
  const std::string seen = content(base_ / "scratch/seen");
  const passwd* account = ::getpwnam(kAccount);
  EXPECT_THAT(seen, testing::StartsWith(std::to_string(account->pw_uid) + "\n" +
                                        std::to_string(account->pw_gid) + "\n"));
  EXPECT_THAT(seen, HasSubstr("\"nodes\":[\"n1\",\"n2\"]"));
  EXPECT_THAT(seen, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(seen, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(seen, HasSubstr("LANG=C"));
  EXPECT_THAT(seen, testing::Not(HasSubstr("SLURM")));
  EXPECT_THAT(seen, testing::ContainsRegex("5 -> socket:"));
  // No core files; all the memory may be locked that root can give here.
  script(base_ / "limit", "ulimit -l unlimited 2> $BASE/scratch/why; ulimit -l > $BASE/scratch/most");
  ASSERT_EQ(std::system((base_ / "limit").c_str()), 0);
  EXPECT_THAT(seen, testing::EndsWith("\n2048\n0\n" + content(base_ / "scratch/most")));
}

TEST_F(Supervise, AnnotatesExactlyThisJobOnTheLeader) {
  expect_clean(run("n1"));
  const std::string call = content(base_ / "scontrol.log");
  EXPECT_THAT(call, testing::StartsWith("update JobId=" + std::to_string(job_) +
                                        " AdminComment=netcheck=inconclusive phase=start"));
  EXPECT_THAT(call, testing::EndsWith(" | ticket=42\n"));
  EXPECT_EQ(record().at("action_result"), "done");
  EXPECT_TRUE(notice().leader);
}

TEST_F(Supervise, NamesTheSignalThatEndedTheProbe) {
  program("echo 'netcheck: phase gate' >&2; kill -SEGV $$");
  const Ran ran = run();
  expect_clean(ran);
  EXPECT_THAT(line(), HasSubstr("netcheck=inconclusive phase=gate"));
  EXPECT_THAT(line(), HasSubstr("signal 11 (Segmentation fault)"));
}

TEST_F(Supervise, EndsAProbeThatHangs) {
  program("kill -STOP $$");
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("did not end by its deadline"));
}

TEST_F(Supervise, EndsAnOrphanInASessionOfItsOwn) {
  program("setsid bash -c 'setsid sleep 61 & exec -a $0 sleep 62' $BASE & sleep 0.2; exit 0");
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("exit 0 and no report"));
}

TEST_F(Supervise, IsNotHeldUpByFloods) {
  program("head -c 1G /dev/zero; head -c 1G /dev/zero | tr '\\0' '\\n' >&2 & yes noise >&2 & sleep 0.5");
  expect_clean(run());
  EXPECT_LE(record().at("remarks").size(), 101u);
}

TEST_F(Supervise, StopsReadingAReportBeyondItsLimit) {
  program("head -c 1G /dev/zero >&4");
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("larger than 16 MiB"));
}

TEST_F(Supervise, RejectsReportsThatDoNotFit) {
  const Json good = session::to_json(report_of(false));
  Json foreign = good, half = good, leads = good, unknown = good, nan = good;
  foreign["plan"]["nodes"][1]["name"] = "evil";
  half.erase("history");
  leads["leader"] = true;
  unknown["claimed"] = "great";
  std::string not_a_number = good.dump();
  not_a_number.replace(not_a_number.find("0.8"), 3, "NaN");
  for (const std::string& report : {foreign.dump(), half.dump(), leads.dump(), unknown.dump(), not_a_number,
                                    good.dump().substr(0, 100), std::string("[]")}) {
    reports(report);
    const Ran ran = run();
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(line(), testing::AllOf(HasSubstr("netcheck=inconclusive"), HasSubstr("report rejected")))
        << report;
  }
}

TEST_F(Supervise, RejectsALeadersVerdictThatItsSamplesDoNotSupport) {
  session::Report report = report_of(true);
  report.claimed = "pass";
  reports(session::to_json(report).dump());
  expect_clean(run("n1"));
  EXPECT_THAT(line(), HasSubstr("report rejected: its samples do not support 'pass'"));
}

TEST_F(Supervise, ChecksNothingWithOneNode) {
  nodes_ = "n1";
  program("touch $BASE/scratch/started");
  expect_clean(run("n1"));
  EXPECT_THAT(line(), HasSubstr("one node: no network between nodes to check"));
  EXPECT_FALSE(fs::exists(base_ / "scratch/started"));
}

TEST_F(Supervise, SaysAtOnceThatAnotherCheckIsRunning) {
  std::ofstream(base_ / "run/lock") << "4711\n";
  const int lock = ::open((base_ / "run/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  program("sleep 10");
  const Ran ran = run();
  ::close(lock);
  expect_clean(ran);
  EXPECT_THAT(line(), HasSubstr("another check is running on n2 (job 4711)"));
}

TEST_F(Supervise, ChecksNothingWhileTheRemainsOfAnEarlierCheckLive) {
  std::ofstream(base_ / "run/stuck") << ::getpid() << " " << *system::start_time_of(::getpid()) << "\n";
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("process " + std::to_string(::getpid()) + " of an earlier check on n2"));
  std::ofstream(base_ / "run/stuck") << ::getpid() << " 1\n";  // it had the pid before us
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("exit 0 and no report"));
}

TEST_F(Supervise, RefusesARequestThatWasSmuggledPastTheClient) {
  for (const char* request : {"min=-1Gbps", "time=1e400s", "a=b\nnetcheck=pass", "400"}) {
    expect_clean(run("n2", request));
    EXPECT_THAT(line(), HasSubstr("netcheck=inconclusive phase=start")) << request;
  }
}

TEST_F(Supervise, TellsTheUserWhatTheSiteDoesNotGrant) {
  config(
      "[threshold]\nmin = \"400Mbps\"\n[check]\ntime = \"3s\"\nmax_time = \"4s\"\nrendezvous = \"500ms\"\n");
  const std::string note =
      " note=\"min=100Mbps: the site's minimum is 400Mbps; time=60s: the site's maximum is 4s\"";
  run("n1", "min=100Mbps,time=60s");
  EXPECT_THAT(line(), testing::EndsWith(note));
  EXPECT_EQ(notice().line, line());
  EXPECT_THAT(content(base_ / "scontrol.log"), HasSubstr(note + " | ticket=42"));
  run("n2", "min=100Mbps,time=60s");  // a follower's too
  EXPECT_THAT(line(), testing::EndsWith(note));
  run("n1", "min=500Mbps,time=4s");
  EXPECT_THAT(line(), testing::Not(HasSubstr("note=")));
}

TEST(Notes, AreCutWithTheirQuotesIntact) {
  EXPECT_EQ(with_notes("netcheck=pass", {}), "netcheck=pass");
  EXPECT_EQ(with_notes("netcheck=pass", {"a\"b|c\nd"}), "netcheck=pass note=\"a'b/c d\"");
  EXPECT_EQ(with_notes("netcheck=pass", {std::string(500, 'x')}),
            "netcheck=pass note=\"" + std::string(160, 'x') + "\"");
  const std::string cut = with_notes(std::string(1'000, 'y'), {std::string(500, 'x')});
  EXPECT_EQ(cut, std::string(1'000, 'y') + " note=\"" + std::string(16, 'x') + "\"");  // 1,024 in all
  EXPECT_EQ(with_notes(std::string(1'024, 'y'), {"x"}), std::string(1'024, 'y'));
}

TEST_F(Supervise, NamesFileAndLineOfAWrongConfiguration) {
  config("[check]\ntime = \"2s\"\nslize = 3\n");
  const Ran ran = run();
  expect_clean(ran);
  EXPECT_THAT(line(), HasSubstr("netcheck.toml:3"));
  EXPECT_THAT(line(), HasSubstr("netcheck=inconclusive phase=start"));
}

TEST_F(Supervise, RefusesAccountsThatAreNotItsOwn) {
  for (const char* account : {"root", "nobody", "no-such-account"}) {
    config("[probe]\nprobe_user = \"" + std::string(account) + "\"\n");
    expect_clean(run());
    EXPECT_THAT(line(), HasSubstr(account));
  }
}

TEST_F(Supervise, LosesNoMoreThanItsDeadlineToADirectoryServiceThatDoesNotAnswer) {
  config("[check]\ntime = \"1s\"\nrendezvous = \"500ms\"\nslice = \"500ms\"\n[probe]\nprobe_user = \"" +
         std::string(kTarpit) + "\"\n");
  expect_clean(run());
  EXPECT_THAT(line(), HasSubstr("find the account tarpit: the account database did not answer in time"));
}

TEST_F(Supervise, ShowsTheVerdictWhereNothingCanBeWritten) {
  fs::remove(base_ / "run");
  fs::create_directory(base_ / "elsewhere");
  fs::create_directory_symlink(base_ / "elsewhere", base_ / "run");
  const Ran ran = run("n1");
  expect_clean(ran);
  EXPECT_TRUE(fs::is_empty(base_ / "elsewhere"));
  EXPECT_THAT(ran.said, HasSubstr("symbolic link"));
  EXPECT_THAT(content(base_ / "scontrol.log"), HasSubstr("AdminComment=netcheck=inconclusive"));
}

TEST_F(Supervise, NeverShowsAStaleNotice) {
  const fs::path path = base_ / "run/notices" / std::to_string(job_);
  fs::create_directory(base_ / "run/notices");
  std::ofstream(path) << "of an earlier run";
  program("test -e $BASE/run/notices/$JOB && touch $BASE/scratch/stale");
  expect_clean(run());
  EXPECT_FALSE(fs::exists(base_ / "scratch/stale"));  // gone before the probe began
  EXPECT_EQ(notice().run.job, job_);
}

TEST_F(Supervise, LeavesTheNoticeWhereThePluginLooksForItWhateverTheSitesFileSays) {
  notice_directory_ = (base_ / "plugins").string();
  const fs::path path = base_ / "plugins/notices" / std::to_string(job_);
  fs::create_directories(path.parent_path());
  for (const bool readable : {true, false}) {
    std::ofstream(path) << "of an earlier run";
    if (!readable) config("[check]\nslize = 3\n");  // then nothing says where the site wants its records
    program("test -e " + path.string() + " && touch $BASE/scratch/stale");
    expect_clean(run());
    EXPECT_EQ(read_notice(content(path)).value_or(Notice{}).line, line());
    EXPECT_FALSE(fs::exists(base_ / "run/notices"));
    EXPECT_FALSE(fs::exists(base_ / "scratch/stale"));
  }
}

TEST_F(Supervise, LosesOnlyItsDeadlineToASlurmThatDoesNotAnswer) {
  tool("squeue", "sleep 60");
  expect_clean(run("n1"));
  EXPECT_THAT(record().at("action_result").get<std::string>(), HasSubstr("did not end in time"));
}

TEST_F(Supervise, NotesThatTheJobHasEndedMeanwhileAndCallsItNoError) {
  tool("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  const Ran ran = run("n1");
  expect_clean(ran);
  EXPECT_EQ(record().at("action_result"), "the job has ended meanwhile");
  EXPECT_THAT(ran.said, testing::Not(HasSubstr("error:")));
}

TEST_F(Supervise, EndsTheProbeWhenItIsTerminatedItself) {
  program("touch $BASE/scratch/started; sleep 60");
  const Ran ran = run("n2", "", SIGTERM);
  expect_clean(ran);
  EXPECT_THAT(line(), HasSubstr("SIGTERM"));
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

TEST_F(Supervise, LeavesARecordEvenWhenItIsKilled) {
  program("touch $BASE/scratch/started; sleep 60");
  EXPECT_EQ(run("n2", "", SIGKILL).code, -1);
  EXPECT_EQ(record().at("verdict"), "inconclusive");
  EXPECT_THAT(line(), HasSubstr("the check has not ended"));
}

}  // namespace
}  // namespace netcheck::prolog
