// The steps of a batch, launched one after the other on the ranks that go together: all of this node's in a
// collective, each alone in a transfer, where one dead edge must stall no other. Used by the module.
//
// NCCL works through a launch on its own thread, and takes the next when that is done: settled. GPUs work
// through what was launched in order; some steps are kept ahead of them, so that they never wait for us, and
// few enough that no queue of the driver's fills, where a launch would block.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fabric/nccl/communicator.h"
#include "fabric/nccl/rank_run.h"
#include "fabric/pulse.h"

namespace netcheck::fabric::nccl {

class Course {
 public:
  /// Runs, NCCL and pulse outlive the course. All runs are of one batch.
  Course(const Nccl& nccl, Pulse& pulse, const Batch& batch, std::vector<RankRun*> runs);
  /// True when anything moved.
  bool step();
  [[nodiscard]] bool over() const { return ended_ == total_; }
  /// The GPUs may soon have nothing to do: it must not be left waiting.
  [[nodiscard]] bool hungry() const;
  [[nodiscard]] const std::optional<Breakdown>& breakdown() const { return breakdown_; }
  /// How long this process was kept from running: since the barrier, or, without an end, since the beginning.
  [[nodiscard]] Ns kept() const;
  [[nodiscard]] const std::vector<RankRun*>& runs() const { return runs_; }

 private:
  bool finish_launch();
  bool launch();
  bool follow();
  [[nodiscard]] bool healthy();
  void fail(Breakdown breakdown);
  void fail(const Error& error) { fail(Breakdown{judge::Trouble::refused, describe(error)}); }

  const Nccl& nccl_;
  Pulse& pulse_;
  std::vector<RankRun*> runs_;
  std::uint32_t barrier_at_, total_;
  std::uint32_t launched_ = 0, ended_ = 0;  // steps
  std::size_t next_run_ = 0;                // whose end of the step at hand is waited for
  bool launching_ = false;                  // the last of them has not settled
  Time launched_at_{};
  Ns kept_at_start_, kept_at_barrier_{};
  std::optional<Ns> kept_at_end_;
  std::optional<Breakdown> breakdown_;
};

}  // namespace netcheck::fabric::nccl
