// From a batch to the courses of one rank.
#include "fabric/ucx/rank_run.h"

#include <algorithm>

#include "measure/pattern.h"

namespace netcheck::fabric::ucx {

namespace {

/// Dissemination: after round k everyone has heard, directly or not, of the 2^(k+1) - 1 ranks before it.
std::vector<Round> barrier(std::uint32_t ranks, std::uint32_t rank) {
  std::vector<Round> rounds;
  for (std::uint64_t distance = 1; distance < ranks; distance *= 2) {
    auto& round = rounds.emplace_back();
    round.sends.push_back({static_cast<std::uint32_t>((rank + distance) % ranks), {}});
    round.receives.push_back({static_cast<std::uint32_t>((rank + ranks - distance) % ranks), {}, Store::put});
  }
  return rounds;
}

/// Operations in which some ranks only send.
bool needs_credits(Op op) {
  return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter;
}

bool sums(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce;
}

Buffer touched(std::size_t size) {
  Buffer buffer(size);
  poison(buffer.bytes());  // every page is there before the clock runs
  return buffer;
}

}  // namespace

Result<std::unique_ptr<RankRun>> RankRun::start(const Course::Ground& ground, const Batch& batch,
                                                std::uint32_t ranks, std::uint32_t rank) {
  std::unique_ptr<RankRun> run(new RankRun(batch, ranks, rank));
  if (batch.op == Op::transfer) {
    run->plan_transfer(ground);
    return run;
  }
  if (auto planned = run->plan_collective(ground); !planned) return tl::unexpected(planned.error());
  return run;
}

RankRun::RankRun(const Batch& batch, std::uint32_t ranks, std::uint32_t rank)
    : batch_(batch), ranks_(ranks), rank_(rank), checked_(!batch.verify) {}

void RankRun::add_course(const Course::Ground& ground, Plan plan) {
  plan.team = batch_.team;
  plan.batch = batch_.id;
  plan.rank = rank_;
  plan.type = batch_.type;
  plan.iterations = batch_.iterations;
  courses_.push_back(
      std::make_unique<Course>(ground, std::move(plan), Course::Memory{work_.bytes(), landing_.bytes()}));
}

/// In-place sums grow from operation to operation, so the first is the one whose result is known: it is
/// checked before the clock runs, and there is one more untimed operation where the batch has no warm-up.
Result<void> RankRun::plan_collective(const Course::Ground& ground) {
  auto rounds = schedule(batch_.op, batch_.algorithm, ranks_, rank_, batch_.root, batch_.bytes, batch_.type);
  if (!rounds) return tl::unexpected(rounds.error());
  work_ = touched(batch_.bytes);
  fill(batch_, ranks_, rank_, work_.bytes());
  if (uses_landing(batch_.op)) landing_ = touched(batch_.bytes);
  check_first_ = batch_.verify && sums(batch_.op) && ranks_ > 1;
  Plan plan;
  plan.rounds = std::move(*rounds);
  plan.barrier = barrier(ranks_, rank_);
  plan.warmup = check_first_ ? std::max(batch_.warmup, 1U) : batch_.warmup;
  plan.credits = needs_credits(batch_.op);
  add_course(ground, std::move(plan));
  timed_ = courses_.back().get();
  if (check_first_) timed_->hold_at(1);
  return {};
}

/// Between warm-up and timing a token goes over each edge from receiver to sender, and another at the end.
void RankRun::plan_transfer(const Course::Ground& ground) {
  const Round both = transfer_rounds(batch_.edges, rank_, batch_.bytes).front();
  if (!both.sends.empty()) {
    work_ = touched(batch_.bytes);
    fill(batch_, ranks_, rank_, work_.bytes());
    Plan plan;
    plan.rounds = {Round{both.sends, {}}};
    plan.barrier = {Round{{}, {Receive{both.sends.front().to, {}, Store::put}}}};
    plan.end = plan.barrier;
    plan.warmup = batch_.warmup;
    add_course(ground, std::move(plan));
  }
  if (!both.receives.empty()) {
    landing_ = touched(batch_.bytes);
    Plan plan;
    plan.rounds = {Round{{}, both.receives}};
    plan.barrier = {Round{{Send{both.receives.front().from, {}}}, {}}};
    plan.end = plan.barrier;
    plan.warmup = batch_.warmup;
    add_course(ground, std::move(plan));
    timed_ = courses_.back().get();
  }
}

bool RankRun::step() {
  bool moved = false;
  for (const auto& course : courses_)
    moved = course->step() || moved;
  if (check_first_ && timed_->held()) {
    check();
    timed_->release();
    moved = true;
  }
  return moved;
}

bool RankRun::exchanged() const {
  return std::all_of(courses_.begin(), courses_.end(), [](const auto& course) { return course->over(); });
}

void RankRun::check() {
  if (checked_) return;
  checked_ = true;
  wrong_ = count_wrong(batch_, ranks_, rank_, (uses_landing(batch_.op) ? landing_ : work_).bytes());
}

const Breakdown* RankRun::breakdown() const {
  for (const auto& course : courses_)
    if (course->breakdown()) return &*course->breakdown();
  return nullptr;
}

void RankRun::broke(const Peer& peer) {
  for (const auto& course : courses_)
    course->broke(peer);
}

void RankRun::cancel() {
  for (const auto& course : courses_)
    course->cancel();
}

bool RankRun::quiet() const {
  return std::all_of(courses_.begin(), courses_.end(), [](const auto& course) { return course->quiet(); });
}

Sample RankRun::sample() const {
  Sample sample;
  sample.rank = rank_;
  sample.wrong = wrong_;
  // A receiver's clock runs from its token on, which the sender may take late.
  for (const auto& course : courses_) {
    const auto [kept, others] = course.get() == timed_ ? course->hindrance() : course->hindrance_in_all();
    sample.kept = std::max(sample.kept, kept);
    sample.others_in = std::max(sample.others_in, others.in);
    sample.others_out = std::max(sample.others_out, others.out);
  }
  if (timed_ != nullptr) {
    sample.done = timed_->done();
    sample.received = timed_->received();
  }
  return sample;
}

}  // namespace netcheck::fabric::ucx
