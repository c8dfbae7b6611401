// What a user is told at submission, with small shell programs in the place of netcheck.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "every_job.h"
#include "submission.h"

namespace netcheck::plugin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Answer, IsReadWholeOrNotAtAll) {
  const SiteAnswer answer = read_answer("refuse min=1Gbps: no\nnote time=60s: less\nend\n");
  EXPECT_THAT(answer.refused, ElementsAre("min=1Gbps: no"));
  EXPECT_THAT(answer.notes, ElementsAre("time=60s: less"));
  for (const char* none :
       {"", "end\n", "refuse min=1Gbps: no\n", "netcheck: there is no subcommand 'policy'\n", "refuse x",
        "Refuse x\nend\n", "\nend"}) {
    EXPECT_THAT(read_answer(none).refused, IsEmpty()) << none;
    EXPECT_THAT(read_answer(none).notes, IsEmpty()) << none;
  }
  EXPECT_THAT(read_answer("refuse a\x1b[2Jb\nend\n").refused, ElementsAre("a [2Jb"));
  std::string flood;
  for (int i = 0; i < 1'000; ++i)
    flood += "refuse x\n";
  EXPECT_THAT(read_answer(flood + "end\n").refused, IsEmpty());
}

class AskSite : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/netcheck-submission-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    settings_.program = folder_ / "program";
    settings_.config = "/etc/somewhere.toml";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void program(const std::string& script) {
    std::ofstream(settings_.program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(settings_.program.c_str(), 0755);
  }

  std::filesystem::path folder_;
  Settings settings_;
};

TEST_F(AskSite, HandsTheRequestOnAndReadsTheAnswer) {
  program("echo \"note $1 $2 $3 $4 $#\"; echo end");
  EXPECT_THAT(ask_site(settings_, "min=1Gbps,op=auto").notes,
              ElementsAre("policy --submission --config=/etc/somewhere.toml --spec=min=1Gbps,op=auto 4"));
}

TEST_F(AskSite, IsNoAnswerWithoutAProgramOrWithABrokenOne) {
  EXPECT_THAT(ask_site(settings_, "1Gbps").refused, IsEmpty());
  for (const char* broken :
       {"exit 127", "kill -9 $$", "echo refuse it", "echo 'refuse it' >&2; echo end", "exec /nonexistent"}) {
    program(broken);
    EXPECT_THAT(ask_site(settings_, "1Gbps").refused, IsEmpty()) << broken;
  }
  std::ofstream(settings_.program) << "\x7f"
                                      "ELFgarbage";
  EXPECT_THAT(ask_site(settings_, "1Gbps").refused, IsEmpty());
}

TEST_F(AskSite, DoesNotWaitForAProgramThatHangs) {
  for (const char* hanging :
       {"sleep 300", "trap '' TERM INT; while :; do sleep 300; done", "sleep 300 & echo end; wait"}) {
    program(hanging);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_THAT(ask_site(settings_, "1Gbps").refused, IsEmpty());
    // It hangs for five minutes: what ends within this was ended.
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20)) << hanging;
  }
}

TEST_F(AskSite, ReadsTheAnswerWhereTheCallerIgnoresItsChildren) {
  program("echo 'refuse it'; echo end");
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const SiteAnswer answer = ask_site(settings_, "1Gbps");
  ::signal(SIGCHLD, before);
  EXPECT_THAT(answer.refused, ElementsAre("it"));
}

TEST(EveryJob, IsWantedOnlyByALineThatCounts) {
  EXPECT_TRUE(mentions_always("[when]\nmode = \"always\"\n"));
  EXPECT_TRUE(mentions_always("when.mode='always'"));
  EXPECT_TRUE(mentions_always("[[rule]]\npartition = 'gpu'\n  mode = 'always' # there"));
  EXPECT_FALSE(mentions_always(""));
  EXPECT_FALSE(mentions_always("#mode = \"always\"\n\t # always\n[when]\nmode = \"opt-in\"\n"));
}

TEST(EveryJob, IsNotWantedByTheDocumentedFile) {
  EXPECT_FALSE(may_want_every_job(std::filesystem::path(__FILE__).parent_path() / "../../etc/netcheck.toml"));
}

TEST(EveryJob, IsNotWantedByWhatIsNoFile) {
  EXPECT_FALSE(may_want_every_job("/nonexistent"));
  EXPECT_FALSE(may_want_every_job("/dev/zero"));
  EXPECT_FALSE(may_want_every_job("/proc"));
}

}  // namespace
}  // namespace netcheck::plugin
