// The prolog's environment, hostile values included, as slurmd 22.05.8 builds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "prolog/job.h"

namespace netcheck::prolog {
namespace {

using Environment = std::map<std::string, std::string>;

Environment healthy() {
  return {
      {"SLURM_JOB_ID", "17"},           {"SLURM_JOB_UID", "1000"},       {"SLURM_JOB_GID", "1001"},
      {"SLURM_NODELIST", "n[1-4]"},     {"SLURMD_NODENAME", "n3"},       {"SLURM_CLUSTER_NAME", "demo"},
      {"SLURM_JOB_RESTART_COUNT", "2"}, {"SLURM_JOB_PARTITION", "main"}, {"SLURM_JOB_ACCOUNT", "physics"}};
}

Result<Job> read(const Environment& environment) {
  return job_from_environment([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

Result<Job> read_with(const std::string& name, const std::string& value) {
  Environment environment = healthy();
  environment[name] = value;
  return read(environment);
}

TEST(JobFromEnvironment, ReadsWhatSlurmdSets) {
  const auto job = read(healthy());
  ASSERT_TRUE(job) << describe(job.error());
  EXPECT_EQ(job->roster.run, (JobRun{"demo", 17, 2}));
  EXPECT_THAT(job->roster.nodes, testing::ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_EQ(job->roster.self, 2u);
  EXPECT_EQ(job->uid, 1000u);
  EXPECT_EQ(job->gid, 1001u);
  EXPECT_EQ(job->partition, "main");
  EXPECT_EQ(job->account, "physics");
}

TEST(JobFromEnvironment, TakesTheNewerNameOfTheNodeListWhereTheOlderIsNotSet) {
  Environment environment = healthy();
  environment.erase("SLURM_NODELIST");
  environment["SLURM_JOB_NODELIST"] = "n3,n9";
  const auto job = read(environment);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->roster.self, 0u);
}

TEST(JobFromEnvironment, TakesAnAbsentRestartCountForTheFirstRun) {
  Environment environment = healthy();
  environment.erase("SLURM_JOB_RESTART_COUNT");
  const auto job = read(environment);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->roster.run.restart, 0u);
}

TEST(JobFromEnvironment, NamesTheVariableThatIsNotSet) {
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GID", "SLURMD_NODENAME", "SLURM_CLUSTER_NAME"}) {
    Environment environment = healthy();
    environment.erase(name);
    const auto job = read(environment);
    ASSERT_FALSE(job) << name;
    EXPECT_EQ(job.error().subject, name);
  }
}

struct Hostile {
  const char* name;
  std::string value;
};
class JobFromHostileEnvironment : public testing::TestWithParam<Hostile> {};

TEST_P(JobFromHostileEnvironment, IsRefusedInOneLineThatNamesTheVariable) {
  const auto job = read_with(GetParam().name, GetParam().value);
  ASSERT_FALSE(job) << GetParam().name << "=" << GetParam().value;
  const std::string line = describe(job.error());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_LT(line.size(), 1'025u);
}

INSTANTIATE_TEST_SUITE_P(
    Table, JobFromHostileEnvironment,
    testing::Values(Hostile{"SLURM_JOB_ID", "0"}, Hostile{"SLURM_JOB_ID", "-1"}, Hostile{"SLURM_JOB_ID", ""},
                    Hostile{"SLURM_JOB_ID", "17x"}, Hostile{"SLURM_JOB_ID", "+17"},
                    Hostile{"SLURM_JOB_ID", " 17"}, Hostile{"SLURM_JOB_ID", "4294967296"},
                    Hostile{"SLURM_JOB_ID", std::string(10'000, '9')}, Hostile{"SLURM_JOB_UID", "4294967295"},
                    Hostile{"SLURM_JOB_GID", "4294967295"}, Hostile{"SLURM_JOB_UID", "root"},
                    Hostile{"SLURM_JOB_RESTART_COUNT", "1e3"},
                    Hostile{"SLURM_CLUSTER_NAME", "a/../../etc/passwd"},
                    Hostile{"SLURM_CLUSTER_NAME", "a\nb"},
                    Hostile{"SLURM_CLUSTER_NAME", std::string(65, 'c')}, Hostile{"SLURMD_NODENAME", "n9"},
                    Hostile{"SLURMD_NODENAME", "n3\nn4"}, Hostile{"SLURM_NODELIST", "n[1-4"},
                    Hostile{"SLURM_NODELIST", "n[1-99999999]"}, Hostile{"SLURM_NODELIST", "n3,n3"},
                    Hostile{"SLURM_NODELIST", "n3;reboot"}, Hostile{"SLURM_NODELIST", ""}));

std::vector<std::string> gpus(const std::string& list) {
  const auto gpus = gpus_from(list);
  return gpus ? *gpus : std::vector<std::string>{"refused: " + describe(gpus.error())};
}

TEST(JobsGpus, AreReadInEveryFormThatSlurmWrites) {
  using testing::ElementsAre;
  EXPECT_THAT(gpus(""), testing::IsEmpty());
  EXPECT_THAT(gpus("0"), ElementsAre("gpu:0"));
  EXPECT_THAT(gpus("0,1"), ElementsAre("gpu:0", "gpu:1"));
  EXPECT_THAT(gpus("0-3"), ElementsAre("gpu:0", "gpu:1", "gpu:2", "gpu:3"));
  EXPECT_THAT(gpus("6,0-1,10"), ElementsAre("gpu:0", "gpu:1", "gpu:6", "gpu:10"));
  EXPECT_THAT(gpus("gpu:2,gpu:3"), ElementsAre("gpu:2", "gpu:3"));
  EXPECT_THAT(gpus("1,1"), ElementsAre("gpu:1"));
}

TEST(JobsGpus, AreRefusedInOneLineWhereTheyAreNone) {
  for (const std::string list : {"x", "0,", ",0", "0,,1", "3-1", "-1", "0-", "1 2", "0x1", "99999",
                                 "0-4294967295", "NoDevFiles", "gpu:", "0\n1"}) {
    const auto refused = gpus_from(list);
    ASSERT_FALSE(refused) << list;
    EXPECT_EQ(refused.error().subject, "SLURM_JOB_GPUS");
    EXPECT_EQ(describe(refused.error()).find('\n'), std::string::npos);
  }
  EXPECT_THAT(describe(gpus_from("MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0").error()),
              testing::HasSubstr("slices of GPUs"));
  EXPECT_FALSE(gpus_from(std::string(1u << 20, '1')));
}

TEST(JobsGpus, ThatCannotBeReadAreNoReasonToKnowNothingOfTheJob) {
  const auto job = read_with("SLURM_JOB_GPUS", "all of them");
  ASSERT_TRUE(job);
  EXPECT_FALSE(job->gpus);
  EXPECT_THAT(*read_with("SLURM_JOB_GPUS", "1")->gpus, testing::ElementsAre("gpu:1"));
  EXPECT_THAT(*read(healthy())->gpus, testing::IsEmpty());
}

TEST(JobFromEnvironment, TakesControlCharactersOutOfNamesThatAreOnlyShown) {
  const auto job = read_with("SLURM_JOB_PARTITION", "main\nnetcheck=pass");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->partition, "main netcheck=pass");
}

}  // namespace
}  // namespace netcheck::prolog
