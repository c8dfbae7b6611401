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

TEST(JobFromEnvironment, TakesControlCharactersOutOfNamesThatAreOnlyShown) {
  const auto job = read_with("SLURM_JOB_PARTITION", "main\nnetcheck=pass");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->partition, "main netcheck=pass");
}

}  // namespace
}  // namespace netcheck::prolog
