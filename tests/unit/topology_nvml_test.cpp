// What NVIDIA's driver says of its GPUs, asked of a stand-in (tests/fakes/gpu/nvml_machine.cpp) that is told
// by a file what to say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "machines.h"
#include "measure/locality.h"
#include "system/loop.h"
#include "topology/machine.h"
#include "topology/nvml.h"

namespace netcheck::topology {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class NvmlTest : public testing::Test {
 protected:
  NvmlTest() {
    ::setenv("NETCHECK_FAKE_NVML", file_.c_str(), 1);
    machine_.nvlinks.clear();
    machine_.nvlinks_known = false;
    machine_.drivers.clear();
    for (Gpu& gpu : machine_.gpus)
      gpu = {.pci = gpu.pci, .model = "GH100 [H100 SXM5 80GB]"};
  }
  ~NvmlTest() override { std::filesystem::remove(file_); }

  /// Eight of them, each with 18 links to switches; `more` is of the one at `address`.
  void eight(const std::string& address = "", const std::string& more = "") {
    std::ofstream file(file_);
    file << "driver 550.54.15\n";
    for (const Gpu& gpu : machine_.gpus) {
      const std::string own = machine_.pci[gpu.pci].address;
      file << "gpu " << own << "\nname NVIDIA H100 80GB HBM3\nuuid GPU-" << own
           << "\nmig 0\nthrottle 1\nlimit 700000\ndefault 700000\n";
      file << (own == address ? more : "links 18 switch\n");
    }
  }
  void say(const std::string& text) { std::ofstream(file_) << text; }
  const Machine& ask(Ns patience = seconds(20)) {
    ask_driver(machine_, patience, NETCHECK_TEST_NVML);
    return machine_;
  }

  std::string file_ = std::filesystem::temp_directory_path() / ("nvml-" + std::to_string(::getpid()));
  Machine machine_ = fixture::recorded("hgx");
};

TEST_F(NvmlTest, TellsOfEveryGpu) {
  eight();
  const Machine& machine = ask();
  for (const Gpu& gpu : machine.gpus) {
    EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(gpu.uuid, "GPU-" + machine.pci[gpu.pci].address);
    EXPECT_EQ(gpu.known_to_driver, true);
    EXPECT_EQ(gpu.mig, false);
    EXPECT_EQ(gpu.slowed, "");  // idle, as a GPU is before a job
    EXPECT_EQ(gpu.power_limit, 700u);
    EXPECT_EQ(gpu.power_default, 700u);
  }
  EXPECT_THAT(machine.drivers, ElementsAre(DriverVersion{"nvidia", "550.54.15"}));
  EXPECT_TRUE(machine.nvlinks_known);
  EXPECT_EQ(nvlinks_between(machine, 0, 7), 18u);
  EXPECT_EQ(nvlinks_of(machine, 3).rate, Rate{3600e9});  // 18 × 25 GB/s
  EXPECT_THAT(machine.notes, IsEmpty());
}

TEST_F(NvmlTest, TellsWhereNvlinksGo) {
  machine_.gpus.resize(2);  // 0000:19:00.0 and 0000:1b:00.0
  say("gpu 0000:19:00.0\nlinks 4 0000:1B:00.0\nlinks 2 none\n"
      "gpu 0000:1b:00.0\nlinks 4 0000:19:00.0\nlinks 2 0000:EE:00.0\n");
  const Machine& machine = ask();
  EXPECT_EQ(nvlinks_between(machine, 0, 1), 4u);
  EXPECT_EQ(nvlinks_of(machine, 0).count, 4u);  // two are down
  EXPECT_EQ(nvlinks_of(machine, 1).count, 4u);  // two go to a GPU that is not here
}

TEST_F(NvmlTest, KnowsGpusThatHaveNoNvlinks) {
  say("gpu 0000:19:00.0\ngpu 0000:1b:00.0\n");
  machine_.gpus.resize(2);
  EXPECT_TRUE(ask().nvlinks_known);
  EXPECT_THAT(machine_.nvlinks, IsEmpty());
}

TEST_F(NvmlTest, SaysWhyAGpuIsHeldDown) {
  const std::pair<const char*, const char*> reasons[] = {
      {"throttle 128\n", "power brake, from the power supply"},  // nvmlClocksThrottleReason… of nvml.h
      {"throttle 72\n", "too hot"},                              // HwThermalSlowdown and HwSlowdown
      {"throttle 32\n", "too hot"},
      {"throttle 8\n", "slowed down by hardware"},
      {"throttle 5\n", ""}};  // idle; at its power limit
  for (const auto& [reason, words] : reasons) {
    eight("0000:19:00.0", reason);
    EXPECT_EQ(ask().gpus[0].slowed, words) << reason;
  }
}

TEST_F(NvmlTest, KnowsSlicesAndPowerLimits) {
  eight("0000:19:00.0", "mig 1\nlimit 400000\n");
  const Machine& machine = ask();
  EXPECT_EQ(machine.gpus[0].mig, true);
  EXPECT_EQ(machine.gpus[0].power_limit, 400u);
  EXPECT_FALSE(machine.nvlinks_known);  // a slice has none: no uneven numbers
}

TEST_F(NvmlTest, KnowsAGpuThatTheDriverHasLost) {
  eight("0000:19:00.0", "lost\n");
  const Machine& machine = ask();
  EXPECT_EQ(machine.gpus[0].known_to_driver, false);
  EXPECT_EQ(machine.gpus[0].model, "GH100 [H100 SXM5 80GB]");
  EXPECT_EQ(machine.gpus[1].known_to_driver, true);
  EXPECT_EQ(nvlinks_of(machine, 1).count, 18u);  // of those that are left
}

// Inside a job's device cgroup a process is offered the job's GPUs alone.
TEST_F(NvmlTest, HoldsNothingAgainstAGpuThatIsNotOfferedToUs) {
  say("gpu 0000:1b:00.0\nlinks 18 switch\n");
  const Machine& machine = ask();
  EXPECT_FALSE(machine.gpus[0].known_to_driver);
  EXPECT_EQ(machine.gpus[1].known_to_driver, true);
}

TEST_F(NvmlTest, NotesGpusThatTheBusDoesNotShow) {
  say("count 10\n");
  EXPECT_THAT(ask().notes, ElementsAre("the driver knows 2 GPUs that are not to be seen on the bus"));
}

TEST_F(NvmlTest, IsLeftAloneWhereItHangsOrCrashes) {
  const Machine before = machine_;
  say("crash\n");
  EXPECT_EQ(ask(), before);
  say("hang\n");
  const Time began = system::now();
  EXPECT_THAT(ask(milliseconds(100)).notes,
              ElementsAre("the GPUs' driver did not answer in time: what it alone knows is not known"));
  EXPECT_LT(system::now() - began, seconds(10));
  machine_.notes.clear();
  EXPECT_EQ(machine_, before);
}

TEST_F(NvmlTest, IsNotAskedWhereThereIsNoLibraryAndNoGpu) {
  const Machine before = machine_;
  ask_driver(machine_, seconds(20), "/nonexistent/libnvidia-ml.so.1");
  EXPECT_EQ(machine_, before);
  eight();
  Machine cpu = fixture::recorded("cpu-hdr");
  const Machine same = cpu;
  ask_driver(cpu, seconds(20), NETCHECK_TEST_NVML);  // it would have a version to tell
  EXPECT_EQ(cpu, same);
}

}  // namespace
}  // namespace netcheck::topology
