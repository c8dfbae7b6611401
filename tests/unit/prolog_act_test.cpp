// The plan carried out, against squeue, sinfo, sacct, scontrol and scancel of our own, which write down how
// they were called.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "prolog/act.h"
#include "prolog/syslog.h"
#include "system/descriptor.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kLine =
    "netcheck=fail busbw=95.0Mbps min=400Mbps nodes=3 slow=n3(tx: 96.0Mbps) time=2.0s";

std::string columns(const std::vector<std::string>& fields) {
  std::string text;
  for (const std::string& field : fields)
    text += fmt::format("{:<20}", field);
  return text;
}

class Acting : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "netcheck-act-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
    identity("17", "N/A", "N/A", "N/A", "1");
    standing("R", "None", "0", "1");
    answer("placement", columns({"17"}) + "|(null)||\n");
    nodes({"n1", "n2", "n3", "n4"});
    answer("deeds", "");
    answer("sacct.out", "");
    // As squeue prints it: who it is, how it stands where that is asked, the comment.
    script("squeue", R"(case "$*" in
*StateCompact*admin_comment:2048*) cat $BASE/identity $BASE/standing $BASE/comment;;
*admin_comment:2048*) cat $BASE/identity $BASE/comment;;
*%v*) cat $BASE/placement;;
*states=all*) cat $BASE/deeds;;
esac)");
    script("sinfo", "cat $BASE/nodes");
    script("sacct", "cat $BASE/sacct.out");
    script("scontrol", "");
    script("scancel", "");
    found_.run = {"demo", 17, 0};
    found_.partition = "main";
    found_.line = kLine;
    found_.policy.action = Action::requeue;
    found_.kill_switches = {"", (base_ / "disabled").string()};
    found_.finding.kind = Finding::Kind::fail;
    found_.finding.nodes = {"n1", "n2", "n3"};
    found_.finding.culprits = {"n3"};
    found_.finding.site_fails = true;
    found_.finding.drainable = {{"n3", "n3(tx: 96.0Mbps)"}};
  }
  void TearDown() override { fs::remove_all(base_); }

  void answer(const char* file, const std::string& text) const { std::ofstream(base_ / file) << text; }
  void identity(const char* array, const char* task, const char* het, const char* offset, const char* batch,
                const char* comment = "(null)") const {
    answer("identity", columns({"17", array, task, het, offset, batch}));
    answer("comment", std::string(comment) + "\n");
  }
  void standing(const char* state, const char* reason, const char* restarts, const char* requeue) const {
    answer("standing", columns({"17", state, reason, "100", restarts, "3", requeue, "0", "(null)", "N/A"}));
  }
  void nodes(const std::vector<std::string>& names) const {
    std::string text;
    for (const std::string& name : names)
      text += fmt::format("{:<128}{:<128}{:<20}{:<20}{:<20}{:<256}{:<256}{:<20}\n", name, "main*", "idle", 64,
                          1000, "(null)", "(null)", "none");
    answer("nodes", text);
  }
  void script(const char* name, const std::string& body) const {
    std::ofstream(base_ / name) << "#!/bin/bash\nBASE=" << base_.string() << "\necho \"" << name
                                << " $*\" >> $BASE/calls\n"
                                << body << "\n";
    fs::permissions(base_ / name, fs::perms(0755));
  }
  Acted act_now() {
    Controller controller("", base_.string() + ":/usr/bin:/bin");
    return act(found_, controller, system::now() + std::chrono::seconds(20));
  }
  [[nodiscard]] std::vector<std::string> calls(const std::string& prefix = "") const {
    std::vector<std::string> lines;
    std::ifstream file(base_ / "calls");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(prefix)) lines.push_back(line);
    return lines;
  }

  fs::path base_;
  Case found_;
};

TEST_F(Acting, ReadsTheSwitchesWhereSomethingMayFollow) {
  found_.topology = base_ / "topology.conf";
  std::ofstream(found_.topology) << "SwitchName=a Nodes=n1,n2\nSwitchName=b Nodes=n3,n4\n";
  found_.finding.slow_ways = {{"n1", "n3"}, {"n3", "n2"}};
  EXPECT_THAT(act_now().line, EndsWith(" action=annotate wanted=requeue brake=between-switches"));
  std::ofstream(found_.topology) << "Include racks.conf\n";
  const Acted acted = act_now();
  EXPECT_THAT(acted.line, EndsWith(" brake=switches-unknown"));
  EXPECT_THAT(acted.said, Contains(HasSubstr("topology.conf")));
  std::ofstream(found_.topology) << "SwitchName=a Nodes=n[1-4]\n";
  EXPECT_EQ(name(act_now().action), "requeue");
}

