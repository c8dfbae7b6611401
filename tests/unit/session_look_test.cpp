// The look at the hardware, by a process that does what it should not: the check hears of it once, in time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "contract/wire.h"
#include "machines.h"
#include "measure/locality.h"
#include "session/look.h"

namespace netcheck::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class LookTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// What comes of a program that does this; it has 5 s.
  Result<Seen> look(const std::string& script, Ns patience = seconds(5)) {
    const std::string program = folder_ + "/program";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0755);
    system::Loop loop;
    std::optional<Result<Seen>> seen;
    const Look look(loop, program, policy_, system::now() + patience, [&](Result<Seen> told) {
      EXPECT_FALSE(seen) << "told twice";
      seen = std::move(told);
      loop.stop();
    });
    EXPECT_TRUE(loop.run_until(system::now() + seconds(20)));
    return std::move(*seen);
  }
  std::string file_of(const Bytes& bytes) {
    const std::string path = folder_ + "/machine";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  std::string folder_ =
      fmt::format("{}/look-{}", std::filesystem::temp_directory_path().string(), ::getpid());
  Policy policy_;
};

TEST_F(LookTest, BringsTheMachineWithItsFabricPortsTold) {
  Machine machine;
  machine.product = "HGX";
  for (const char* name : {"lo", "eth0", "eth1"}) {
    NetworkPort port;
    port.name = port.interface = name;
    port.state = PortState::up;
    machine.ports.push_back(port);
  }
  policy_.exclude = {"eth1"};
  const auto seen = look("cat " + file_of(to_cbor({{"machine", to_json(machine)}})) + " >&3");
  ASSERT_TRUE(seen) << describe(seen.error());
  EXPECT_EQ(seen->machine.product, "HGX");
  EXPECT_EQ(seen->machine.ports[1].why_not, "");
  EXPECT_NE(seen->machine.ports[0].why_not, "");
  EXPECT_EQ(seen->machine.ports[2].why_not, "excluded by the site");
}

// A virtual machine whose PCI tree is flat, beside the file that its cloud ships.
TEST_F(LookTest, TakesWhatIsNearToWhatFromTheSitesFile) {
  Machine flat = fixture::recorded("hgx"), file = flat;
  for (PciDevice& device : flat.pci)
    if (device.kind == PciKind::gpu || device.kind == PciKind::nic) device.parent = 0;
  file.source = "cloud.xml";
  policy_.nccl_topology = "/etc/cloud.xml";
  const Json told = {{"machine", to_json(flat)}, {"file", to_json(file)}};
  const auto seen = look("[ \"$2\" = --nccl=/etc/cloud.xml ] && cat " + file_of(to_cbor(told)) + " >&3");
  ASSERT_TRUE(seen) << describe(seen.error());
  EXPECT_EQ(nearest_ports(seen->machine, 0, false).distance, Distance::pix);
  EXPECT_TRUE(seen->contradicted.empty());
  const auto alone = look("cat " + file_of(to_cbor({{"machine", to_json(flat)}})) + " >&3");
  ASSERT_TRUE(alone) << describe(alone.error());
  EXPECT_EQ(nearest_ports(alone->machine, 0, false).distance, Distance::phb);
}

TEST_F(LookTest, EndsWithoutOneWhereTheProcessCrashes) {
  const auto seen = look("kill -SEGV $$");
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().reason, "its process ended without a word");
}

TEST_F(LookTest, EndsInTimeWhereTheProcessHangs) {
  const Time began = system::now();
  const auto seen = look("printf x >&3; sleep 60", milliseconds(300));
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().reason, "it took too long");
  EXPECT_LT(system::now() - began, seconds(10));
}

TEST_F(LookTest, EndsWithoutOneWhereTheProcessTalksNonsenseOrWithoutEnd) {
  EXPECT_FALSE(look("echo no machine >&3"));
  const auto seen = look("exec yes >&3");
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().reason, "there is too much of it");
}

TEST_F(LookTest, EndsWithoutOneWhereThereIsNoProgram) {
  system::Loop loop;
  std::optional<Result<Seen>> seen;
  const Look look(loop, "/nonexistent", policy_, system::now() + seconds(5), [&](Result<Seen> told) {
    seen = std::move(told);
    loop.stop();
  });
  EXPECT_TRUE(loop.run_until(system::now() + seconds(20)));
  EXPECT_FALSE(*seen);
}

}  // namespace
}  // namespace netcheck::session
