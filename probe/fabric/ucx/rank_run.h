// One rank's part in one batch: its memory, its course (two for a transfer, where sending and receiving must
// not wait for each other), the check of the result. Used by the module.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fabric/ucx/buffer.h"
#include "fabric/ucx/course.h"

namespace netcheck::fabric::ucx {

class RankRun {
 public:
  /// Allocates and fills. `rank` is this node's, on the ground's lane. Error: the schedule does not know the
  /// algorithm, or the size does not split.
  [[nodiscard]] static Result<std::unique_ptr<RankRun>> start(const Course::Ground& ground,
                                                              const Batch& batch, std::uint32_t ranks,
                                                              std::uint32_t rank);
  /// True when anything moved.
  bool step();
  /// All is exchanged; the result may still have to be checked.
  [[nodiscard]] bool exchanged() const;
  [[nodiscard]] bool checked() const { return checked_; }
  void check();
  [[nodiscard]] const Breakdown* breakdown() const;
  void broke(const Peer& peer);
  void cancel();
  /// Nothing under way any more: may be destroyed.
  [[nodiscard]] bool quiet() const;
  [[nodiscard]] Sample sample() const;

 private:
  RankRun(const Batch& batch, std::uint32_t ranks, std::uint32_t rank);
  [[nodiscard]] Result<void> plan_collective(const Course::Ground& ground);
  void plan_transfer(const Course::Ground& ground);
  void add_course(const Course::Ground& ground, Plan plan);

  Batch batch_;
  std::uint32_t ranks_, rank_;
  Buffer work_, landing_;
  std::vector<std::unique_ptr<Course>> courses_;
  Course* timed_ = nullptr;  // whose times count: not a transfer's sender
  bool check_first_ = false;
  bool checked_ = false;
  std::uint64_t wrong_ = 0;
};

}  // namespace netcheck::fabric::ucx