TEST_F(Acting, OnlyAnnotatesByDefault) {
  found_.policy = {};
  const Acted acted = act_now();
  EXPECT_EQ(acted.result, "done");
  EXPECT_THAT(calls(), testing::SizeIs(2));
  EXPECT_THAT(calls("scontrol"), ElementsAre(std::string("scontrol update JobId=17 AdminComment=") + kLine));
  EXPECT_THAT(acted.said, IsEmpty());
}

TEST_F(Acting, AnnouncesThenRequeuesThenExcludes) {
  answer("placement", columns({"17"}) + "|(null)|n9|\n");
  const Acted acted = act_now();
  EXPECT_EQ(acted.result, "done");
  const auto done = calls("scontrol");
  ASSERT_EQ(done.size(), 3u);
  EXPECT_THAT(done[0], HasSubstr("AdminComment=netcheck=fail"));
  EXPECT_THAT(done[0], HasSubstr(" action=requeue requeues=1 acted="));
  EXPECT_EQ(done[1], "scontrol requeue 17");
  EXPECT_EQ(done[2], "scontrol update JobId=17 ExcNodeList=n9,n3");
  ASSERT_TRUE(acted.early);
  EXPECT_EQ(acted.early->user_list, "n9");
  EXPECT_THAT(acted.early->may_return, ElementsAre("n1", "n2"));
  EXPECT_THAT(acted.said, ElementsAre(StartsWith("action=requeue job=17 nodes=n[1-3] line=\"netcheck=fail")));
  EXPECT_LE(calls().size(), 10u);
}

TEST_F(Acting, TouchesOneTaskOfAnArrayOnly) {
  identity("17", "2", "N/A", "N/A", "1");  // whose raw id is the array's
  static_cast<void>(act_now());
  for (const std::string& call : calls("scontrol"))
    EXPECT_THAT(call, HasSubstr("17_2"));
  EXPECT_THAT(calls("scontrol"), testing::SizeIs(3));
}

TEST_F(Acting, LeavesAHeterogeneousJobAlone) {
  identity("17", "N/A", "17", "0", "1");
  const Acted acted = act_now();
  EXPECT_THAT(acted.line, HasSubstr("brake=heterogeneous"));
  EXPECT_THAT(calls("scontrol"), ElementsAre(HasSubstr("update JobId=17+0 AdminComment=")));
}

TEST_F(Acting, HoldsAndCancels) {
  found_.policy.action = Action::hold;
  static_cast<void>(act_now());
  EXPECT_EQ(calls("scontrol").back(), "scontrol requeuehold 17");
  found_.policy.action = Action::cancel;
  static_cast<void>(act_now());
  EXPECT_THAT(calls("scancel"), ElementsAre("scancel 17"));
  EXPECT_THAT(calls("scontrol notify"), IsEmpty());  // a batch job has no terminal
}

TEST_F(Acting, TellsTheTerminalBeforeItCancels) {
  identity("17", "N/A", "N/A", "N/A", "0");
  found_.policy.action = Action::cancel;
  static_cast<void>(act_now());
  const auto all = calls();
  ASSERT_GE(all.size(), 2u);
  EXPECT_THAT(all[all.size() - 2], StartsWith("scontrol notify 17 netcheck cancels this job: netcheck=fail"));
  EXPECT_EQ(all.back(), "scancel 17");
}

TEST_F(Acting, FallsBackWhereSlurmWillNotRequeue) {
  script(
      "scontrol",
      R"(case "$1" in requeue) echo "Requested operation is presently disabled for job 17" >&2; exit 1;; esac)");
  found_.policy.requeue_fallback = Action::cancel;
  const Acted acted = act_now();
  EXPECT_EQ(name(acted.action), "cancel");
  EXPECT_THAT(acted.line, HasSubstr("action=cancel wanted=requeue brake=refused"));
  EXPECT_THAT(calls("scancel"), ElementsAre("scancel 17"));
  EXPECT_THAT(calls("scontrol").back(),
              HasSubstr("action=cancel wanted=requeue"));  // said before it was done
}

TEST_F(Acting, NeverFallsBackWhenTheAnswerIsOnlySlow) {
  script("scontrol", R"(case "$1" in requeue) sleep 60;; esac)");
  found_.policy.requeue_fallback = Action::cancel;
  Controller controller("", base_.string() + ":/usr/bin:/bin");
  const Acted acted = act(found_, controller, system::now() + std::chrono::seconds(3));
  EXPECT_THAT(acted.result, HasSubstr("did not end in time"));
  EXPECT_THAT(calls("scancel"), IsEmpty());  // it may have been requeued
}

