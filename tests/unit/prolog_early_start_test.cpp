// The helper after a requeue: when it does what, and that it outlives its parent.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "prolog/early_start.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Row {
  const char* name;
  std::optional<Standing> standing;
  Progress progress;
  NextCall next;
};

Standing pending(const char* reason, std::uint64_t priority = 100, std::uint32_t restarts = 1) {
  return {"PD", reason, priority, restarts, 3, true, false, false, false};
}
Standing in_state(const char* state) {
  return {state, "None", 100, 1, 3, true, false, false, false};
}

class Next : public testing::TestWithParam<Row> {};

TEST_P(Next, Is) {
  const EarlyStart early{{"demo", 17, 0}, "17", "n9", {"n1", "n2"}, {}};
  EXPECT_EQ(next_call(early, GetParam().standing, GetParam().progress), GetParam().next);
}

const std::vector<Row> kRows = {
    {"prolog_goes_on", in_state("CG"), Progress::waiting, NextCall::wait},
    {"not_looked_at_by_slurm_yet", pending("None"), Progress::waiting, NextCall::wait},
    {"waits_for_its_time", pending("BeginTime"), Progress::waiting, NextCall::look_at_nodes},
    {"waits_and_nodes_were_idle", pending("BeginTime"), Progress::idle_once, NextCall::look_at_nodes},
    {"runs", in_state("R"), Progress::let_go, NextCall::stop},
    {"runs_without_us", in_state("R"), Progress::waiting, NextCall::stop},
    {"waits_for_others", pending("Resources"), Progress::let_go, NextCall::put_back},
    {"not_looked_at_after_release", pending("None"), Progress::let_go, NextCall::put_back},
    {"nowhere_to_run", pending("BadConstraints", 0), Progress::let_go, NextCall::restore},
    {"nowhere_to_run_at_once", pending("BadConstraints", 0), Progress::waiting, NextCall::restore},
    {"held_by_an_administrator", pending("JobHeldAdmin", 0), Progress::waiting, NextCall::stop},
    {"held_by_its_user", pending("JobHeldUser", 0), Progress::let_go, NextCall::stop},
    {"released_by_an_administrator", pending("Priority"), Progress::waiting, NextCall::stop},
    {"requeued_by_an_administrator", pending("BeginTime", 100, 2), Progress::waiting, NextCall::stop},
    {"not_requeued_at_all", pending("BeginTime", 100, 0), Progress::waiting, NextCall::stop},
    {"cancelled", in_state("CA"), Progress::waiting, NextCall::stop},
    {"gone", std::nullopt, Progress::waiting, NextCall::stop},
};

INSTANTIATE_TEST_SUITE_P(Rows, Next, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

std::string node_row(const char* name, const char* state) {
  return fmt::format("{:<128}{:<20}\n", name, state);
}

TEST(NodesState, IsIdleOnlyWhereAllAre) {
  const std::string text =
      node_row("n1", "idle") + node_row("n2", "completing") + node_row("n3", "allocated");
  EXPECT_EQ(nodes_state(text, {"n1"}), Nodes::idle);
  EXPECT_EQ(nodes_state(text, {"n1", "n2"}), Nodes::completing);
  EXPECT_EQ(nodes_state(text, {"n1", "n2", "n3"}), Nodes::taken);
  EXPECT_EQ(nodes_state(text, {"n1", "n4"}), Nodes::taken);
  EXPECT_EQ(nodes_state("", {"n1"}), Nodes::taken);
}

class Helping : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "netcheck-early-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
    // $BASE/state holds one "STATE REASON PRIORITY [ELIGIBLE]" a look, the last one for good. Where 17 is an
    // array's number, squeue names its other tasks too.
    script("squeue", R"(read -r state reason priority eligible < $BASE/state
[ $(wc -l < $BASE/state) -gt 1 ] && sed -i 1d $BASE/state
printf '%-20s' 16 R None 100 0 3 1 0 '(null)' N/A 2026-01-01T00:00:00; echo
printf '%-20s' 17 $state $reason $priority 1 3 1 0 '(null)' N/A ${eligible:-2026-01-01T00:02:01}; echo)");
    script("sinfo", "printf '%-128s%-20s\\n' n1 \"$(cat $BASE/n1)\"");
    script("scontrol", "");
    node("idle");
  }
  void TearDown() override { fs::remove_all(base_); }
  void script(const char* name, const std::string& body) const {
    std::ofstream(base_ / name) << "#!/bin/bash\nBASE=" << base_.string() << "\necho \"" << name
                                << " $*\" >> $BASE/calls\n"
                                << body << "\n";
    fs::permissions(base_ / name, fs::perms(0755));
  }
  void states(const char* text) const { std::ofstream(base_ / "state") << text; }
  void node(const char* state) const { std::ofstream(base_ / "n1") << state << "\n"; }
  std::string help() {
    const EarlyStart early{{"demo", 17, 0}, "17_2", "n9", {"n1"}, {(base_ / "disabled").string()}};
    return start_early(early, Controller("", base_.string() + ":/usr/bin:/bin"),
                       system::now() + std::chrono::seconds(30));
  }
  [[nodiscard]] std::string calls(const std::string& prefix = "") const {
    std::string text;
    std::ifstream file(base_ / "calls");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(prefix)) text += line + "\n";
    return text;
  }
  fs::path base_;
};

