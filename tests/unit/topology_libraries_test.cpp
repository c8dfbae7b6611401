// Which libraries a machine has to carry a job's data: the UCX that is installed here, and a stand-in for
// NCCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "machines.h"
#include "topology/machine.h"

#ifdef NETCHECK_TEST_FAKE_NCCL
namespace netcheck::topology {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

const LibraryVersion kUcx{"UCX", NETCHECK_TEST_UCX_VERSION};  // as pkg-config has it

TEST(Libraries, AreToldByThemselves) {
  Machine machine = fixture::recorded("hgx");
  ask_libraries(machine, seconds(20), NETCHECK_TEST_FAKE_NCCL);
  EXPECT_THAT(machine.libraries,
              ElementsAre(kUcx, LibraryVersion{"NCCL", "2.28.9"}));  // tests/fakes/gpu/nccl.cpp: 22809
  EXPECT_THAT(machine.notes, IsEmpty());
  EXPECT_EQ(machine_from_json(to_json(machine)), machine);
}

TEST(Libraries, NcclIsNotAskedWhereNoGpuIs) {
  Machine machine = fixture::recorded("cpu-hdr");
  ask_libraries(machine, seconds(20), NETCHECK_TEST_FAKE_NCCL);
  EXPECT_THAT(machine.libraries, ElementsAre(kUcx));
}

TEST(Libraries, WhatIsNotInstalledIsLeftOut) {
  Machine machine = fixture::recorded("hgx");
  ask_libraries(machine, seconds(20), "/nonexistent/libnccl.so.2");
  EXPECT_THAT(machine.libraries, ElementsAre(kUcx));
  EXPECT_THAT(machine.notes, IsEmpty());
}

// Root may call from a user's folder, with a user's variables.
TEST(Libraries, TakeNoSettingsFromWhereverTheyAreAskedFrom) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("asked-from-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "ucx.conf") << "UCX_LOG_LEVEL=trace\nUCX_LOG_FILE=" << (folder / "by-file").string()
                                     << '\n';
  ::setenv("UCX_LOG_LEVEL", "trace", 1);
  ::setenv("UCX_LOG_FILE", (folder / "by-variable").c_str(), 1);
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  Machine machine = fixture::recorded("cpu-hdr");
  ask_libraries(machine, seconds(20), "");
  fs::current_path(before);
  ::unsetenv("UCX_LOG_LEVEL");
  ::unsetenv("UCX_LOG_FILE");
  EXPECT_THAT(machine.libraries, ElementsAre(kUcx));
  EXPECT_FALSE(fs::exists(folder / "by-file"));
  EXPECT_FALSE(fs::exists(folder / "by-variable"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace netcheck::topology
#endif
