// The NCCL module in fabric children over the stand-ins for libcuda, libnccl and NVML (tests/fakes/gpu): for
// its tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../fabric/nodes.h"
#include "measure/collective.h"
#include "own_tree.h"

namespace netcheck::fabric {

#ifndef NETCHECK_TEST_NCCL
#define NETCHECK_TEST_NCCL ""
#define NETCHECK_TEST_GPU ""
#endif

inline constexpr const char* kGpus[] = {"0000:f0:00.0", "0000:f1:00.0"};

inline std::string failure_of(const std::optional<Event>& event) {
  if (!event) return "no event";
  const auto* failed = std::get_if<Failed>(&*event);
  return failed == nullptr ? "" : failed->detail;
}
template <typename T>
bool is(const std::optional<Event>& event) {
  return event && std::holds_alternative<T>(*event);
}

class FabricNccl : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(NETCHECK_TEST_NCCL).empty()) GTEST_SKIP() << "built without the NCCL module";
    std::string pattern = (std::filesystem::temp_directory_path() / "nccl-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    nodes_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// Stand-ins of a node's own, with its faults.
  Options options(std::size_t node, const std::string& faults = "") {
    const std::string folder = folder_ + "/" + std::to_string(node);
    std::filesystem::create_directory(folder);
    for (const std::string library : {"libcuda.so.1", "libnccl.so.2", "libnvidia-ml.so.1"}) {
      std::error_code exists;
      std::filesystem::create_symlink(own(NETCHECK_TEST_GPU) + "/" + library, folder + "/" + library, exists);
    }
    std::ofstream(folder + "/fake.ini") << faults;
    return {.devices = {kGpus[0], kGpus[1]},
            .max_bytes = 16 << 20,
            .settings = {{"driver", folder + "/libcuda.so.1"},
                         {"library", folder + "/libnccl.so.2"},
                         {"watcher", folder + "/libnvidia-ml.so.1"}}};
  }
  /// As many nodes as there are faults, opened. The answers.
  std::vector<std::optional<Event>> open(const std::vector<std::string>& faults) {
    nodes_ = std::make_unique<Nodes>(std::vector<ChildCommand>(
        faults.size(), ChildCommand{own(NETCHECK_TEST_HOST), own(NETCHECK_TEST_NCCL), "nccl"}));
    for (std::size_t node = 0; node < faults.size(); ++node)
      nodes_->fabric(node).open(options(node, faults[node]));
    return nodes_->gather(nodes_->everyone(), std::chrono::seconds(10));
  }
  /// The refusal of one node.
  std::string refusal(const Options& options) {
    nodes_ = std::make_unique<Nodes>(
        std::vector{ChildCommand{own(NETCHECK_TEST_HOST), own(NETCHECK_TEST_NCCL), "nccl"}});
    const auto event = nodes_->open(options)[0];
    if (!is<Failed>(event)) return "opened";
    EXPECT_EQ(std::get<Failed>(*event).trouble, judge::Trouble::refused);
    return failure_of(event);
  }
  /// Two nodes of two GPUs in team 1.
  void form(const std::vector<std::string>& faults = {"", ""}) {
    for (const auto& event : open(faults))
      ASSERT_TRUE(is<Ready>(event)) << failure_of(event);
    for (const auto& event : nodes_->form(kTeam))
      ASSERT_TRUE(is<Joined>(event)) << failure_of(event);
  }
  static Batch batch(Op op, std::uint64_t bytes, std::uint32_t id = 1) {
    Batch one;
    one.id = id;
    one.team = 1;
    one.op = op;
    one.bytes = bytes;
    one.warmup = 1;
    one.iterations = 3;
    one.seed = 77 + id;
    if (op == Op::transfer) one.edges = {{0, 2}, {2, 0}, {1, 3}};
    return one;
  }
  std::vector<Sample> samples(const std::vector<std::optional<Event>>& events) {
    std::vector<Sample> all;
    for (const auto& event : events) {
      EXPECT_TRUE(is<Measured>(event)) << failure_of(event);
      if (!is<Measured>(event)) continue;
      const auto& local = std::get<Measured>(*event).local;
      all.insert(all.end(), local.begin(), local.end());
    }
    return all;
  }

  static inline const Team kTeam{1, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}};
  std::string folder_;
  std::unique_ptr<Nodes> nodes_;
};

}  // namespace netcheck::fabric