TEST_F(Helping, LetsTheJobGoOnceItsNodesHaveBeenIdleForAWhile) {
  states("CG None 100\nPD BeginTime 100\nPD BeginTime 100\nR None 100\n");
  EXPECT_EQ(help(), "started early");
  EXPECT_EQ(calls("scontrol"), "scontrol update JobId=17_2 StartTime=now\n");
  EXPECT_THAT(calls("sinfo"), HasSubstr("--nodes=n1"));
}

TEST_F(Helping, PutsTheWaitBackWhereTheJobDoesNotStartAtOnce) {
  states("PD BeginTime 100\nPD BeginTime 100\nPD Resources 100\n");
  EXPECT_THAT(help(), HasSubstr("put back"));
  EXPECT_EQ(calls("scontrol"),
            "scontrol update JobId=17_2 StartTime=now\nscontrol update JobId=17_2 StartTime=now+120\n");
}

TEST_F(Helping, LeavesTheWaitWhereItsNodesAreTaken) {
  states("PD BeginTime 100\n");
  node("allocated");
  EXPECT_THAT(help(), HasSubstr("Slurm's wait stays"));
  EXPECT_EQ(calls("scontrol"), "");
}

TEST_F(Helping, RestoresTheUsersListWhereTheJobCouldNeverRun) {
  states("PD BadConstraints 0\n");
  EXPECT_EQ(help(), "exclusions restored");
  EXPECT_EQ(calls("scontrol"), "scontrol update JobId=17_2 ExcNodeList=n9 StartTime=now+120\n");
}

TEST_F(Helping, EndsWhenTheKillSwitchAppears) {
  states("PD BeginTime 100\n");
  std::ofstream(base_ / "disabled").flush();
  EXPECT_EQ(help(), "switched off");
  EXPECT_EQ(calls("scontrol"), "");
}

TEST_F(Helping, LetsNoJobGoOnceTheKillSwitchAppears) {
  states("PD BeginTime 100\n");
  script("sinfo",
         "[ -e $BASE/looked ] && : > $BASE/disabled; : > $BASE/looked\n"
         "printf '%-128s%-20s\\n' n1 idle");
  EXPECT_EQ(help(), "switched off");
  EXPECT_EQ(calls("scontrol"), "");
}

TEST_F(Helping, EndsWhatItHasBegunWhenTheKillSwitchAppears) {
  states("PD BeginTime 100\nPD BeginTime 100\nPD Resources 100\n");
  script("scontrol", ": > $BASE/disabled");
  EXPECT_THAT(help(), HasSubstr("put back"));
  EXPECT_EQ(calls("scontrol"),
            "scontrol update JobId=17_2 StartTime=now\nscontrol update JobId=17_2 StartTime=now+120\n");
}

TEST_F(Helping, LeavesNoJobThatCannotRunBehindAKillSwitch) {
  states("PD BadConstraints 0\n");
  std::ofstream(base_ / "disabled").flush();
  EXPECT_EQ(help(), "exclusions restored");
}

TEST_F(Helping, LeavesAJobAloneThatIsToStartWhenSomebodyElseSays) {
  states("PD BeginTime 100\nPD BeginTime 100 2026-01-02T08:00:00\n");
  EXPECT_EQ(help(), "left alone");
  EXPECT_EQ(calls("scontrol"), "");
}

TEST_F(Helping, HasAnEndOfCalls) {
  states("CG None 100\n");
  EXPECT_THAT(help(), HasSubstr("not pending in time"));
  const std::string all = calls();
  EXPECT_LE(std::count(all.begin(), all.end(), '\n'), 10);
}

TEST(Detach, OutlivesItsParentInASessionOfItsOwn) {
  std::string folder = (fs::temp_directory_path() / "netcheck-detach-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string said = folder + "/said";
  const pid_t parent = ::fork();
  if (parent == 0) {
    const bool started = detach(
        [&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          std::ofstream(said) << (::getsid(0) != ::getsid(::getppid())) << (::isatty(STDIN_FILENO)) << "\n";
        },
        std::chrono::seconds(10));
    ::_exit(started ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 500 && !(fs::exists(said) && fs::file_size(said) > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::stringstream text;
  text << std::ifstream(said).rdbuf();
  EXPECT_EQ(text.str(), "10\n");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace netcheck::prolog