TEST_F(Acting, DoesNothingWhenItCannotAnnounceIt) {
  script("scontrol",
         R"(case "$*" in *AdminComment*) echo "Unable to contact slurm controller" >&2; exit 1;; esac)");
  const Acted acted = act_now();
  EXPECT_THAT(acted.result, HasSubstr("Unable to contact"));
  EXPECT_THAT(calls("scontrol"), testing::SizeIs(1));
}

TEST_F(Acting, DoesNothingToAJobThatHasEnded) {
  for (const char* part : {"identity", "standing", "comment"})
    answer(part, "");
  EXPECT_EQ(act_now().result, kEnded);
  EXPECT_THAT(calls("scontrol"), IsEmpty());
}

TEST_F(Acting, DoesNothingOnceTheKillSwitchIsThere) {
  found_.policy.drain = true;
  std::ofstream(base_ / "disabled").flush();
  const Acted acted = act_now();
  EXPECT_THAT(acted.line, HasSubstr("action=annotate brake=disabled"));
  EXPECT_EQ(name(acted.action), "annotate");
  for (const std::string& call : calls("scontrol"))
    EXPECT_THAT(call, HasSubstr("AdminComment="));
}

// The switch appears during each call in turn: what was begun is done whole, nothing begins after it, and
// the comment says what was done.
TEST_F(Acting, BeginsNothingOnceTheKillSwitchAppearsAndEndsWhatItHasBegun) {
  found_.policy.drain = true;
  const auto switched_off_at = [&](const std::string& pattern) {
    fs::remove(base_ / "disabled");
    fs::remove(base_ / "calls");
    script("scontrol", "case \"$*\" in " + pattern + ") : > $BASE/disabled;; esac");
    return act_now();
  };
  const std::string requeue = "scontrol requeue 17", exclude = "scontrol update JobId=17 ExcNodeList=n3";
  Acted acted = switched_off_at("*AdminComment=*");  // announced, and no more
  EXPECT_THAT(calls("scontrol"), ElementsAre(HasSubstr(" action=requeue drain=n3 requeues=1 acted="),
                                             EndsWith(" time=2.0s action=annotate brake=disabled")));
  EXPECT_EQ(name(acted.action), "annotate");
  EXPECT_THAT(acted.line, EndsWith(" action=annotate brake=disabled"));

  acted = switched_off_at("*State=DRAIN*");  // drained, and the job is left alone
  EXPECT_THAT(calls("scontrol"),
              ElementsAre(HasSubstr(" action=requeue drain=n3 "), HasSubstr("NodeName=n3"),
                          HasSubstr(" time=2.0s action=annotate brake=disabled drain=n3 acted=")));
  EXPECT_EQ(name(acted.action), "annotate");

  acted = switched_off_at("requeue*");  // away from the slow node as well; the helper sees the switch itself
  EXPECT_THAT(calls("scontrol"), ElementsAre(HasSubstr(" action=requeue drain=n3 "), HasSubstr("NodeName=n3"),
                                             requeue, exclude));
  EXPECT_EQ(name(acted.action), "requeue");
  EXPECT_THAT(acted.line, HasSubstr(" action=requeue drain=n3 requeues=1 acted="));
  EXPECT_LE(calls().size(), 10u);
}

TEST_F(Acting, TakesADrainThatSlurmRefusedOutOfTheLine) {
  found_.policy.drain = true;
  script("scontrol", R"(case "$*" in *State=DRAIN*) echo "Invalid user id" >&2; exit 1;; esac)");
  const Acted acted = act_now();
  EXPECT_THAT(acted.line, HasSubstr(" action=requeue drain_brake=refused requeues=1 acted="));
  EXPECT_THAT(acted.line, Not(HasSubstr(" drain=")));
  EXPECT_THAT(calls("scontrol update JobId=17 AdminComment=").back(), EndsWith(acted.line));
}

TEST_F(Acting, CancelsAJobWhoseTerminalHasBeenToldSo) {
  identity("17", "N/A", "N/A", "N/A", "0");
  found_.policy.action = Action::cancel;
  script("scontrol", R"(case "$1" in notify) : > $BASE/disabled;; esac)");
  EXPECT_EQ(name(act_now().action), "cancel");
  EXPECT_THAT(calls("scancel"), ElementsAre("scancel 17"));
}

