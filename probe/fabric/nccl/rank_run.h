// One rank's part in one batch, on its GPU: memory, the calls of one operation, events, the check of the
// result. Used by Course.
//
// Out of place: an operation reads `work` and writes `landing` (measure/schedule.h's layout of blocks in
// both), so that every repetition has the same result, and the last is checked.
#pragma once

#include <memory>
#include <vector>

#include "fabric/nccl/communicator.h"
#include "measure/batch.h"
#include "measure/schedule.h"

namespace netcheck::fabric::nccl {

class RankRun {
 public:
  /// Takes memory and queues its filling. The seat and NCCL outlive the run.
  [[nodiscard]] static Result<std::unique_ptr<RankRun>> start(const Nccl& nccl, const Seat& seat,
                                                              const Batch& batch, std::uint32_t ranks);
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;
  ~RankRun();

  [[nodiscard]] const Seat& seat() const { return seat_; }
  /// A transfer in which this rank has no edge.
  [[nodiscard]] bool idle() const;
  // Within a group:
  [[nodiscard]] NcclResult operation() const;
  [[nodiscard]] NcclResult barrier() const;
  /// What was launched last is on its stream: marks its end. Steps are numbered from 0: warm-up, the barrier,
  /// the timed ones.
  [[nodiscard]] Result<void> mark();
  /// Whether step `step` has ended, from 0 on, each once: then its time counts.
  [[nodiscard]] Result<bool> ended(std::uint32_t step);

  /// Queues the count of wrong elements.
  [[nodiscard]] Result<void> check();
  /// Whether that is done.
  [[nodiscard]] Result<bool> checked();
  /// Nothing of it is under way any more: its memory may be used again.
  void release() { released_ = true; }
  [[nodiscard]] Sample sample() const;

 private:
  RankRun(const Nccl& nccl, const Seat& seat, const Batch& batch, std::uint32_t ranks);
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> take_memory(std::size_t tables);
  [[nodiscard]] Result<void> queue_filling(const std::vector<Stretch>& filled,
                                           const std::vector<std::byte>& tables);
  [[nodiscard]] NcclResult blocks_one_way() const;
  [[nodiscard]] NcclResult edges(bool tokens) const;
  [[nodiscard]] std::uint64_t received_per_operation() const;
  [[nodiscard]] int root() const { return static_cast<int>(batch_.root); }
  [[nodiscard]] std::uint64_t count(std::uint64_t bytes) const { return bytes / size_of(batch_.type); }
  [[nodiscard]] bool is_root() const { return seat_.rank == batch_.root; }

  const Nccl& nccl_;
  Seat seat_;
  Batch batch_;
  std::uint32_t ranks_;
  NcclType type_;
  std::uint64_t block_ = 0;  // bytes
  Memory work_, landing_, tables_, scratch_;
  std::vector<Stretch> expected_;  // with empty periods: these lie in tables_
  std::vector<Gpu::Table> tables_of_expected_;
  std::uint64_t* counter_ = nullptr;  // in the host's memory
  std::vector<GpuEvent> events_;      // by step
  std::size_t marked_ = 0;            // of them
  std::optional<GpuEvent> at_check_;
  std::vector<Ns> done_;
  std::uint64_t received_ = 0;
  bool checked_ = false, released_ = false;
};

}  // namespace netcheck::fabric::nccl
