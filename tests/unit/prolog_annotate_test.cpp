// squeue's answers, as 22.05.8 gave them (tests/fixtures/squeue), and the comment that is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "prolog/annotate.h"

namespace netcheck::prolog {
namespace {

std::string fixture(const std::string& name) {
  const auto tests = std::filesystem::path(__FILE__).parent_path().parent_path();
  std::ifstream file(tests / "fixtures" / "squeue" / name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ReadSqueue, TakesAnOrdinaryJobByItsId) {
  const auto facts = read_squeue(fixture("plain"), 1);
  ASSERT_TRUE(facts) << describe(facts.error());
  EXPECT_EQ(facts->target, "1");
  EXPECT_EQ(facts->admin_comment, "other=tool");
  EXPECT_TRUE(facts->batch);
}

TEST(ReadSqueue, TakesAJobWithoutABatchScriptForNone) {
  const auto facts = read_squeue(fixture("salloc"), 6);
  ASSERT_TRUE(facts) << describe(facts.error());
  EXPECT_EQ(facts->target, "6");
  EXPECT_EQ(facts->admin_comment, "");  // "(null)"
  EXPECT_FALSE(facts->batch);
}

// Job 2 is task 2 of array 2: with that id alone scontrol would write to every task.
TEST(ReadSqueue, NamesAnArrayTaskByItsArrayEvenWhereItsRawIdIsTheArrays) {
  const auto facts = read_squeue(fixture("array"), 2);
  ASSERT_TRUE(facts) << describe(facts.error());
  EXPECT_EQ(facts->target, "2_2");
}

TEST(ReadSqueue, FindsTheOneTaskAmongItsArraysRows) {
  const auto facts = read_squeue(fixture("array"), 5);
  ASSERT_TRUE(facts) << describe(facts.error());
  EXPECT_EQ(facts->target, "2_1");
  EXPECT_EQ(facts->admin_comment, "x y foo|bar");  // its comment holds a line end
}

TEST(ReadSqueue, NamesAComponentByItsJobAndOffset) {
  EXPECT_EQ(read_squeue(fixture("heterogeneous"), 3)->target, "3+0");
  EXPECT_EQ(read_squeue(fixture("heterogeneous"), 4)->target, "3+1");
}

TEST(ReadSqueue, TellsHowAJobStandsWhereThatIsAsked) {
  EXPECT_THAT(
      squeue_format(Asked::standing_too),
      testing::StartsWith("JobID:20,ArrayJobID:20,ArrayTaskID:20,HetJobID:20,HetJobOffset:20,BatchFlag:20,"
                          "JobID:20,StateCompact:20,"));
  EXPECT_THAT(squeue_format(Asked::standing_too), testing::EndsWith(",tres-per-node:20,admin_comment:2048"));
  std::string row;
  for (const char* field : {"17", "17", "N/A", "N/A", "N/A", "1",  // who it is
                            "17", "R", "None", "100", "2", "3", "1", "0", "(null)", "N/A"}) {
    row += field;
    row.resize((row.size() + 19) / 20 * 20, ' ');
  }
  const auto facts = read_squeue(row + "x\ny\n", 17, Asked::standing_too);
  ASSERT_TRUE(facts) << describe(facts.error());
  EXPECT_EQ(facts->target, "17");
  EXPECT_EQ(facts->admin_comment, "x y");
  ASSERT_TRUE(facts->standing);
  EXPECT_TRUE(facts->standing->running());
  EXPECT_EQ(facts->standing->restarts, 2u);
  EXPECT_FALSE(read_squeue(fixture("plain"), 1)->standing);
  row.replace(row.find("100"), 3, "???");  // not understood: nothing is done then
  EXPECT_FALSE(read_squeue(row, 17, Asked::standing_too)->standing);
}

TEST(ReadSqueue, RefusesAnArrayThatHasNotBegun) {
  EXPECT_FALSE(read_squeue(fixture("array_pending"), 2));  // "0-2" is no task
}

TEST(ReadSqueue, RefusesWhatIsNotThere) {
  EXPECT_FALSE(read_squeue("", 1));
  EXPECT_FALSE(read_squeue(fixture("plain"), 2));
  EXPECT_FALSE(read_squeue("garbage\n\xff\xfe\n", 1));
}

TEST(ReadSqueue, RefusesAJobThatIsThereTwice) {
  EXPECT_FALSE(read_squeue(fixture("plain") + fixture("plain"), 1));
}

TEST(MergeComment, WritesTheLineWhereNothingStood) {
  EXPECT_EQ(merge_comment("", "netcheck=pass busbw=1.0Gbps"), "netcheck=pass busbw=1.0Gbps");
}

TEST(MergeComment, KeepsWhatAnotherToolWrote) {
  EXPECT_EQ(merge_comment("ticket=42", "netcheck=pass"), "netcheck=pass | ticket=42");
}

TEST(MergeComment, ReplacesOurEarlierLineAndKeepsTheOthers) {
  EXPECT_EQ(merge_comment("netcheck=fail slow=n3 | ticket=42 | seen=yes", "netcheck=pass"),
            "netcheck=pass | ticket=42 | seen=yes");
  EXPECT_EQ(merge_comment("ticket=42 | netcheck=fail", "netcheck=pass"), "netcheck=pass | ticket=42");
}

TEST(MergeComment, IsTheSameWhenWrittenTwice) {
  const std::string once = merge_comment("ticket=42", "netcheck=pass");
  EXPECT_EQ(merge_comment(once, "netcheck=pass"), once);
}

TEST(MergeComment, IsOnePrintableLine) {
  EXPECT_EQ(merge_comment("a\nb\x1b[31m", "netcheck=fail reason=\"x\ny\""),
            "netcheck=fail reason=\"x y\" | a b [31m");
}

TEST(MergeComment, EndsAQuoteThatItCuts) {
  const std::string line = "netcheck=fail reason=\"" + std::string(2'000, 'r') + "\"";
  const std::string comment = merge_comment("", line, " action=hold acted=1000");
  EXPECT_EQ(comment.size(), 1'024u);
  EXPECT_TRUE(comment.ends_with("rrr\" action=hold acted=1000"));
}

TEST(MergeComment, LeavesRoomForBothWithin1024Bytes) {
  const std::string both = merge_comment(std::string(5'000, 'o'), "netcheck=" + std::string(5'000, 'n'));
  EXPECT_EQ(both.size(), 1'024u);
  EXPECT_EQ(both.find(" | o"), 512u);  // half and half
  const std::string ours = merge_comment("t=1", "netcheck=" + std::string(5'000, 'n'));
  EXPECT_EQ(ours.size(), 1'024u);
  EXPECT_TRUE(ours.ends_with("n | t=1"));
}

}  // namespace
}  // namespace netcheck::prolog