TEST_F(Acting, BeginsNoFallbackOnceTheKillSwitchIsThere) {
  found_.policy.requeue_fallback = Action::cancel;
  script("scontrol",
         R"(case "$1" in requeue) : > $BASE/disabled; echo "presently disabled" >&2; exit 1;; esac)");
  const Acted acted = act_now();
  EXPECT_THAT(calls("scancel"), IsEmpty());
  EXPECT_EQ(name(acted.action), "annotate");
  EXPECT_THAT(calls("scontrol").back(), EndsWith(" time=2.0s action=annotate brake=disabled"));
}

TEST_F(Acting, AnnouncesNothingWhereTheKillSwitchWasThereBefore) {
  std::ofstream(base_ / "disabled").flush();
  static_cast<void>(act_now());
  EXPECT_THAT(calls("scontrol"), ElementsAre(EndsWith(" action=annotate brake=disabled")));
}

TEST_F(Acting, HoldsBackWhereOthersHaveActedOften) {
  found_.policy.max_actions_per_hour = 2;
  const auto now = std::time(nullptr);
  answer("deeds", fmt::format("{:<20}netcheck=fail action=hold acted={}\n{:<20}netcheck=fail action=requeue "
                              "requeues=1 acted={}\n",
                              7, now - 10, 17, now));  // the second is this very job's announcement
  answer("sacct.out", fmt::format("8|netcheck=fail action=cancel acted={}\n", now - 3'000));
  const Acted acted = act_now();
  EXPECT_THAT(acted.line, HasSubstr("brake=max_actions_per_hour=2"));
  EXPECT_THAT(acted.line, Not(HasSubstr("acted=")));
  EXPECT_THAT(calls("scontrol requeue"), IsEmpty());
  EXPECT_THAT(calls("scontrol").back(), HasSubstr("AdminComment="));  // the announcement is taken back
  EXPECT_THAT(acted.said,
              ElementsAre(StartsWith("a brake held: brake=max_actions_per_hour=2 job=17 line=\"netcheck=")));
}

TEST_F(Acting, HoldsBackWhereNobodyCanCount) {
  script("sacct", "exit 1");
  EXPECT_THAT(act_now().line, HasSubstr("brake=actions-uncounted"));
  EXPECT_THAT(calls("scontrol requeue"), IsEmpty());
}

TEST_F(Acting, DrainsWithAReasonThatSaysWhatWasMeasured) {
  found_.policy.drain = true;
  const Acted acted = act_now();
  EXPECT_THAT(
      calls("scontrol update NodeName"),
      ElementsAre(
          "scontrol update NodeName=n3 State=DRAIN Reason=netcheck: job 17 measured n3(tx: 96.0Mbps)"));
  EXPECT_THAT(acted.said, Contains(StartsWith("action=drain nodes=n3 job=17")));
  // The dearest case, everything switched on; one more may have been asked before the check: ten in all.
  EXPECT_EQ(calls().size(), 9u);
}

TEST_F(Acting, CountsAmongTheDrainedWhatOthersHaveAnnounced) {
  found_.policy.drain = true;
  found_.policy.max_actions_per_hour = 0;  // nothing else would have to be counted
  const auto now = std::time(nullptr);
  answer("deeds", fmt::format("{:<20}netcheck=fail action=annotate drain=n1 acted={}\n", 7, now - 1));
  const Acted acted = act_now();
  EXPECT_THAT(calls("scontrol update NodeName"), IsEmpty());
  EXPECT_THAT(calls("scontrol requeue"), ElementsAre("scontrol requeue 17"));
  const auto comments = calls("scontrol update JobId=17 AdminComment");
  ASSERT_EQ(comments.size(), 2u);
  EXPECT_THAT(comments[0], HasSubstr(" drain=n3 "));  // before it counted
  EXPECT_THAT(comments[1], HasSubstr(" action=requeue drain_brake=max_drained_total=1 "));
  EXPECT_THAT(acted.said, Contains(StartsWith("a brake held: drain_brake=max_drained_total=1 job=17 ")));
}

// Two first nodes act at the same moment, against a controller that answers late and each in its own time:
// whichever way their calls fall, one node at most is drained, and both jobs are requeued.
TEST_F(Acting, NeverDrainsMoreThanTheLimitWhereManyActAtOnce) {
  found_.policy.drain = true;
  script("squeue", R"sh(sleep 0.0$((RANDOM % 5)); all="$*"; job=${all#*--jobs=}; job=${job%% *}
case "$*" in
*admin_comment:2048*) cat $BASE/identity $BASE/standing $BASE/comment | sed "s/17 /$job /g";;
*%v*) sed "s/^17/$job/" $BASE/placement;;
*states=all*) for file in $BASE/comment.*; do [ -e $file ] && printf '%-20s%s\n' ${file##*.} "$(<$file)"; done;;
esac)sh");
  script("sinfo", R"sh(sleep 0.0$((RANDOM % 5)); while IFS= read -r line; do
[ -e $BASE/drained.${line%% *} ] && line="${line/idle   /drained}" && line="${line/none/netcheck: job}"
printf '%s\n' "$line"; done < $BASE/nodes)sh");
  script("scontrol", R"sh(sleep 0.0$((RANDOM % 5)); case "$2" in
JobId=*) case "$3" in AdminComment=*) echo "${3#AdminComment=}" > $BASE/new.${2#JobId=}
  mv $BASE/new.${2#JobId=} $BASE/comment.${2#JobId=};; esac;;
NodeName=*) touch $BASE/drained.${2#NodeName=};;
esac)sh");
  nodes({"n1", "n2", "n3", "n4", "n5", "n6"});  // enough, whichever is drained
  unsigned drained = 0;
  for (int round = 0; round < 12; ++round) {
    for (const char* left : {"comment.17", "comment.18", "drained.n2", "drained.n3"})
      fs::remove(base_ / left);
    std::vector<pid_t> leaders;
    for (const auto& [job, culprit] : {std::pair(17U, "n3"), std::pair(18U, "n2")}) {
      leaders.push_back(::fork());
      if (leaders.back() != 0) continue;
      found_.run.job = job;
      found_.finding.culprits = {culprit};
      found_.finding.drainable = {{culprit, culprit}};
      const std::string result = act_now().result;
      if (result != "done") std::fprintf(stderr, "%s\n", result.c_str());
      ::_exit(result == "done" ? 0 : 1);
    }
    for (const pid_t leader : leaders) {
      int status = -1;
      EXPECT_EQ(::waitpid(leader, &status, 0), leader);
      EXPECT_EQ(status, 0);
    }
    unsigned now = 0;
    for (const char* file : {"drained.n2", "drained.n3"})
      now += fs::exists(base_ / file) ? 1U : 0U;
    EXPECT_LE(now, 1u) << "round " << round;
    drained += now;
  }
  EXPECT_THAT(calls("scontrol requeue"), testing::SizeIs(24));
  RecordProperty("drained_in_12_rounds", static_cast<int>(drained));
}

