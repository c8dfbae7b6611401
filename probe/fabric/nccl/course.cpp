#include "fabric/nccl/course.h"

#include <algorithm>

namespace netcheck::fabric::nccl {

namespace {

/// Steps that wait for a GPU: the driver queues about a thousand launches before it blocks, and a grouped
/// operation may be several.
constexpr std::uint32_t kAhead = 32;
/// Below this many a GPU that is done with one soon has none: each takes some ten microseconds to launch.
constexpr std::uint32_t kFew = 4;
/// A launch that takes longer connects ranks first, or waits for one that is gone: it is not to be hurried.
constexpr Ns kQuickLaunch = std::chrono::milliseconds(1);

}  // namespace

Course::Course(const Nccl& nccl, Pulse& pulse, const Batch& batch, std::vector<RankRun*> runs)
    : nccl_(nccl),
      pulse_(pulse),
      runs_(std::move(runs)),
      barrier_at_(batch.warmup),
      total_(batch.warmup + 1 + batch.iterations),
      kept_at_start_(pulse.kept()) {
  std::erase_if(runs_, [](const RankRun* run) { return run->idle(); });
  if (runs_.empty()) launched_ = ended_ = total_;
}

bool Course::step() {
  if (breakdown_ || over()) return false;
  bool moved = finish_launch();
  while (!breakdown_ && !launching_ && launched_ < total_ && launched_ - ended_ < kAhead) {
    moved = launch() || moved;
    finish_launch();
  }
  return follow() || moved;
}

/// A launch that has settled is on the streams: its end can be marked.
bool Course::finish_launch() {
  if (!launching_) return false;
  for (const auto* run : runs_) {
    auto settled = nccl_.settled(run->seat().communicator);
    if (!settled) fail(std::move(settled.error()));
    if (!settled || !*settled) return !settled;
  }
  launching_ = false;
  for (auto* run : runs_)
    if (auto marked = run->mark(); !marked) {
      fail(marked.error());
      return true;
    }
  return true;
}

bool Course::launch() {
  const bool barrier = launched_ == barrier_at_;
  const NcclResult result = nccl_.group([this, barrier] {
    for (const auto* run : runs_) {
      if (!run->seat().gpu->use()) return NcclResult::unhandled_cuda_error;
      const NcclResult one = barrier ? run->barrier() : run->operation();
      if (one != NcclResult::success && one != NcclResult::in_progress) return one;
    }
    return NcclResult::success;
  });
  if (result != NcclResult::success && result != NcclResult::in_progress) {
    // What broke before says more than that a broken communicator takes no call.
    if (healthy()) fail(nccl_.breakdown(result, runs_.front()->seat().communicator));
    return true;
  }
  ++launched_;
  launching_ = true;
  launched_at_ = std::chrono::steady_clock::now();
  return true;
}

/// Steps that have ended on all ranks.
bool Course::follow() {
  bool moved = false;
  const std::uint32_t marked = launched_ - (launching_ ? 1 : 0);
  while (!breakdown_ && ended_ < marked) {
    for (; next_run_ < runs_.size(); ++next_run_) {
      auto ended = runs_[next_run_]->ended(ended_);
      if (!ended) fail(ended.error());
      if (!ended || !*ended) return !ended || !healthy() || moved;
    }
    next_run_ = 0;
    if (ended_ == barrier_at_) kept_at_barrier_ = pulse_.kept();
    ++ended_;
    moved = true;
    if (over()) kept_at_end_ = pulse_.kept();
  }
  return moved;
}

/// While GPUs are waited for, NCCL's threads may find that something broke.
bool Course::healthy() {
  if (launching_) return true;  // asked anyway
  for (const auto* run : runs_)
    if (auto settled = nccl_.settled(run->seat().communicator); !settled) {
      fail(std::move(settled.error()));
      return false;
    }
  return true;
}

bool Course::hungry() const {
  if (over() || breakdown_ || launched_ == total_ || launched_ - ended_ >= kFew) return false;
  return !launching_ || std::chrono::steady_clock::now() - launched_at_ < kQuickLaunch;
}

void Course::fail(Breakdown breakdown) {
  if (!breakdown_) breakdown_ = std::move(breakdown);
}

Ns Course::kept() const {
  return kept_at_end_ ? *kept_at_end_ - kept_at_barrier_ : pulse_.kept() - kept_at_start_;
}

}  // namespace netcheck::fabric::nccl
