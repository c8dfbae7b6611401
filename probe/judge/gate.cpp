// See gate.h.
#include "judge/gate.h"

#include <algorithm>
#include <bit>

#include "judge/evidence.h"
#include "judge/groups.h"
#include "measure/collective.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

using std::chrono::milliseconds;

/// Gain of bus bandwidth below which a size has stopped growing: the spread of healthy links is 1–3 %.
constexpr double kGain = 1.03;
/// A batch that took less leaves room for a fourfold step: fewer steps from 64 KiB to a GiB.
constexpr Ns kQuick = milliseconds(10);
/// Orders and answers of one step, and the barrier.
constexpr Ns kStepOverhead = milliseconds(20);
/// First size: 16 KiB per rank, 64 KiB at least; at 1 Gb/s half a millisecond.
constexpr std::uint64_t kFirstPerRank = 16u << 10, kFirst = 64u << 10;
constexpr std::uint64_t kLeast = 4u << 10;
/// Operations slower than this are repeated 3 times, others 5.
constexpr Ns kSlowOperation = milliseconds(50);
constexpr std::uint32_t kFew = 3, kSome = 5, kMost = 64;
/// The first partition's part of the gate's time where there are two.
constexpr double kFirstShare = 0.55;
/// Without a word from any node about memory.
constexpr std::uint64_t kDefaultCap = 64u << 20;
/// What a batch may carry at most (measure/batch.h): 1 TiB.
constexpr std::uint64_t kMostBytes = 1ull << 40;

/// Operation time of the connect batch, over all teams; nullopt when incomplete.
std::optional<Ns> connect_time(const TeamIndex& teams, const Done& done) {
  Ns slowest{};
  const auto all = readings(teams, done);
  for (const Reading& reading : all) {
    if (!reading.complete()) return std::nullopt;
    for (const Sample* sample : reading.samples) {
      const auto time = rank_time(*sample);
      if (!time) return std::nullopt;
      slowest = std::max(slowest, *time);
    }
  }
  if (all.empty()) return std::nullopt;
  return slowest;
}

int which_partition(const Plan& plan, const Form& form) {
  if (group_count(plan) == 1 || form.teams.empty()) return 0;
  const auto first = partition(plan, 0, 0);
  return form.teams.front().ranks == first.front().ranks ? 0 : 1;
}

/// What the largest batch of a step really has.
std::uint64_t actual(const Plan& plan, std::uint64_t wanted) {
  std::uint64_t most = 0;
  for (const std::uint32_t ranks : team_sizes(plan))
    most = std::max(most, actual_bytes(plan.op, plan.type, ranks, wanted));
  return most;
}

std::uint64_t largest_team(const Plan& plan) {
  const auto sizes = team_sizes(plan);
  return sizes.empty() ? 0 : std::ranges::max(sizes);
}

void take_form(const Plan& plan, const Form& form, const Done& done, Gate& gate) {
  gate.which = which_partition(plan, form);
  gate.connected.reset();
  gate.state = stalled(done) ? GateState::stalled : GateState::connecting;
}

void take_measure(const Plan& plan, const TeamIndex& teams, const Done& done, Gate& gate) {
  if (stalled(done)) {
    gate.state = GateState::stalled;
    return;
  }
  if (measure_of(done)->phase == Phase::connect) {
    gate.connected = connect_time(teams, done);
    if (!gate.connected)
      gate.state = GateState::broken;
    else
      gate.state = gate.which == 0 ? GateState::growing : GateState::crossing;
    return;
  }
  auto size = size_of_step(plan, teams, done);
  if (!size) {
    gate.state = GateState::broken;
  } else if (gate.which == 1) {
    gate.second = std::move(size);
    gate.state = GateState::ended;
  } else {
    gate.sizes.push_back(std::move(*size));
    if (next_size(plan, gate)) return;
    gate.state = group_count(plan) > 1 ? GateState::forming : GateState::ended;
    gate.which = group_count(plan) > 1 ? 1 : 0;
  }
}

void take_again(const Plan& plan, const TeamIndex& teams, const Done& done, int partition, Gate& gate) {
  gate.spent_again += done.took;
  Again& again = gate.again[partition];
  auto size = stalled(done) ? std::nullopt : size_of_step(plan, teams, done);
  if (size)
    again.sizes.push_back(std::move(*size));
  else
    again.vain = true;
}

}  // namespace

const GateSize* Gate::first(int partition) const {
  if (partition == 0) return best();
  return second ? &*second : nullptr;
}

const GateSize* Gate::figure(int partition) const {
  const GateSize* figure = first(partition);
  const auto found = again.find(partition);
  if (figure == nullptr || found == again.end()) return figure;
  for (const GateSize& size : found->second.sizes)
    if (std::pair(size.lasting(), size.figures.busbw) > std::pair(figure->lasting(), figure->figures.busbw))
      figure = &size;
  return figure;
}

