// What the plugin starts in the prolog, with small shell programs in its place.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "launch.h"

namespace netcheck::plugin {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ChildEnvironment, HasOnlyWhatNoUserCanSet) {
  const std::map<std::string, std::string> prolog{{"SLURM_JOB_ID", "17"},
                                                  {"SLURM_NODELIST", "n[1-4]"},
                                                  {"SLURMD_NODENAME", "n1"},
                                                  {"SPANK_PATH", "/tmp"},
                                                  {"LD_PRELOAD", "/tmp/x.so"},
                                                  {"SLURM_JOB_COMMENT", "evil"},
                                                  {"PATH", "/home/u/bin"},
                                                  {"SPANK_LD_PRELOAD", "/tmp/x.so"},
                                                  {"SLURM_JOB_WORK_DIR", "/home/u"},
                                                  {"IFS", "x"},
                                                  {"BASH_ENV", "/tmp/x"},
                                                  {"SLURM_CONF", "/etc/slurm/slurm.conf"}};
  const auto get = [&](const char* name) {
    const auto found = prolog.find(name);
    return found == prolog.end() ? nullptr : found->second.c_str();
  };
  EXPECT_THAT(child_environment(get, {}),
              ElementsAre("SLURMD_NODENAME=n1", "SLURM_CONF=/etc/slurm/slurm.conf", "SLURM_JOB_ID=17",
                          "SLURM_NODELIST=n[1-4]", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"));
  Settings settings;
  settings.slurm_bin = "/opt/slurm/bin";
  EXPECT_THAT(child_environment(get, settings),
              Contains("PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"));
}

struct Line {
  bool is_error;
  std::string text;
  friend bool operator==(const Line&, const Line&) = default;
};
std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << (line.is_error ? "error: " : "info: ") << line.text;
}

std::vector<Line> relayed(const std::vector<std::string>& pieces) {
  std::vector<Line> lines;
  LineRelay relay([&](bool is_error, const std::string& text) { lines.push_back({is_error, text}); });
  for (const std::string& piece : pieces)
    relay.take(piece);
  relay.finish();
  return lines;
}

TEST(LineRelay, CutsLinesAndTellsErrors) {
  EXPECT_THAT(relayed({"one\ntw", "o\nerror: three\n\nfour"}),
              ElementsAre(Line{false, "one"}, Line{false, "two"}, Line{true, "three"}, Line{false, "four"}));
  EXPECT_THAT(relayed({"error:\n", "a\x1b[2J\rb\n"}), ElementsAre(Line{true, ""}, Line{false, "a [2J b"}));
  EXPECT_THAT(relayed({""}), IsEmpty());
}

TEST(LineRelay, KeepsAnAnnouncedDeadlineForUs) {
  EXPECT_THAT(relayed({"dead", "line 8000\none\ndeadline 9000\n"}),
              ElementsAre(Line{false, "one"}, Line{false, "deadline 9000"}));
  EXPECT_THAT(relayed({"one\ndeadline 8000\n"}),
              ElementsAre(Line{false, "one"}, Line{false, "deadline 8000"}));
  EXPECT_THAT(relayed({"\ndeadline 8000\n"}), ElementsAre(Line{false, "deadline 8000"}));
  EXPECT_THAT(relayed({"deadline 8000"}), ElementsAre(Line{false, "deadline 8000"}));  // not a whole line
}

TEST(LineRelay, IsBounded) {
  EXPECT_THAT(relayed({std::string(100'000, 'x')}), ElementsAre(Line{false, std::string(512, 'x')}));
  std::string flood;
  for (int i = 0; i < 1'000; ++i)
    flood += "line\n";
  const auto lines = relayed({flood, flood});
  ASSERT_EQ(lines.size(), 65u);
  EXPECT_EQ(lines.back(), (Line{true, "more than 64 lines: the rest is left out"}));
}

class RunCheck : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/netcheck-launch-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    settings_.timeout = std::chrono::seconds(20);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Runs `script` as the program, which has announced a deadline far away; $DIR is the test's folder.
  std::vector<Line> run(const std::string& script, const std::string& request = "400Gbps") {
    return run_bare("echo deadline 60000 >&2\n" + script, request);
  }
  /// The same without the announcement.
  std::vector<Line> run_bare(const std::string& script, const std::string& request = "400Gbps") {
    settings_.program = folder_ / "program";
    std::ofstream(settings_.program) << "#!/bin/sh\n" << script;
    ::chmod(settings_.program.c_str(), 0755);
    return run_program(request);
  }
  std::vector<Line> run_program(const std::string& request = "400Gbps") {
    std::vector<Line> lines;
    run_check(settings_, request, {"PATH=/usr/bin:/bin", "DIR=" + folder_.string()},
              [&](bool is_error, const std::string& text) {
                lines.push_back({is_error, text});
              });
    return lines;
  }
  std::string file(const char* name) {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  bool alive(const char* pid_file) { return ::kill(std::stoi(file(pid_file)), 0) == 0 && !zombie(pid_file); }

  std::filesystem::path folder_;
  Settings settings_;

 private:
  bool zombie(const char* pid_file) {
    std::stringstream text;
    text << std::ifstream("/proc/" + std::to_string(std::stoi(file(pid_file))) + "/stat").rdbuf();
    return text.str().find(") Z ") != std::string::npos;
  }
};

TEST_F(RunCheck, RelaysWhatTheProgramSays) {
  EXPECT_THAT(run("echo hidden; echo pass >&2; echo 'error: no munge' >&2"),
              ElementsAre(Line{false, "pass"}, Line{true, "no munge"}));
}

TEST_F(RunCheck, HandsOverTheRequestAndNothingElse) {
  settings_.config = "/etc/netcheck/netcheck.toml";
  settings_.run_directory = "/run/n";
  ::setenv("NETCHECK_TEST_LEAK", "1", 1);
  EXPECT_THAT(
      run("printf '%s|' \"$@\" >$DIR/arguments; env >$DIR/environment", "$(touch x) ; --config=/tmp/x"),
      IsEmpty());
  EXPECT_EQ(file("arguments"),
            "prolog|--announce-deadline|--notice-directory|/run/n|--config|/etc/netcheck/"
            "netcheck.toml|--request=$(touch x) ; "
            "--config=/tmp/x|");
  EXPECT_THAT(file("environment"), Not(HasSubstr("NETCHECK_TEST_LEAK")));
  ::unsetenv("NETCHECK_TEST_LEAK");
}

TEST_F(RunCheck, StartsCleanWhateverWeInherited) {
  const int leak = ::open("/etc/passwd", O_RDONLY);  // not close-on-exec, as other plugins leave them
  sigset_t block, before;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &block, &before);
  auto* const old = ::signal(SIGHUP, SIG_IGN);
  const auto lines =
      run("grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\t\\n' >$DIR/signals\n"
          "for fd in /proc/$$/fd/*; do readlink $fd; done >$DIR/descriptors\n"
          "cat /proc/$$/oom_score_adj >$DIR/oom; ps -o sid= -p $$ | tr -d ' ' >$DIR/session; echo $$ "
          ">$DIR/pid\n");
  ::signal(SIGHUP, old);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(leak);
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_EQ(file("signals"), "SigBlk:0000000000000000SigIgn:0000000000000000");
  EXPECT_THAT(file("descriptors"), Not(HasSubstr("/etc/passwd")));
  EXPECT_THAT(file("descriptors"), HasSubstr("/dev/null"));
  EXPECT_EQ(file("oom"), "0\n");
  EXPECT_EQ(file("session"), file("pid"));
}

TEST_F(RunCheck, KillsAProgramThatHangsAndEverythingBelowIt) {
  settings_.timeout = std::chrono::seconds(1);
  const auto lines =
      run("setsid sleep 1000 & echo $! >$DIR/below\n"
          "echo $$ >$DIR/pid; echo before >&2; exec sleep 1000\n");
  EXPECT_THAT(lines, ElementsAre(Line{false, "before"},
                                 Line{true, "the check did not end within 1.0s and was killed"}));
  EXPECT_FALSE(alive("pid"));
  EXPECT_FALSE(alive("below"));
}

TEST_F(RunCheck, KillsAProgramThatIsStopped) {
  settings_.timeout = std::chrono::seconds(1);
  EXPECT_THAT(run("echo $$ >$DIR/pid; kill -STOP $$"), ElementsAre(testing::Field(&Line::is_error, true)));
  EXPECT_FALSE(alive("pid"));
}

/// Each of these would take a minute, were it not for what the program announces, or does not.
class RunCheckWaits : public RunCheck {
 protected:
  using Clock = std::chrono::steady_clock;
  void SetUp() override {
    RunCheck::SetUp();
    settings_.timeout = std::chrono::seconds(60);
  }
  /// The program must be gone after `least` at the earliest, and long before the minute.
  std::string killed_after(std::chrono::milliseconds least, const std::string& script) {
    const Clock::time_point begun = Clock::now();
    const auto lines = run_bare("echo $$ >$DIR/pid\n" + script + "\nexec sleep 1000");
    const auto took = Clock::now() - begun;
    EXPECT_GE(took, least);
    EXPECT_LT(took, std::chrono::seconds(30));
    EXPECT_FALSE(alive("pid"));
    return lines.empty() ? "" : lines.back().text;
  }
};

// Expected: 500 ms announced and 2 s beyond, as prolog/supervisor.h promises.
TEST_F(RunCheckWaits, UntilTheAnnouncedDeadlineAndTwoSecondsMore) {
  EXPECT_THAT(killed_after(std::chrono::milliseconds(2'500), "echo deadline 500 >&2"),
              testing::MatchesRegex("the check did not end within (2|3|4)\\.[0-9]s and was killed"));
}

TEST_F(RunCheckWaits, ThreeSecondsForAnAnnouncementThatNeverComes) {
  EXPECT_EQ(killed_after(std::chrono::seconds(3), ""),
            "the check did not say within 3s how long it takes and was killed");
}

TEST_F(RunCheckWaits, ThreeSecondsWhateverIsAnnouncedInstead) {
  EXPECT_EQ(killed_after(std::chrono::seconds(3), "echo deadline -9000 >&2"),
            "the check did not say within 3s how long it takes and was killed");
}

TEST_F(RunCheckWaits, NoLongerForAProgramThatStopsAfterItsAnnouncement) {
  killed_after(std::chrono::milliseconds(2'100), "echo deadline 100 >&2; kill -STOP $$");
}

TEST_F(RunCheckWaits, ForTheFirstAnnouncementAlone) {
  killed_after(std::chrono::seconds(3), "echo hello >&2; echo deadline 50000 >&2");
  killed_after(std::chrono::milliseconds(2'100), "echo deadline 100 >&2; echo deadline 50000 >&2");
}

TEST_F(RunCheckWaits, NeverBeyondTheSitesTimeout) {
  settings_.timeout = std::chrono::seconds(1);
  EXPECT_EQ(killed_after(std::chrono::seconds(1), "echo deadline 50000 >&2"),
            "the check did not end within 1.0s and was killed");
}

TEST_F(RunCheck, IsNotHeldByAnOrphanThatKeepsThePipeOpen) {
  EXPECT_THAT(run("setsid sleep 1000 & echo $! >$DIR/orphan; echo done >&2"),
              ElementsAre(Line{false, "done"}));
  EXPECT_TRUE(alive("orphan"));  // so we did not wait for the pipe's end
  ::kill(std::stoi(file("orphan")), SIGKILL);
}

TEST_F(RunCheck, SurvivesAFlood) {
  settings_.timeout = std::chrono::seconds(1);
  const auto lines = run("exec yes flood >&2");
  ASSERT_EQ(lines.size(), 66u);
  EXPECT_THAT(lines.back().text, HasSubstr("was killed"));
}

TEST_F(RunCheck, DoesNotLetAChattyProgramBlock) {
  // A megabyte is more than a pipe holds: the program ends only when it is read, also beyond the limit.
  EXPECT_THAT(run("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo yes >$DIR/ended"),
              ElementsAre(Line{false, std::string(512, 'x')}));
  EXPECT_EQ(file("ended"), "yes\n");
}

TEST_F(RunCheck, SaysHowTheProgramFailed) {
  EXPECT_THAT(run("exit 3"),
              ElementsAre(testing::Field(&Line::text, testing::EndsWith("program prolog: exit 3"))));
  EXPECT_THAT(run("kill -SEGV $$"), ElementsAre(testing::Field(&Line::text, HasSubstr("signal 11"))));
}

TEST_F(RunCheck, SaysWhenThereIsNoProgram) {
  settings_.program = folder_ / "none";
  EXPECT_THAT(run_program(),
              ElementsAre(testing::Field(&Line::text,
                                         testing::AllOf(HasSubstr("No such file"), HasSubstr("unchecked")))));
}

}  // namespace
}  // namespace netcheck::plugin
