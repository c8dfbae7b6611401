// What a supervisor makes of a probe that crashes, hangs, floods, lies and leaves orphans, and of a site that
// is not as it should be.
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "judge/verdict.h"
#include "prolog/outcome.h"
#include "prolog_stand.h"

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

namespace netcheck::prolog::test {
namespace {

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
  nan["plan"]["thresholds"]["min"] = 0.125;
  std::string not_a_number = nan.dump();
  not_a_number.replace(not_a_number.find("0.125"), 5, "NaN");
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

TEST_F(Supervise, RefusesARequestThatWasSmuggledPastTheClient) {
  for (const char* request : {"min=-1Gbps", "time=1e400s", "a=b\nnetcheck=pass", "400"}) {
    expect_clean(run("n2", request));
    EXPECT_THAT(line(), HasSubstr("netcheck=inconclusive phase=start")) << request;
  }
}

TEST_F(Supervise, RecordsAnEmptyRequestWhereTheOptionHadNoValue) {
  for (const char* request : {"", "(null)"}) {
    run("n2", request);
    EXPECT_EQ(record().at("request"), "");
  }
}

TEST_F(Supervise, TellsTheUserWhatTheSiteDoesNotGrant) {
  config(
      "[threshold]\nmin = \"400Mbps\"\n[check]\ntime = \"3s\"\nmax_time = \"4s\"\nrendezvous = \"500ms\"\n");
  const std::string note =
      " note=\"min=100Mbps: the site's minimum is 400Mbps, so 400Mbps counts; time=60s: the site's "
      "maximum is 4s, so 4s counts\"";
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
            "netcheck=pass note=\"" + std::string(240, 'x') + "\"");
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
  config("[check]\ntime = \"2s\"\nrendezvous = \"500ms\"\nslice = \"500ms\"\n[probe]\nprobe_user = \"" +
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

// The line in sacct is there all the same, and what to do about the folder is said in one line.
TEST_F(Supervise, AnnotatesWhereTheRunDirectoryCannotBeWrittenTo) {
  const std::string folder = (base_ / "run").string();
  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_RDONLY, "mode=0755") != 0) GTEST_SKIP() << "no mount here";
  const Ran ran = run("n1", "", 0, false);
  ::umount2(folder.c_str(), MNT_DETACH);
  expect_clean(ran);
  EXPECT_THAT(content(base_ / "scontrol.log"), HasSubstr("AdminComment=netcheck=inconclusive"));
  EXPECT_THAT(ran.said,
              HasSubstr("no record of this check, and no line for its user: use the folder " + folder +
                        "/records: Read-only file system (mount that filesystem for writing, or name "
                        "another folder in netcheck.toml)"));
  EXPECT_EQ(ran.said.find("Read-only"), ran.said.rfind("Read-only")) << ran.said;  // once
}

TEST_F(Supervise, LeavesTheRecordsOfAnotherNodeAloneWhereTheRunDirectoryIsShared) {
  program("cat <&3 > $BASE/scratch/assignment");
  expect_clean(run("n1"));
  const fs::path record = base_ / "run/records" / fmt::format("demo-{}-0.json", job_);
  const std::string theirs = content(record);
  const Ran ran = run_again();  // n2, with the folder that n1 has
  expect_clean(ran);
  EXPECT_EQ(content(record), theirs);
  EXPECT_TRUE(notice().leader);
  const std::string why = "run_directory " + (base_ / "run").string() + " is that of n1 as well";
  EXPECT_THAT(ran.said, HasSubstr(why));
  EXPECT_THAT(content(base_ / "scratch/assignment"),
              HasSubstr("\"declined\":\"" + why));  // for the first node
}

TEST_F(Supervise, KeepsEachRecordForGoodWhereTheSiteHasAPlaceForThem) {
  const fs::path spool = base_ / "spool";
  record_section_ = "spool_dir = \"" + spool.string() + "\"\n";
  config("");
  const fs::path kept = spool / fmt::format("demo-{}-0-n1.json", job_);
  expect_clean(run("n1"));
  EXPECT_FALSE(fs::exists(spool));  // a mount point with nothing mounted on it is not filled
  fs::create_directory(spool);
  expect_clean(run("n1"));
  for (int i = 0; i < 500 && !fs::exists(kept); ++i)  // nobody waits for it
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(Json::parse(content(kept)).at("action_result"), "done");  // the last word, not the first
  EXPECT_EQ(fs::status(kept).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Supervise, NeverShowsAStaleNotice) {
  const fs::path path = base_ / "run/notices" / std::to_string(job_);
  fs::create_directory(base_ / "run/notices");
  std::ofstream(path) << "of an earlier run";
  program("grep -q earlier $BASE/run/notices/$JOB && touch $BASE/scratch/stale");
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
    program("cat " + path.string() + " | grep -q earlier && touch $BASE/scratch/stale");
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
  // The line was made before Slurm was asked, and the record knows when: `netcheck replay` says it again.
  EXPECT_THAT(line(),
              HasSubstr(" time=" + format_duration(Ns(record().at("time").get<std::int64_t>())) + " "));
  EXPECT_GT(record().at("took").get<std::int64_t>(), 1'000'000'000);
}

TEST_F(Supervise, NotesThatTheJobHasEndedMeanwhileAndCallsItNoError) {
  tool("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  const Ran ran = run("n1");
  expect_clean(ran);
  EXPECT_EQ(record().at("action_result"), "the job has ended meanwhile");
  EXPECT_THAT(ran.said, testing::Not(HasSubstr("error:")));
}

TEST_F(Supervise, SpeaksToTheSyslogWhereItIsToldToAndOnStderrWhereNobodyListensThere) {
  syslog_ = (base_ / "log").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(syslog_.copy(address.sun_path, sizeof address.sun_path - 1), sizeof address.sun_path - 1);
  const std::string said = fmt::format("job {}: netcheck=inconclusive phase=start", job_);
  {
    const system::Descriptor log(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the C interface
    ASSERT_EQ(::bind(log.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const Ran ran = run("n2", "fast");
    expect_clean(ran);
    EXPECT_EQ(ran.said, "");
    std::string heard(4'096, '\0');
    heard.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::read(log.get(), heard.data(), heard.size()), 0)));
    EXPECT_THAT(heard, HasSubstr("]: " + said));
  }
  EXPECT_THAT(run("n2", "fast").said, HasSubstr("netcheck: " + said));
}

TEST_F(Supervise, EndsTheProbeWhenItIsTerminatedItself) {
  program("touch $BASE/scratch/started; sleep 60");
  const Ran ran = run("n2", "", SIGTERM);
  expect_clean(ran);
  EXPECT_THAT(line(), HasSubstr("SIGTERM"));
}

}  // namespace
}  // namespace netcheck::prolog::test
