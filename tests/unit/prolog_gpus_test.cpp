// What a supervisor makes of the GPUs that Slurm says the job has on its node.
#include "prolog_stand.h"

namespace netcheck::prolog::test {
namespace {

TEST_F(Supervise, ChoosesTheFabricByWhatTheJobHasOnTheNode) {
  const auto given = [this](const char* of) {
    program("cat <&3 > $BASE/scratch/assignment");
    run();
    const Json assignment = Json::parse(content(base_ / "scratch/assignment"));
    return std::string(of) == "gpus" ? assignment.at("gpus") : assignment.at("policy").at("fabric");
  };
  EXPECT_EQ(given("fabric"), "ucx");
  EXPECT_EQ(given("gpus"), Json::array());
  gpus_ = "";
  EXPECT_EQ(given("fabric"), "ucx");
  gpus_ = "0,2-3";
  EXPECT_EQ(given("fabric"), "nccl");
  EXPECT_EQ(given("gpus"), Json({"gpu:0", "gpu:2", "gpu:3"}));
  config("[fabric]\nfabric = \"ucx\"\n");
  EXPECT_EQ(given("fabric"), "ucx");
}

TEST_F(Supervise, SaysInOneLineThatTheJobsGpusCannotBeRead) {
  for (const char* list : {"all of them", "MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0", "3-1"}) {
    gpus_ = list;
    expect_clean(run("n1"));
    EXPECT_THAT(line(), HasSubstr("netcheck=inconclusive phase=start")) << list;
    EXPECT_THAT(line(), HasSubstr("SLURM_JOB_GPUS")) << list;
  }
  config("[fabric]\nfabric = \"ucx\"\n");  // needs none of them
  run("n1");
  EXPECT_THAT(line(), testing::Not(HasSubstr("SLURM_JOB_GPUS")));
}

TEST_F(Supervise, SaysThatThereIsNoGpuWhereTheSiteWantsThemMeasured) {
  config("[fabric]\nfabric = \"nccl\"\n");
  expect_clean(run("n1"));
  EXPECT_THAT(line(), HasSubstr("the job has no GPU on n1"));
}

TEST_F(Supervise, TakesNoLibraryThatOthersThanRootCanChange) {
  gpus_ = "0";
  const fs::path library = base_ / "libnccl.so.2";
  std::ofstream(library) << "";
  config("[nccl]\nlibrary = \"" + library.string() + "\"\n");
  fs::permissions(library, fs::perms(0666));
  expect_clean(run("n1"));
  EXPECT_THAT(line(), HasSubstr("libnccl.so.2: it can be changed by others than root"));
  fs::permissions(library, fs::perms(0644));
  run("n1");
  EXPECT_THAT(line(), testing::Not(HasSubstr("libnccl")));
}

}  // namespace
}  // namespace netcheck::prolog::test