const GateSize* Gate::best() const {
  const GateSize* best = nullptr;
  for (const GateSize& size : sizes)
    if (size.lasting() && (best == nullptr || size.figures.busbw > best->figures.busbw)) best = &size;
  if (best == nullptr && !sizes.empty()) best = &sizes.back();
  return best;
}

std::optional<Figures> figures_of(const Plan& plan, const History& history) {
  if (plan.nodes.size() < 2 || rails(plan) == 0) return std::nullopt;
  const Gate gate = read_gate(plan, history);
  if (gate.figure(0) == nullptr) return std::nullopt;
  Figures figures = gate.figure(0)->figures;
  if (!gate.second) return figures;
  const Figures& other = gate.figure(1)->figures;
  for (std::size_t lane = 0; lane < figures.per_rail.size() && lane < other.per_rail.size(); ++lane)
    figures.per_rail[lane] = std::min(figures.per_rail[lane], other.per_rail[lane]);
  if (other.busbw < figures.busbw) figures.bytes = other.bytes;
  if (other.part_running < figures.part_running) {
    figures.part_running = other.part_running;
    figures.most_kept = other.most_kept;
    figures.most_kept_part = other.most_kept_part;
    figures.most_kept_lack = other.most_kept_lack;
  }
  const auto most = [](const Figures& one) {
    return one.room_of_others.empty() ? Rate{} : std::ranges::max(one.room_of_others);
  };
  if (most(other) > most(figures)) figures.most_shared = other.most_shared;
  for (std::size_t lane = 0; lane < figures.room_of_others.size() && lane < other.room_of_others.size();
       ++lane)
    figures.room_of_others[lane] = std::max(figures.room_of_others[lane], other.room_of_others[lane]);
  figures.busbw = std::min(figures.busbw, other.busbw);
  figures.noisy = figures.noisy || other.noisy;
  return figures;
}

Ns gate_time(const Plan& plan) {
  return std::min(plan.slice, plan.budget / 2);
}

std::uint64_t byte_cap(const Plan& plan) {
  return plan.max_bytes > 0 ? std::min(plan.max_bytes, kMostBytes) : kDefaultCap;
}

Gate read_gate(const Plan& plan, const History& history) {
  const TeamIndex teams = teams_of(history);
  Gate gate;
  bool rounds = false;
  int joined = 0;
  for (const Done& done : history.done) {
    if (gate.state == GateState::broken) break;
    const Form* form = form_of(done);
    const Measure* measure = measure_of(done);
    const Phase phase = form != nullptr ? form->phase : measure->phase;
    if (form != nullptr) joined = which_partition(plan, *form);
    rounds = rounds || phase == Phase::blame;
    if (rounds) {
      // After the rounds have begun, a batch of the gate is the gate again.
      if (form == nullptr && phase == Phase::gate) take_again(plan, teams, done, joined, gate);
      continue;
    }
    // A communicator's forming takes longer than all that is measured on it, and is no measuring.
    if (form == nullptr || plan.teaming == Teaming::per_lane) gate.spent += done.took;
    if (broken(done) != nullptr)
      gate.state = GateState::broken;
    else if (form != nullptr)
      take_form(plan, *form, done, gate);
    else
      take_measure(plan, teams, done, gate);
  }
  return gate;
}

namespace {

NextSize sized(const Plan& plan, std::uint64_t bytes, double operation_ns) {
  NextSize next;
  next.bytes = bytes;
  next.iterations = operation_ns > static_cast<double>(kSlowOperation.count()) ? kFew : kSome;
  // Where memory ends the growth, more repetitions make the batch last.
  if (bytes >= byte_cap(plan) && operation_ns > 0) {
    const double wanted = static_cast<double>(kLasting.count()) / operation_ns + 1;
    next.iterations = static_cast<std::uint32_t>(
        std::clamp(wanted, static_cast<double>(next.iterations), static_cast<double>(kMost)));
  }
  const double total = std::min(operation_ns * (next.iterations + 1), 1e15);
  next.predicted = Ns(static_cast<Ns::rep>(total)) + kStepOverhead;
  return next;
}

/// The last two sizes read the same.
bool levelled(const std::vector<GateSize>& sizes) {
  if (sizes.size() < 2) return false;
  const GateSize &last = sizes.back(), &before = sizes[sizes.size() - 2];
  const double gain = last.figures.busbw.bits_per_second / before.figures.busbw.bits_per_second;
  return last.lasting() && before.lasting() && gain < kGain;
}

/// The size after this one; nullopt: memory ends the growth.
std::optional<NextSize> larger(const Plan& plan, const GateSize& last) {
  const std::uint64_t factor = last.timed < kQuick ? 4 : 2;
  const std::uint64_t bytes = std::min(last.bytes * factor, byte_cap(plan));
  if (actual(plan, bytes) <= last.bytes) return std::nullopt;
  const double growth =
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(last.bytes, 1));
  return sized(plan, bytes, static_cast<double>(last.operation.count()) * growth);
}

