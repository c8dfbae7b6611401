// squeue's and sinfo's answers, as 22.05.8 gave them (tests/fixtures), and what our own lines tell later
// runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "prolog/facts.h"

namespace netcheck::prolog {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string fixture(const std::string& name) {
  const auto tests = std::filesystem::path(__FILE__).parent_path().parent_path();
  std::ifstream file(tests / "fixtures" / name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ReadStanding, TellsARunningJobThatMayNotBeRequeued) {
  const auto job = read_standing(fixture("squeue/standing"), 36);
  ASSERT_TRUE(job) << describe(job.error());
  EXPECT_TRUE(job->running());
  EXPECT_FALSE(job->may_be_requeued);
  EXPECT_TRUE(job->contiguous);
  EXPECT_EQ(job->nodes, 1u);
  EXPECT_EQ(job->restarts, 0u);
  EXPECT_FALSE(job->wants_features);
  EXPECT_FALSE(job->wants_gres);
}

TEST(ReadStanding, TellsAConstraintOfTheNodesTogether) {
  std::string row = fixture("squeue/standing");
  const auto with = [&](std::string feature) {
    feature.resize(20, ' ');
    row.replace(160, 20, feature);  // the ninth of ten columns
    return read_standing(row, 36).value();
  };
  for (const char* each : {"(null)", "a", "a&b", "a|b"})
    EXPECT_FALSE(with(each).constrained_together) << each;
  for (const char* together : {"[a*2&b]", "[a|b]", "a*2&b*1", "nineteen_bytes_or_more"})
    EXPECT_TRUE(with(together).constrained_together) << together;
  EXPECT_TRUE(with("a&b").wants_features);
}

TEST(ReadStanding, FindsTheTaskWhoseRawIdIsTheArrays) {
  EXPECT_TRUE(read_standing(fixture("squeue/standing_array"), 37));
  EXPECT_TRUE(read_standing(fixture("squeue/standing_array"), 39));
  EXPECT_FALSE(read_standing(fixture("squeue/standing_array"), 38));
}

TEST(ReadStanding, TellsAHeldJob) {
  const auto job = read_standing(fixture("squeue/standing_held"), 38);
  ASSERT_TRUE(job);
  EXPECT_FALSE(job->running());
  EXPECT_EQ(job->priority, 0u);
}

TEST(ReadStanding, RefusesWhatIsCutShort) {
  const std::string whole = fixture("squeue/standing");
  EXPECT_FALSE(read_standing(whole.substr(0, 100), 36));
  EXPECT_FALSE(read_standing(whole + whole, 36));
  EXPECT_FALSE(read_standing("", 36));
}

TEST(ReadPlacement, ReadsTheUsersOwnLists) {
  const auto job = read_placement(fixture("squeue/placement"), 36);
  ASSERT_TRUE(job) << describe(job.error());
  EXPECT_EQ(job->excluded_list, "n[3-4]");
  EXPECT_THAT(job->excluded, ElementsAre("n3", "n4"));
  EXPECT_THAT(job->required, ElementsAre("n1"));
  EXPECT_FALSE(job->reserved);
}

TEST(ReadPlacement, ReadsNoListsAndAReservation) {
  const auto task = read_placement(fixture("squeue/placement_array"), 39);
  ASSERT_TRUE(task);
  EXPECT_THAT(task->excluded, IsEmpty());
  EXPECT_THAT(task->required, IsEmpty());
  EXPECT_TRUE(read_placement(fixture("squeue/placement_reserved"), 40)->reserved);
}

TEST(ReadPlacement, RefusesAListThatIsNone) {
  EXPECT_FALSE(read_placement("36                  |(null)|n[3-|n1", 36));
  EXPECT_FALSE(read_placement("36                  |(null)|n3", 36));
  EXPECT_FALSE(read_placement("36                  |(null)|n3|n1|n2", 36));
}

TEST(ReadNodes, ReadsEveryPartitionsRow) {
  const auto nodes = read_nodes(fixture("sinfo/nodes"));
  ASSERT_TRUE(nodes) << describe(nodes.error());
  ASSERT_EQ(nodes->size(), 8u);  // four nodes in two partitions
  EXPECT_EQ(nodes->front().name, "n1");
  EXPECT_EQ(nodes->front().partition, "main");  // "main*" is the default one
  EXPECT_EQ(nodes->front().state, "allocated");
  EXPECT_EQ(nodes->front().cpus, 4u);
  EXPECT_EQ(nodes->front().memory, 1000u);
  EXPECT_FALSE(drained_by_us(nodes->front()));
  EXPECT_TRUE(drained_by_us(nodes->back()));
}

TEST(ReadNodes, DoesNotCountWhatAnotherDrained) {
  EXPECT_FALSE(drained_by_us({"n1", "main", "drained", 4, 1, "", "", "disk"}));
  EXPECT_FALSE(drained_by_us({"n1", "main", "down", 4, 1, "", "", "netcheck: job 5"}));
  EXPECT_TRUE(drained_by_us({"n1", "main", "draining", 4, 1, "", "", "netcheck: job 5"}));
}

TEST(ReadNodes, RefusesAnAnswerItDoesNotUnderstand) {
  EXPECT_FALSE(read_nodes(""));
  EXPECT_FALSE(read_nodes("sinfo: something else\n"));
}

TEST(ReadDeeds, CountsEachActionOnceWhereverItIsSeen) {
  const auto row = [](const char* job, const char* comment) {
    std::string text(job);
    text.resize(20, ' ');
    return text + comment + "\n";
  };
  const std::string live = row("7", "netcheck=fail action=hold acted=1000") +
                           row("8", "ticket=4 | netcheck=fail action=cancel acted=1001") +
                           row("9", "netcheck=fail action=cancel") +  // the user's own wish: not counted
                           row("10", "netcheck=pass") + row("11", "(null)");
  const std::string ended =
      "7|netcheck=fail action=hold acted=1000\n"  // the same one
      "7|netcheck=fail action=requeue acted=900\n"
      "12|netcheck=fail action=cancel acted=100\n"  // too long ago
      "13|\n";
  const auto deeds = read_deeds(live, ended, 800, {99, 1000});
  EXPECT_THAT(deeds, ElementsAre(Deed{7, 900}, Deed{7, 1000}, Deed{8, 1001}));
  EXPECT_THAT(read_deeds(live, ended, 800, {8, 1001}), ElementsAre(Deed{7, 900}, Deed{7, 1000}));
}

TEST(ReadDeeds, TellsWhichNodesOthersAreAboutToDrain) {
  const std::string ended =
      "7|netcheck=fail slow=n3 action=requeue drain=n[3-4] requeues=1 acted=1000\n"
      "8|netcheck=fail slow=n5 action=annotate drain=n5 acted=1001 | drain=n6\n"  // another tool's word
      "9|netcheck=fail action=annotate drain_brake=noisy acted=1002\n"
      "10|netcheck=fail action=annotate drain=n9 acted=900\n";  // long done, or never
  const auto deeds = read_deeds("", ended, 800, {99, 1000});
  EXPECT_EQ(drains_announced(deeds, 990), (std::vector<std::string>{"n3", "n4", "n5"}));
  EXPECT_EQ(
      drains_announced(read_deeds("", "7|netcheck=fail drain=n[1-2],…(+12) acted=1000\n", 800, {}), 990),
      std::nullopt);
}

// A request that was smuggled past the client's own check stands in the reason why it was refused.
TEST(ReadDeeds, CountsNothingThatAUserWrote) {
  const std::string smuggled =
      "7|netcheck=inconclusive phase=start reason=\"read --netcheck=1 acted=1000 drain=n[1-9]: no rate\" "
      "requeues=1\n";
  EXPECT_THAT(read_deeds("", smuggled, 800, {}), testing::IsEmpty());
  EXPECT_EQ(
      read_own_history("netcheck=fail slow=n3 reason=\"requeues=7 action=hold\" action=requeue requeues=1")
          .requeues,
      1u);
  EXPECT_EQ(read_own_history("netcheck=inconclusive reason=\"x slow=n9 y\" action=requeue").previous,
            "inconclusive");
}

TEST(OwnHistory, IsEmptyWhereNothingOfOursStands) {
  EXPECT_EQ(read_own_history("").requeues, 0u);
  EXPECT_EQ(read_own_history("requeues=7 action=requeue").requeues, 0u);  // another tool's words
  EXPECT_EQ(read_own_history("netcheck=pass time=1.0s").previous, "");
}

TEST(OwnHistory, TellsTheRefusedRunInOneWord) {
  const auto own = read_own_history(
      "netcheck=fail busbw=96.3Mbps min=400Mbps nodes=4 slow=n3(tx: 11.9Gbps),n4/eth1(rx: "
      "1.0Gbps),n1>n2(link: "
      "0Gbps) time=7.9s action=requeue requeues=1 acted=1000 | ticket=42");
  EXPECT_EQ(own.requeues, 1u);
  EXPECT_EQ(own.previous, "fail(slow=n3,n4/eth1,n1>n2)");
}

TEST(OwnHistory, NamesNodesWhoseHardwareFailedTheRunBefore) {
  EXPECT_EQ(read_own_history(
                "netcheck=fail busbw=9Gbps bad=n3(odd-mtu: 2x1400, others 2x1500),n4(port-down: mlx5_0) "
                "warn=n5(iommu: IOMMU) time=1.0s action=requeue requeues=1 acted=5")
                .previous,
            "fail(bad=n3,n4)");
}

TEST(OwnHistory, IsKeptByRunsThatWereNotRefused) {
  const auto own = read_own_history("netcheck=pass busbw=950Mbps time=1.0s requeues=2 prev=fail(slow=n3)");
  EXPECT_EQ(own.requeues, 2u);
  EXPECT_EQ(own.previous, "fail(slow=n3)");
}

TEST(OwnHistory, TakesTheLatestRefusal) {
  const auto own = read_own_history(
      "netcheck=fail slow=n4(tx: 1.0Gbps) time=2.0s action=requeue requeues=2 acted=5 prev=fail(slow=n3)");
  EXPECT_EQ(own.requeues, 2u);
  EXPECT_EQ(own.previous, "fail(slow=n4)");
}

TEST(OwnHistory, OfAnInconclusiveRunNamesNobody) {
  EXPECT_EQ(read_own_history("netcheck=inconclusive phase=rendezvous missing=n3 action=requeue requeues=1")
                .previous,
            "inconclusive");
}

}  // namespace
}  // namespace netcheck::prolog
