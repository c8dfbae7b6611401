// See transfers.h.
#include "judge/transfers.h"

#include <algorithm>
#include <map>

#include "judge/evidence.h"
#include "judge/groups.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

using std::chrono::milliseconds;

/// The same at the gate's rate, which is the slowest node's when the gate failed.
constexpr Ns kAtGate = milliseconds(160);
/// On a network of unknown rate: at 10 Mb/s both transfers take 420 ms.
constexpr std::uint64_t kSounding = 256u << 10;
/// A figure over less is, as a pace, taken for no more than so long would have brought.
constexpr Ns kMoment = std::chrono::microseconds(500);
constexpr std::uint32_t kWarmup = 1, kIterations = 4, kMostIterations = 64;
constexpr std::uint64_t kGrain = 64, kLeastBytes = 4u << 10;

/// What the next size goes by. A moment says little of a rate: 4 KiB that were there before the clock began
/// have read as 400 Gb/s of a link of 100 Mb/s, and the next messages never ended.
double pace_of(const EdgeFigure& edge) {
  const double part = edge.timed <= Ns::zero() ? 1 : std::chrono::duration<double>(edge.timed) / kMoment;
  return edge.rate->bits_per_second * std::min(part, 1.0);
}

struct Size {
  std::uint64_t bytes = 0;
  std::uint32_t iterations = kIterations;
};

Size size_for(const Plan& plan, double bits_per_second, Ns target) {
  Size size;
  const double seconds = std::chrono::duration<double>(target).count();
  const double total = bits_per_second / 8 * seconds;
  const auto cap = static_cast<double>(byte_cap(plan));
  const double each = std::clamp(total / (kIterations + kWarmup), static_cast<double>(kLeastBytes), cap);
  size.bytes = static_cast<std::uint64_t>(each) / kGrain * kGrain;
  if (each >= cap)
    size.iterations = static_cast<std::uint32_t>(
        std::clamp(total / cap - kWarmup, double{kIterations}, double{kMostIterations}));
  return size;
}

/// The lanes on which a team's pairs are measured: those that all nodes have.
std::vector<std::uint16_t> lanes_of(const Plan& plan, const Team& team) {
  if (plan.teaming == Teaming::per_lane) return {team.ranks.front().lane};
  std::vector<std::uint16_t> lanes;
  for (std::uint32_t lane = 0; lane < rails(plan); ++lane)
    lanes.push_back(static_cast<std::uint16_t>(lane));
  return lanes;
}

/// Of one way on a lane of this team by the gate. Over all lanes of a node it tells only what they carry
/// together.
double gate_on(const Situation& now, const Team& team) {
  const auto figures = figures_of(now.plan, now.history);
  if (!figures) return 0;
  if (now.plan.teaming == Teaming::over_lanes) return figures->busbw.bits_per_second / rails(now.plan);
  const std::uint16_t lane = team.ranks.front().lane;
  return lane < figures->per_rail.size() ? figures->per_rail[lane].bits_per_second : 0;
}

Size size_on(const Situation& now, const Team& team) {
  if (const double median = median_on(now, team); median > 0)
    return size_for(now.plan, median, in_vain(now) || now.need == Need::compare ? kBrief : kAtMedian);
  if (const double rate = gate_on(now, team); rate > 0)
    return size_for(now.plan, rate, now.need == Need::blame ? kAtGate : kBrief);
  return {.bytes = std::min(kSounding, byte_cap(now.plan) / kGrain * kGrain), .iterations = 1};
}

/// Edges of the pairs inside this team, on each lane that all nodes have.
std::vector<Edge> edges_in(const Plan& plan, const Team& team,
                           const std::map<std::uint32_t, std::uint32_t>& sends_to) {
  std::map<Rank, std::uint32_t> position;
  for (std::uint32_t rank = 0; rank < team.ranks.size(); ++rank)
    position[team.ranks[rank]] = rank;
  std::vector<Edge> edges;
  for (const std::uint16_t lane : lanes_of(plan, team))
    for (const auto& [from, to] : sends_to) {
      const auto sender = position.find({from, lane}), receiver = position.find({to, lane});
      if (sender != position.end() && receiver != position.end())
        edges.push_back({.from = sender->second, .to = receiver->second});
    }
  return edges;
}

Batch transfer_of(const Plan& plan, std::uint32_t id, const Team& team, const Size& size,
                  std::vector<Edge> edges) {
  return {.id = id,
          .team = team.id,
          .root = 0,
          .op = Op::transfer,
          .type = plan.type,
          .bytes = size.bytes,
          .warmup = kWarmup,
          .iterations = size.iterations,
          .edges = std::move(edges),
          .algorithm = "",
          .seed = plan.seed + id,
          .verify = true};
}