/// The first size, from the connect batch: small enough that three of it fit a third of the gate's time.
NextSize first_size(const Plan& plan, const Gate& gate, Ns limit) {
  std::uint64_t bytes = std::bit_ceil(std::max(kFirst, kFirstPerRank * largest_team(plan)));
  bytes = std::min(bytes, byte_cap(plan));
  const double per_byte =
      static_cast<double>(gate.connected->count()) / static_cast<double>(connect_bytes(plan));
  const std::uint64_t least = std::min(connect_bytes(plan), bytes);
  const double room = static_cast<double>(limit.count()) / 3 / (kFew + 1);
  while (bytes / 2 >= least && per_byte * static_cast<double>(bytes) > room)
    bytes /= 2;
  NextSize next = sized(plan, bytes, per_byte * static_cast<double>(bytes));
  // A slow connect batch may have been one blip: the prediction is no more than a guess.
  next.predicted = std::min(next.predicted, limit / 2);
  return next;
}

}  // namespace

std::uint64_t connect_bytes(const Plan& plan) {
  // 64 bytes per rank: 16 bytes of each, the grain in which operations split a buffer, and room.
  const std::uint64_t ranks = std::max<std::uint64_t>(plan.nodes.size(), largest_team(plan));
  return std::min(std::max(kLeast, ranks * 64), byte_cap(plan));
}

std::optional<NextSize> next_size(const Plan& plan, const Gate& gate) {
  const Ns all = gate_time(plan);
  const bool shared = group_count(plan) > 1;
  const Ns limit = shared ? Ns(static_cast<Ns::rep>(static_cast<double>(all.count()) * kFirstShare)) : all;
  if (gate.sizes.empty()) {
    if (!gate.connected) return std::nullopt;
    return first_size(plan, gate, limit);
  }
  if (levelled(gate.sizes)) return std::nullopt;
  const auto next = larger(plan, gate.sizes.back());
  if (!next || gate.spent + next->predicted > limit) return std::nullopt;
  return next;
}

std::optional<NextSize> crossing_size(const Plan& plan, const Gate& gate) {
  const GateSize* best = gate.best();
  if (best == nullptr) return std::nullopt;
  return sized(plan, best->bytes, static_cast<double>(best->operation.count()));
}

namespace {

/// size_again(), whatever time is left.
std::optional<NextSize> wanted_again(const Plan& plan, const Gate& gate, int partition) {
  const GateSize* found = gate.figure(partition);
  const auto again = gate.again.find(partition);
  const bool first = again == gate.again.end();
  if (found == nullptr || (!first && again->second.vain)) return std::nullopt;
  const auto once_more = sized(plan, found->bytes, static_cast<double>(found->operation.count()));
  if (levelled(gate.sizes)) {
    if (first) return once_more;
    // Faster than it was, and no figure yet.
    return again->second.sizes.back().lasting() ? std::nullopt : larger(plan, again->second.sizes.back());
  }
  std::vector<GateSize> sizes = gate.sizes;
  if (!first) sizes.insert(sizes.end(), again->second.sizes.begin(), again->second.sizes.end());
  if (!first && levelled(sizes)) return std::nullopt;
  const auto next = larger(plan, first ? *found : sizes.back());
  return next || !first ? next : once_more;
}

}  // namespace

std::optional<NextSize> size_again(const Plan& plan, const Gate& gate, int partition) {
  const auto size = wanted_again(plan, gate, partition);
  if (!size || gate.spent_again + size->predicted > gate_time(plan)) return std::nullopt;
  return size;
}

std::optional<int> doubtful(const Plan& plan, const Gate& gate) {
  if (gate.state != GateState::ended || failed_twice(plan, gate)) return std::nullopt;
  for (const int partition : {gate.which, 1 - gate.which})
    if (const GateSize* figure = gate.figure(partition); figure != nullptr && too_slow(plan, figure->figures))
      return partition;
  return std::nullopt;
}

bool failed_twice(const Plan& plan, const Gate& gate) {
  const auto proven = [&](const GateSize* size) {
    return size != nullptr && surely_too_slow(plan, size->figures);
  };
  return std::ranges::any_of(gate.again, [&](const auto& one) {
    const auto& [partition, again] = one;
    return !again.vain && proven(gate.first(partition)) && proven(gate.figure(partition)) &&
           !size_again(plan, gate, partition);
  });
}

}  // namespace netcheck::judge
