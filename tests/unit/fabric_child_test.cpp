// The fabric child, with a module that misbehaves on demand: each request has exactly one answer, whatever
// happens to the child.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "fabric/child.h"
#include "own_tree.h"
#include "system/process.h"

namespace netcheck::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Ns kPatience = seconds(10);  // a hang, not a measurement

class FabricChild : public testing::Test {
 protected:
  explicit FabricChild(std::string module = "fake")
      : fabric_(std::make_unique<ChildFabric>(
            loop_, ChildCommand{own(NETCHECK_TEST_HOST), own(NETCHECK_TEST_MODULES), std::move(module)},
            [this](Event event) { events_.push_back(std::move(event)); })) {}

  /// Runs the loop until `count` events have come; false when they do not.
  bool wait_for(std::size_t count) {
    const Time deadline = system::now() + kPatience;
    while (events_.size() < count && system::now() < deadline)
      loop_.turn(std::min(deadline, system::now() + milliseconds(20)));
    return events_.size() >= count;
  }
  void wait(Ns time) {
    const Time deadline = system::now() + time;
    while (system::now() < deadline)
      loop_.turn(deadline);
  }
  void open(const std::string& fault = "") {
    Options options{{"eth0", "eth1"}, 0};
    if (!fault.empty()) options.devices.push_back(fault);
    fabric_->open(options);
  }
  void run(std::uint32_t id = 7) {
    Batch batch;
    batch.id = id;
    batch.team = 1;
    batch.bytes = 4096;
    batch.iterations = 3;
    fabric_->run(batch);
  }
  template <typename T>
  const T& event(std::size_t index) {
    return std::get<T>(events_.at(index));
  }
  /// Opens with `fault` at run, runs a batch and gives its failure.
  Failed failure_of_run(const std::string& fault) {
    open("run=" + fault);
    run();
    EXPECT_TRUE(wait_for(2));
    return events_.size() < 2 ? Failed{} : event<Failed>(1);
  }

  system::Loop loop_;
  std::vector<Event> events_;
  std::unique_ptr<ChildFabric> fabric_;
};

std::set<pid_t> children() {
  std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  std::set<pid_t> found;
  for (pid_t pid = 0; list >> pid;)
    found.insert(pid);
  return found;
}

