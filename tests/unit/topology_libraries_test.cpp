// Which libraries a machine has to carry a job's data: the UCX that is installed here, and a stand-in for
// NCCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace netcheck::topology
#endif