/// Edges of a ring through the lanes of each node, one way or the other.
std::vector<Edge> rings_in(const Team& team, bool back) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> ranks;
  for (std::uint32_t rank = 0; rank < team.ranks.size(); ++rank)
    ranks[team.ranks[rank].node].push_back(rank);
  std::vector<Edge> edges;
  for (const auto& [node, own] : ranks)
    for (std::size_t i = 0; own.size() > 1 && i < own.size(); ++i) {
      const Edge edge{.from = own[i], .to = own[(i + 1) % own.size()]};
      edges.push_back(back ? Edge{.from = edge.to, .to = edge.from} : edge);
    }
  return edges;
}

}  // namespace

Rates rates_of(const Standings& standings) {
  std::vector<std::vector<double>> by_lane(standings.lanes());
  Rates rates;
  for (const EdgeFigure& edge : standings.edges()) {
    if (!edge.rate || edge.from.lane >= by_lane.size()) continue;
    if (edge.rate->bits_per_second <= 0)
      rates.dead = true;
    else if (!edge.partial)
      by_lane[edge.from.lane].push_back(pace_of(edge));
  }
  for (const auto& lane : by_lane)
    rates.median.push_back(median(lane).value_or(0));
  return rates;
}

const Done* last_round(const History& history) {
  const Done* last = nullptr;
  for (const Done& done : history.done)
    if (const Measure* measure = measure_of(done);
        measure != nullptr && measure->phase == Phase::blame && !measure->inside)
      last = &done;
  return last;
}

void keep_pace(Situation& now) {
  const Done* last = last_round(now.history);
  if (last == nullptr) return;
  const Matching pairs = pairs_of(*measure_of(*last), now.teams);
  std::map<std::uint16_t, double> slowest;
  for (const EdgeFigure& edge : now.edges) {
    if (edge.round != measure_of(*last)->round) continue;
    if (std::ranges::find(pairs, Pair{edge.from.node, edge.to.node}) == pairs.end()) continue;
    const double rate = edge.rate && !edge.partial ? pace_of(edge) : 0;
    const auto [found, first] = slowest.try_emplace(edge.from.lane, rate);
    if (!first) found->second = std::min(found->second, rate);
  }
  for (const auto& [lane, rate] : slowest)
    if (lane < now.rates.median.size()) now.rates.median[lane] = std::max(now.rates.median[lane], rate);
}

bool in_vain(const Situation& now) {
  return now.need == Need::find || now.rates.dead;
}

bool only_compares(const Situation& now) {
  return now.need == Need::compare && !now.rates.dead;
}

double median_on(const Situation& now, const Team& team) {
  double fastest = 0;
  for (const std::uint16_t lane : lanes_of(now.plan, team))
    if (lane < now.rates.median.size()) fastest = std::max(fastest, now.rates.median[lane]);
  return fastest;
}

std::uint64_t bytes_on(const Situation& now, const Team& team) {
  return size_on(now, team).bytes;
}

std::vector<Batch> batches_for(const Situation& now, const Form& form, const Matching& pairs) {
  std::map<std::uint32_t, std::uint32_t> sends_to;
  for (const Pair& pair : pairs)
    sends_to[pair.from] = pair.to;
  std::vector<Batch> batches;
  std::uint32_t id = free_batch_id(now.history);
  for (const Team& team : form.teams) {
    auto edges = edges_in(now.plan, team, sends_to);
    if (edges.empty()) continue;
    batches.push_back(transfer_of(now.plan, id, team, size_on(now, team), std::move(edges)));
    ++id;
  }
  return batches;
}

std::vector<Batch> batches_inside(const Situation& now, const Form& form, const InsideSoFar& so_far,
                                  bool back) {
  // Half a second for the slowest.
  const double rate = std::min(so_far.median, so_far.slowest * 5);
  std::vector<Batch> batches;
  std::uint32_t id = free_batch_id(now.history);
  for (const Team& team : form.teams) {
    auto edges = rings_in(team, back);
    if (edges.empty()) continue;
    const Size size = rate > 0 ? size_for(now.plan, rate, kBrief) : size_on(now, team);
    batches.push_back(transfer_of(now.plan, id++, team, size, std::move(edges)));
  }
  return batches;
}

}  // namespace netcheck::judge