TEST_F(FabricChild, AnswersEachRequestWithItsEvent) {
  open();
  fabric_->invite(Team{1, {{0, 0}, {1, 0}}}, 1);
  fabric_->join(Join{Team{1, {{0, 0}, {1, 0}}}, {Bytes(3), Bytes(4)}, 1});
  run();
  ASSERT_TRUE(wait_for(4));
  EXPECT_EQ(event<Ready>(0).module, "fake");
  EXPECT_EQ(event<Ready>(0).lanes, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(event<Invited>(1).card, Bytes(1, std::byte{1}));
  EXPECT_EQ(event<Joined>(2).transport, "fake/none");
  EXPECT_EQ(event<Measured>(3).local.at(0).done,
            (std::vector<Ns>{milliseconds(1), milliseconds(2), milliseconds(3)}));
  EXPECT_EQ(event<Measured>(3).local.at(0).received, 4096u);
}

TEST_F(FabricChild, NamesTheSignalThatEndedTheChild) {
  const Failed failed = failure_of_run("crash");
  EXPECT_EQ(failed.id, 7u);
  EXPECT_EQ(failed.trouble, judge::Trouble::child_died);
  EXPECT_THAT(failed.detail, HasSubstr("signal 11 (Segmentation fault)"));
}

TEST_F(FabricChild, RepeatsWhatTheChildSaidLast) {
  const Failed failed = failure_of_run("words");
  EXPECT_THAT(failed.detail, HasSubstr("signal 6 (Aborted): a last word"));
}

TEST_F(FabricChild, NoticesAnExitWithoutAnAnswer) {
  const Failed failed = failure_of_run("exit");
  EXPECT_EQ(failed.trouble, judge::Trouble::child_died);
  EXPECT_EQ(failed.detail, "exit 0");
}

TEST_F(FabricChild, NoticesAnExitAtOpen) {
  open("open=exit");
  ASSERT_TRUE(wait_for(1));
  EXPECT_EQ(event<Failed>(0).trouble, judge::Trouble::child_died);
  EXPECT_EQ(event<Failed>(0).id, 0u);
}

TEST_F(FabricChild, NoticesAnEndThatAnOrphanHidesFromTheSocket) {
  const Failed failed = failure_of_run("orphan");
  EXPECT_EQ(failed.trouble, judge::Trouble::child_died);
  EXPECT_EQ(failed.detail, "exit 3");
}

TEST_F(FabricChild, TakesAnExceptionInTheModuleForADeath) {
  const Failed failed = failure_of_run("throw");
  EXPECT_EQ(failed.trouble, judge::Trouble::child_died);
  EXPECT_THAT(failed.detail, HasSubstr("thrown by the fake"));
}

TEST_F(FabricChild, DoesNotBelieveNonsense) {
  const Failed failed = failure_of_run("nonsense");
  EXPECT_EQ(failed.trouble, judge::Trouble::child_died);
  EXPECT_THAT(failed.detail, HasSubstr("nonsense"));
}

TEST_F(FabricChild, PassesARefusalOn) {
  const Failed failed = failure_of_run("refuse");
  EXPECT_EQ(failed.trouble, judge::Trouble::refused);
  EXPECT_EQ(failed.detail, "the fake refuses");
}

TEST_F(FabricChild, SurvivesAChildThatFloodsItsOutput) {
  open("run=flood");
  run();
  ASSERT_TRUE(wait_for(2));
  EXPECT_EQ(event<Measured>(1).batch, 7u);
}

TEST_F(FabricChild, DropsASecondAnswer) {
  open("invite=twice");
  fabric_->invite(Team{1, {{0, 0}}}, 0);
  fabric_->invite(Team{2, {{0, 0}}}, 0);
  ASSERT_TRUE(wait_for(3));
  wait(milliseconds(100));
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(event<Invited>(1).team, 1u);
  EXPECT_EQ(event<Invited>(2).team, 2u);
}

TEST_F(FabricChild, GivenUpWhileItWaitsForBytesIsEvidence) {
  open("run=wait");
  run();
  ASSERT_TRUE(wait_for(1));
  wait(2 * kSilence);
  fabric_->abandon();
  EXPECT_EQ(events_.size(), 1u) << "answered from the caller's stack";
  ASSERT_TRUE(wait_for(2));
  EXPECT_EQ(event<Failed>(1).id, 7u);
  EXPECT_EQ(event<Failed>(1).trouble, judge::Trouble::no_bytes);
  ASSERT_EQ(event<Failed>(1).partial.size(), 1u);
  EXPECT_EQ(event<Failed>(1).partial[0].received, 4096u);
}

TEST_F(FabricChild, GivesSignsOfLifeWhileItsModuleIsBusy) {
  open("run=spin");
  run();
  ASSERT_TRUE(wait_for(1));
  wait(2 * kSilence);
  fabric_->abandon();
  ASSERT_TRUE(wait_for(2));
  EXPECT_EQ(event<Failed>(1).trouble, judge::Trouble::no_bytes);
}

TEST_F(FabricChild, GivenUpWhileItIsStoppedIsNoEvidence) {
  for (const std::string fault : {"stop", "block"}) {
    events_.clear();
    open("run=" + fault);
    run();
    ASSERT_TRUE(wait_for(1));
    wait(2 * kSilence);
    fabric_->abandon();
    ASSERT_TRUE(wait_for(2));
    EXPECT_EQ(event<Failed>(1).trouble, judge::Trouble::child_silent) << fault;
    EXPECT_THAT(event<Failed>(1).detail, HasSubstr("no sign of life")) << fault;
  }
}

TEST_F(FabricChild, ALateReaderIsNotTakenForASilentChild) {
  open("run=wait");
  run();
  ASSERT_TRUE(wait_for(1));
  ::usleep(600'000);  // this process was busy elsewhere; the signs lie in the socket
  fabric_->abandon();
  ASSERT_TRUE(wait_for(2));
  EXPECT_EQ(event<Failed>(1).trouble, judge::Trouble::no_bytes);
}

TEST_F(FabricChild, OpensAfreshAfterEveryEnd) {
  for (const std::string fault : {"crash", "stop", "wait"}) {
    events_.clear();
    open("run=" + fault);
    run();
    ASSERT_TRUE(wait_for(1));
    fabric_->abandon();
    open();
    run(8);
    ASSERT_TRUE(wait_for(4));
    EXPECT_EQ(event<Failed>(1).id, 7u);
    EXPECT_EQ(event<Ready>(2).module, "fake");
    EXPECT_EQ(event<Measured>(3).batch, 8u);
  }
}

TEST_F(FabricChild, RequestsWithoutAChildFail) {
  run();
  open("open=crash");
  ASSERT_TRUE(wait_for(2));
  run(8);
  ASSERT_TRUE(wait_for(3));
  EXPECT_EQ(event<Failed>(0).detail, "the fabric was not opened");
  EXPECT_EQ(event<Failed>(2).id, 8u);
  EXPECT_THAT(event<Failed>(2).detail, HasSubstr("signal 11"));
}

TEST_F(FabricChild, LeavesNoProcessBehind) {
  open("run=stop");
  run();
  ASSERT_TRUE(wait_for(1));
  EXPECT_EQ(children().size(), 1u);
  fabric_->abandon();
  open();
  ASSERT_TRUE(wait_for(3));
  const Time deadline = system::now() + kPatience;
  while (children().size() > 1 && system::now() < deadline)
    wait(milliseconds(5));
  EXPECT_EQ(children().size(), 1u) << "the stopped child was not reaped";
  EXPECT_TRUE(fabric_->stuck().empty());
  fabric_.reset();
  EXPECT_TRUE(children().empty());
}

TEST_F(FabricChild, EndsWhenTheProbeDoes) {
  system::become_subreaper();
  const pid_t probe = ::fork();
  if (probe == 0) {
    open("run=wait");
    run();
    wait_for(1);
    const auto mine = children();
    ::_exit(mine.size() == 1 && ::kill(*mine.begin(), 0) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(probe, &status, 0), probe);
  EXPECT_EQ(status, 0);
  const Time deadline = system::now() + kPatience;
  while (!children().empty() && system::now() < deadline) {
    ::waitpid(-1, nullptr, WNOHANG);
    ::usleep(1000);
  }
  EXPECT_TRUE(children().empty());
}

class FabricWithoutModule : public FabricChild {
 protected:
  FabricWithoutModule() : FabricChild("unlinkable") {}
};

TEST_F(FabricWithoutModule, SaysWhichModuleDidNotLoadAndWhy) {
  open();
  ASSERT_TRUE(wait_for(1));
  EXPECT_EQ(event<Failed>(0).trouble, judge::Trouble::refused);
  EXPECT_THAT(event<Failed>(0).detail,
              testing::AllOf(HasSubstr("netcheck-fabric-unlinkable.so: "), HasSubstr("from_nowhere")));
}

TEST(FabricProgram, ThatDoesNotExistIsRefused) {
  system::Loop loop;
  std::vector<Event> events;
  ChildFabric fabric(loop, {"/nonexistent/netcheck", own(NETCHECK_TEST_MODULES), "fake"},
                     [&events](Event event) { events.push_back(std::move(event)); });
  fabric.open({});
  EXPECT_TRUE(events.empty());
  loop.turn(system::now() + seconds(1));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<Failed>(events[0]).trouble, judge::Trouble::refused);
}

}  // namespace
}  // namespace netcheck::fabric
