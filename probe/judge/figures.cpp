// See figures.h.
#include "judge/figures.h"

#include <algorithm>
#include <map>

#include "judge/groups.h"
#include "measure/collective.h"
#include "measure/schedule.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

double kept_part(const Sample& sample) {
  return sample.done.empty()
             ? 0
             : static_cast<double>(sample.kept.count()) / static_cast<double>(sample.done.back().count());
}

/// The team whose processes ran least speaks for all.
void note_kept(const Reading& reading, const std::vector<Sample>& samples, Figures& figures) {
  const double part = part_running(samples);
  if (part >= figures.part_running) return;
  figures.part_running = part;
  auto worst = std::ranges::find_if(samples, [](const Sample& one) { return one.lack != Lack::nothing; });
  if (worst == samples.end()) worst = std::ranges::max_element(samples, {}, kept_part);
  figures.most_kept = reading.team->ranks[worst->rank].node;
  figures.most_kept_part = kept_part(*worst);
  figures.most_kept_lack = worst->lack;
}

/// What others took of the way in or out, at the rank of each lane where it is most.
void note_others(const Reading& reading, const std::vector<Sample>& samples, Figures& figures) {
  const auto most = [&figures] {
    const auto found = std::ranges::max_element(figures.room_of_others);
    return found == figures.room_of_others.end() ? Rate{} : *found;
  };
  for (const Sample& sample : samples) {
    const Rank rank = reading.team->ranks[sample.rank];
    const Ns span = sample.done.empty() ? Ns::zero() : sample.done.back();
    const Rate room = room_of_others(std::max(sample.others_in, sample.others_out), span);
    if (room > most()) figures.most_shared = rank.node;
    if (rank.lane < figures.room_of_others.size())
      figures.room_of_others[rank.lane] = std::max(figures.room_of_others[rank.lane], room);
  }
}

/// Copies of all samples of a collective, by rank; nullopt when one is not complete.
std::optional<std::vector<Sample>> all_samples(const Reading& reading) {
  if (!reading.complete()) return std::nullopt;
  std::vector<Sample> samples;
  samples.reserve(reading.samples.size());
  for (const Sample* sample : reading.samples)
    samples.push_back(*sample);
  return samples;
}

double worst_variation(const std::vector<Sample>& samples) {
  double worst = 0;
  for (const Sample& sample : samples)
    if (const auto spread = spread_of(sample)) worst = std::max(worst, spread->variation);
  return worst;
}

/// Bus bandwidths of one step, bits/s: the sum over the rails of each group, the minimum over groups of each
/// rail. A team over all lanes tells nothing of a rail alone.
struct StepRates {
  std::map<std::uint32_t, double> by_group;  ///< key: the group's first node
  std::vector<double> by_lane;               ///< -1: none yet

  void add(const Reading& reading, Ns time) {
    const Rank first = reading.team->ranks.front();
    const auto ranks = static_cast<std::uint32_t>(reading.team->ranks.size());
    const double rate = bus_bandwidth(reading.batch->op, ranks, reading.batch->bytes, time).bits_per_second;
    by_group[first.node] += rate;
    if (first.lane >= by_lane.size()) return;
    double& lane = by_lane[first.lane];
    lane = lane < 0 ? rate : std::min(lane, rate);
  }

  void write(Figures& figures) const {
    const auto worst =
        std::ranges::min_element(by_group, {}, &std::pair<const std::uint32_t, double>::second);
    figures.busbw = {worst->second};
    for (const double rate : by_lane)
      figures.per_rail.push_back({std::max(rate, 0.0)});
  }
};

}  // namespace

bool GateSize::lasting() const {
  return timed >= kLasting;
}

std::optional<GateSize> size_of_step(const Plan& plan, const TeamIndex& teams, const Done& done) {
  GateSize size;
  StepRates rates;
  if (plan.teaming == Teaming::per_lane) rates.by_lane.assign(rails(plan), -1);
  const auto all = readings(teams, done);
  size.figures.room_of_others.resize(rails(plan));
  if (all.empty() || all.size() != measure_of(done)->batches.size()) return std::nullopt;
  for (const Reading& reading : all) {
    const auto samples = all_samples(reading);
    if (!samples) return std::nullopt;
    const auto time = operation_time(*samples);
    if (!time || *time <= Ns::zero()) return std::nullopt;
    rates.add(reading, *time);
    note_kept(reading, *samples, size.figures);
    note_others(reading, *samples, size.figures);
    if (*time >= size.operation) size.figures.noisy = worst_variation(*samples) > kNoisy;
    size.operation = std::max(size.operation, *time);
    size.timed = std::max(size.timed, *time * reading.batch->iterations);
    size.bytes = std::max(size.bytes, reading.batch->bytes);
  }
  rates.write(size.figures);
  size.figures.op = plan.op;
  // An algorithm of NCCL's is one of its collectives; alltoall is none.
  const bool by_default = plan.algorithm.empty() || plan.op == Op::alltoall;
  size.figures.algorithm = by_default ? default_algorithm(plan.op) : plan.algorithm;
  size.figures.bytes = size.bytes;
  size.figures.groups = group_count(plan);
  return size;
}

std::optional<Figures> unhindered(const Figures& figures) {
  if (figures.part_running <= 0) return std::nullopt;
  Figures free = figures;
  free.busbw.bits_per_second /= figures.part_running;
  for (Rate& rate : free.per_rail)
    rate.bits_per_second /= figures.part_running;
  for (std::size_t lane = 0; lane < figures.room_of_others.size(); ++lane) {
    const double room = figures.room_of_others[lane].bits_per_second;
    free.busbw.bits_per_second += room;
    if (lane < free.per_rail.size()) free.per_rail[lane].bits_per_second += room;
  }
  return free;
}

bool surely_too_slow(const Plan& plan, const Figures& figures) {
  const auto free = unhindered(figures);
  return free && too_slow(plan, *free);
}

bool too_slow(const Plan& plan, const Figures& figures) {
  const auto& min = plan.thresholds.min;
  const auto& per_rail = plan.thresholds.min_per_rail;
  const auto short_rail = [&](const Rate rate) { return rate < *per_rail; };
  return (min && figures.busbw < *min) || (per_rail && std::ranges::any_of(figures.per_rail, short_rail));
}

}  // namespace netcheck::judge
