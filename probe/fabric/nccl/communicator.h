// NCCL itself: opened once, then asked for communicators that never block. Used by the module's parts; in the
// fabric child, as the probe user.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/error.h"
#include "fabric/nccl/abi.h"
#include "fabric/nccl/gpu.h"
#include "judge/trouble.h"

namespace netcheck::fabric::nccl {

/// Why something will not end well.
struct Breakdown {
  judge::Trouble trouble = judge::Trouble::refused;
  std::string detail;
};

class Nccl {
 public:
  /// `path`: "" for libnccl.so.2 where the loader finds it. Error: none, none that fits, older than 2.18.
  [[nodiscard]] static Result<Nccl> open(const std::string& path);
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const NcclCalls& calls() const { return calls_; }
  [[nodiscard]] Result<NcclId> unique_id() const;
  /// `body`'s calls as one group: what is in it may go ahead together. It goes on when this returns;
  /// settled() tells.
  [[nodiscard]] NcclResult group(const std::function<NcclResult()>& body) const;
  /// Whether a communicator is ready for its next call. Error: its own, or that of `called`.
  [[nodiscard]] tl::expected<bool, Breakdown> settled(NcclComm* communicator) const;
  /// A peer that went away is news about the network; anything else is about this node.
  [[nodiscard]] Breakdown breakdown(NcclResult result, NcclComm* communicator) const;

 private:
  NcclCalls calls_{};
  std::string version_;
};

/// One of this node's ranks in a team.
struct Seat {
  std::uint32_t rank = 0;
  Gpu* gpu = nullptr;
  CuStream* stream = nullptr;
  NcclComm* communicator = nullptr;
};

/// This node's part in the forming of a team's communicator: created, then used once for the smallest
/// operation, so that it is connected. Polled. Until it is formed NCCL's threads write to its seats: one that
/// fails or is given up must be kept.
class Forming {
 public:
  struct Plan {
    NcclId id;
    std::uint32_t ranks = 0;
    std::vector<Seat> seats;
  };
  [[nodiscard]] static tl::expected<std::unique_ptr<Forming>, Breakdown> start(const Nccl& nccl, Plan plan);
  /// True when it is formed.
  [[nodiscard]] tl::expected<bool, Breakdown> step();
  [[nodiscard]] const std::vector<Seat>& seats() const { return plan_.seats; }

 private:
  enum class Phase : std::uint8_t { init, connect, first };
  Forming(const Nccl& nccl, Plan plan) : nccl_(nccl), plan_(std::move(plan)) {}
  [[nodiscard]] tl::expected<bool, Breakdown> all_settled() const;
  [[nodiscard]] tl::expected<void, Breakdown> connect();
  [[nodiscard]] tl::expected<void, Breakdown> mark();

  const Nccl& nccl_;
  Plan plan_;
  Phase phase_ = Phase::init;
  std::vector<Memory> scratch_;
  std::vector<GpuEvent> first_;
};

}  // namespace netcheck::fabric::nccl