TEST_F(Acting, OnlyTalksInADryRun) {
  found_.policy.dry_run = found_.policy.drain = true;
  const Acted acted = act_now();
  EXPECT_EQ(name(acted.action), "annotate");
  EXPECT_THAT(calls("scontrol"), ElementsAre(HasSubstr("action=annotate would=requeue would_drain=n3")));
  EXPECT_FALSE(acted.early);
}

TEST_F(Acting, KeepsTheCountWhereAnothersCommentLeavesLittleRoom) {
  const std::string others(1'500, 'o');
  identity("17", "N/A", "N/A", "N/A", "1", others.c_str());
  found_.line += " reason=\"" + std::string(500, 'r') + "\"";
  static_cast<void>(act_now());
  const std::string announced = calls("scontrol").front();
  EXPECT_THAT(announced, HasSubstr(" action=requeue requeues=1 acted="));
  EXPECT_THAT(announced, HasSubstr(" | ooo"));
}

TEST(CallsToTheController, HaveAnEnd) {
  Controller controller("", "/usr/bin:/bin", 1);
  const Time deadline = system::now() + std::chrono::seconds(5);
  EXPECT_TRUE(controller.call("true", {}, deadline));
  EXPECT_FALSE(controller.call("true", {}, deadline));
}

TEST(WriteSyslog, SendsOneDatagramAndNeverWaits) {
  std::string folder = (fs::temp_directory_path() / "netcheck-log-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/log";
  EXPECT_FALSE(write_syslog("nobody listens", path));
  const system::Descriptor log(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(log.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(write_syslog("action=hold job=17\nforged", path));
  char got[256] = {};
  ASSERT_GT(::recv(log.get(), got, sizeof got - 1, 0), 0);
  EXPECT_THAT(got, StartsWith("<29>netcheck["));  // daemon (3 × 8) and notice (5)
  EXPECT_THAT(got, HasSubstr("]: action=hold job=17 forged"));
  bool full = false;
  for (int i = 0; i < 100'000 && !full; ++i)
    full = !write_syslog("flood", path);
  EXPECT_TRUE(full);  // and did not wait for a reader
  fs::remove_all(folder);
}

}  // namespace
}  // namespace netcheck::prolog
