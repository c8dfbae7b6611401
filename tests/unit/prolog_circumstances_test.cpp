// What decides whether a job is checked: Slurm's words for it, and what passed before.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "prolog/circumstances.h"
#include "prolog/passes.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

SlurmFacts from(const std::map<std::string, std::string>& environment) {
  return facts_from_environment([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(SlurmFacts, AreInTheEnvironmentOfNewerVersions) {
  const SlurmFacts facts = from({{"SLURM_JOB_START_TIME", "1700000000"},
                                 {"SLURM_JOB_END_TIME", "1700001800"},
                                 {"SLURM_JOB_OVERSUBSCRIBE", "NO"}});
  EXPECT_EQ(facts.walltime, minutes(30));
  EXPECT_EQ(facts.share, "NO");
  const SlurmFacts none = from({});
  EXPECT_FALSE(none.walltime);
  EXPECT_FALSE(none.share);
  const SlurmFacts odd = from({{"SLURM_JOB_START_TIME", "1700000000"},
                               {"SLURM_JOB_END_TIME", "1699999999"},
                               {"SLURM_JOB_OVERSUBSCRIBE", "NO MORE"}});
  EXPECT_FALSE(odd.walltime);
  EXPECT_FALSE(odd.share);
}

// squeue -h -o in 22.05: columns of 24 letters.
std::string row(const char* id, const char* limit, const char* share) {
  char text[128];
  std::snprintf(text, sizeof text, "%-24s%-24s%-24s\n", id, limit, share);
  return text;
}

TEST(SlurmFacts, AreOneRowOfSqueue) {
  EXPECT_EQ(facts_format(), "JobID:24,TimeLimit:24,OverSubscribe:24");
  const SlurmFacts facts = read_facts(row("17", "1:00:00", "OK"), 17);
  EXPECT_EQ(facts.walltime, hours(1));
  EXPECT_EQ(facts.share, "OK");
  // An array's other tasks are listed under the same number.
  const SlurmFacts task = read_facts(row("18", "30:00", "OK") + row("17", "UNLIMITED", "NO"), 17);
  EXPECT_EQ(task.walltime, kUnlimited);
  EXPECT_EQ(task.share, "NO");
}

TEST(SlurmFacts, AreUnknownWhereTheAnswerIsNotClear) {
  for (const std::string& text : {std::string(), row("18", "30:00", "NO"), row("17", "NOT_SET", "PERHAPS"),
                                  row("17", "30:00", "NO") + row("17", "30:00", "NO"),
                                  std::string("17 30:00 NO"), std::string(10'000, 'x')}) {
    const SlurmFacts facts = read_facts(text, 17);
    EXPECT_FALSE(facts.walltime) << text;
    EXPECT_FALSE(facts.share) << text;
  }
}

TEST(TimeLimit, IsReadAsSqueueWritesIt) {
  EXPECT_EQ(parse_time_limit("30"), minutes(30));
  EXPECT_EQ(parse_time_limit("0:30"), seconds(30));
  EXPECT_EQ(parse_time_limit("1:30:05"), seconds(5'405));
  EXPECT_EQ(parse_time_limit("2-03:00:00"), hours(51));
  EXPECT_EQ(parse_time_limit("UNLIMITED"), kUnlimited);
  for (const char* none : {"", "NOT_SET", "INVALID", "Partition_Limit", "1-", "-1", "1:2:3:4", "2-03:00", ":",
                           "1e3", "99999999999999999999"})
    EXPECT_FALSE(parse_time_limit(none)) << none;
}

TEST(OwnsNodes, ByItsFlagOrByHavingAllCpus) {
  EXPECT_EQ(owns_nodes("NO", "1(x4)", 8), true);  // --exclusive
  EXPECT_EQ(owns_nodes("USER", "1(x4)", 8), true);
  EXPECT_EQ(owns_nodes("OK", "8(x4)", 8), true);
  EXPECT_EQ(owns_nodes("OK", "8,4", 8), false);  // a part of the second, as far as this node can tell
  EXPECT_EQ(owns_nodes("OK", "8,8(x2),16", 8), true);
  EXPECT_EQ(owns_nodes("OK", "8(x2),", 8), false);
  EXPECT_EQ(owns_nodes("OK", "4,8", 8), false);
  EXPECT_EQ(owns_nodes("OK", "", 8), false);
  EXPECT_EQ(owns_nodes("YES", "8(x4)", 8), false);  // others may be put beside it
  EXPECT_EQ(owns_nodes("MCS", "4", 8), false);
  EXPECT_EQ(owns_nodes(std::nullopt, "8(x4)", 8), true);
  EXPECT_EQ(owns_nodes(std::nullopt, "4(x4)", 8), std::nullopt);
  EXPECT_EQ(owns_nodes(std::nullopt, "", 0), std::nullopt);
}

TEST(Circumstances, GroupsAreLookedUpOnlyWhereTheyCount) {
  Job job;
  job.user = "root";
  job.account = "ml";
  Policy policy;
  const Time soon = system::now() + seconds(20);
  EXPECT_THAT(known_to_all(job, true, policy, soon).groups, testing::IsEmpty());
  policy.allow_groups = {"hpc"};
  const Circumstances known = known_to_all(job, true, policy, soon);
  EXPECT_THAT(known.groups, testing::Contains("root"));
  EXPECT_TRUE(known.asked);
  EXPECT_EQ(known.account, "ml");
}

TEST(Pass, IsReadAsItWasWritten) {
  const PastPass pass{.ago = {},
                      .busbw = Rate{400e9},
                      .op = "auto",
                      .min_per_rail = Rate{50e9},
                      .min_per_pair = {},
                      .with = "f00d"};
  const auto read = read_pass(write_pass(pass, 1'000), 1'180);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ago, minutes(3));
  EXPECT_EQ(read->busbw, Rate{400e9});
  EXPECT_EQ(read->op, "auto");
  EXPECT_EQ(read->min_per_rail, Rate{50e9});
  EXPECT_FALSE(read->min_per_pair);
  EXPECT_EQ(read->with, "f00d");
  for (const char* none : {"", "1000", "1000 4e11 sum 0 0", "1000 nan auto 0 0", "1000 0 auto 0 0",
                           "-5 4e11 auto 0 0", "2000 4e11 auto 0 0"})
    EXPECT_FALSE(read_pass(none, 1'180)) << none;
}

TEST(Pass, IsKeptByTheSetOfNodes) {
  std::string folder = (std::filesystem::temp_directory_path() / "netcheck-passes-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  const PastPass pass{
      .ago = {}, .busbw = Rate{400e9}, .op = "auto", .min_per_rail = {}, .min_per_pair = {}, .with = "f00d"};
  ASSERT_TRUE(remember_pass(folder, {"n1", "n2", "n3"}, pass));
  EXPECT_TRUE(last_pass(folder, {"n3", "n1", "n2"}));
  EXPECT_FALSE(last_pass(folder, {"n1", "n2"}));
  EXPECT_FALSE(last_pass(folder, {"n1", "n2", "n4"}));
  EXPECT_FALSE(last_pass(folder + "/nowhere/at/all", {"n1", "n2", "n3"}));
  Policy policy;
  policy.run_directory = folder;
  policy.min_interval = minutes(10);
  ASSERT_TRUE(remember_pass(judge::Inconclusive{}, policy, {"n1", "n2", "n3"}));
  EXPECT_TRUE(last_pass(folder, {"n1", "n2", "n3"}));
  ASSERT_TRUE(remember_pass(judge::Fail{}, policy, {"n2", "n1", "n3"}));
  EXPECT_FALSE(last_pass(folder, {"n1", "n2", "n3"}));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace netcheck::prolog
