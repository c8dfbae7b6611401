// A node with GPUs: what a check over them needs of it.
#include <gmock/gmock.h>

#include "doctor/gpu.h"
#include "doctor/gpu_questions.h"

namespace netcheck::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

LibraryFacts facts(Library library, std::string version = "") {
  return {.library = library,
          .file = {.path = "/opt/lib/libx.so.1", .there = true, .regular = true, .mode = 0755},
          .folder = {.path = "/opt/lib", .there = true, .folder = true, .mode = 0755},
          .version = std::move(version)};
}

TEST(DoctorGpu, KnowsByGresWhetherANodeHasGpus) {
  for (const char* gres :
       {"gpu:2", "gpu:h200:8(S:0-1)", "nvme:1,gpu:a100:4", "gpu(S:0)", "gres:gpu:1", "gpu"})
    EXPECT_TRUE(has_gpus(gres)) << gres;
  for (const char* gres : {"(null)", "", "nvme:1", "gpu:0", "gpumem:80G", "mygpu:2"})
    EXPECT_FALSE(has_gpus(gres)) << gres;
}

TEST(DoctorGpu, ALibraryIsToldWithItsPathAndVersion) {
  const Findings findings = check_library(facts(Library::nccl, "2.28.9"));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].level, Level::ok);
  EXPECT_EQ(findings[0].why, "/opt/lib/libx.so.1, version 2.28.9, and root's alone to change");
  EXPECT_EQ(check_library(facts(Library::nccl, "3.0.1"))[0].level, Level::ok);
  EXPECT_EQ(check_library(facts(Library::driver))[0].why, "/opt/lib/libx.so.1, and root's alone to change");
}

TEST(DoctorGpu, AMissingLibrarySaysWhatHangsOnIt) {
  LibraryFacts missing{.library = Library::nccl,
                       .load = Error{"open", "libnccl.so.2", "No such file or directory", ""}};
  EXPECT_EQ(check_library(missing)[0].level, Level::fail);
  EXPECT_THAT(check_library(missing)[0].why, AllOf(HasSubstr("libnccl.so.2"), HasSubstr("inconclusive")));
  EXPECT_THAT(check_library(missing)[0].remedy, HasSubstr("with library in [nccl]"));
  missing.library = Library::watcher;
  EXPECT_EQ(check_library(missing)[0].level, Level::warn) << "a check does without";
}

TEST(DoctorGpu, LibrariesAreNotJudgedWhereNobodyKnowsWhichOnesTheSiteNames) {
  const Findings findings = check_libraries({}, {});  // nothing was asked: the site's file is broken
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].level, Level::unseen);
  EXPECT_EQ(findings[0].what, "GPU libraries");
  EXPECT_THAT(findings[0].why, testing::StartsWith("not judged: "));
}

TEST(DoctorGpu, ALibraryThatIsSomethingElseIsNone) {
  LibraryFacts other = facts(Library::nccl);
  other.lacks = "ncclGetVersion";
  EXPECT_EQ(check_library(other)[0].level, Level::fail);
  EXPECT_THAT(check_library(other)[0].why, HasSubstr("is something else, without ncclGetVersion"));
  EXPECT_THAT(check_library(other)[0].remedy, HasSubstr("library in [nccl]"));
  other.library = Library::watcher;
  EXPECT_EQ(check_library(other)[0].level, Level::warn);
}

TEST(DoctorGpu, AnOldNcclAndOneThatOthersCanChangeFail) {
  EXPECT_THAT(check_library(facts(Library::nccl, "2.17.1"))[0].why, HasSubstr("is 2.17.1"));
  EXPECT_EQ(check_library(facts(Library::nccl, "2.17.1"))[0].level, Level::fail);
  EXPECT_EQ(check_library(facts(Library::nccl, "2.18.0"))[0].level, Level::ok);
  LibraryFacts writable = facts(Library::nccl, "2.28.9");
  writable.folder.mode = 0777;
  EXPECT_EQ(check_library(writable)[0].level, Level::fail);
  EXPECT_EQ(check_library(writable)[0].remedy, "chmod go-w /opt/lib");
  writable = facts(Library::driver);
  writable.file.owner = 1000;
  EXPECT_EQ(check_library(writable)[0].remedy, "chown root /opt/lib/libx.so.1");
}

}  // namespace
}  // namespace netcheck::doctor
