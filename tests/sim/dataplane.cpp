// Batches over modelled paths.
#include "dataplane.h"

#include <algorithm>
#include <numeric>

#include "measure/collective.h"

namespace netcheck::sim {
namespace {

/// The first batch on a path: address resolution, connection, some round trips.
constexpr Ns kHandshake = std::chrono::microseconds(300);

Ns ns_of(double seconds) {
  return Ns(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

void DataPlane::begin(std::uint32_t node, const Team& team, const Batch& batch, Ended ended) {
  auto [found, fresh] = live_.try_emplace(batch.id, Live{.batch = batch, .team = team});
  Live& live = found->second;
  if (fresh && batch.op == Op::transfer) {
    for (const Edge& edge : batch.edges)
      live.flows.push_back({.ranks = {edge.from, edge.to}});
  } else if (fresh) {
    std::vector<std::uint32_t> all(team.ranks.size());
    std::iota(all.begin(), all.end(), 0U);
    live.flows.push_back({.ranks = std::move(all)});
  }
  live.at_work[node] = std::move(ended);
  bool idle = true;
  for (std::size_t i = 0; i < live.flows.size(); ++i) {
    Flow& flow = live.flows[i];
    if (!touches(live, flow, node)) continue;
    idle = false;
    const bool ready = std::ranges::all_of(
        flow.ranks, [&](std::uint32_t rank) { return live.at_work.contains(live.team.ranks[rank].node); });
    if (ready) start(live, i);
  }
  if (!idle) return;
  const auto call = std::exchange(live.at_work[node], {});
  call(samples(live, node));
}

double DataPlane::seconds(const Live& live, const Flow& flow) const {
  const auto& ranks = live.team.ranks;
  const auto bits = static_cast<double>(live.batch.bytes) * 8;
  const double latency = std::chrono::duration<double>(scenario_.latency).count();
  if (live.batch.op == Op::transfer)
    return bits / scenario_.path(ranks[flow.ranks[0]], ranks[flow.ranks[1]]) + latency;
  const auto count = static_cast<std::uint32_t>(ranks.size());
  const double slowest = ring(ranks);
  // Inside a node there is next to no latency.
  const std::uint32_t hops = scenario_.over_lanes ? count / scenario_.rails : count;
  const double turns = (live.batch.op == Op::all_reduce ? 2.0 : 1.0) * (hops - 1);
  return bus_factor(live.batch.op, count) * bits / slowest + turns * latency;
}

/// A ring is as fast as its slowest path. A team over all lanes of its nodes has one for each lane, which
/// crosses from node to node on it, and each has the same part of the bytes.
double DataPlane::ring(const std::vector<Rank>& ranks) const {
  const std::size_t rings = scenario_.over_lanes ? scenario_.rails : 1;
  const std::size_t each = ranks.size() / rings;
  double slowest = scenario_.rate;
  for (std::size_t node = 0; node < each; ++node)
    for (std::size_t lane = 0; lane < rings; ++lane)
      slowest = std::min(slowest,
                         scenario_.path(ranks[node * rings + lane], ranks[(node + 1) % each * rings + lane]));
  return slowest * static_cast<double>(rings);
}

/// NCCL's ranks wait for each other when a team is formed.
void DataPlane::meet(std::uint32_t node, const Team& team, std::function<void()> met) {
  auto& there = meeting_[team.id];
  there[node] = std::move(met);
  for (const Rank& rank : team.ranks)
    if (!there.contains(rank.node) || cut_[rank.node]) return;
  auto all = std::exchange(there, {});
  for (auto& [member, call] : all)
    call();
}

void DataPlane::start(Live& live, std::size_t index) {
  Flow& flow = live.flows[index];
  flow.started = true;
  flow.begin = clock_.now() + kHandshake + 2 * scenario_.latency;
  const bool blocked =
      std::ranges::any_of(flow.ranks, [&](std::uint32_t rank) { return cut_[live.team.ranks[rank].node]; });
  if (blocked) {
    flow.stalled = flow.begin;
    return;
  }
  const double once = seconds(live, flow);
  flow.warm = ns_of(once * live.batch.warmup);
  Ns total{};
  for (std::uint32_t i = 0; i < live.batch.iterations; ++i) {
    total += ns_of(once * (1 + scenario_.noise * dice_.real(0, 1)));
    flow.done.push_back(total);
  }
  flow.end = flow.begin + flow.warm + total;
  halt(live, flow);
  clock_.at(flow.end, [this, batch = live.batch.id, index] { end(batch, index); });
}

/// While one of its nodes stands still nothing moves; then it goes on where it was.
void DataPlane::halt(const Live& live, Flow& flow) const {
  const Fault& fault = scenario_.fault;
  const Time from = Time(fault.at), until = from + fault.lasts;
  if (fault.kind != Kind::hiccup || !fault.halts || !touches(live, flow, fault.node) || flow.begin >= until)
    return;
  const Ns pause = until - std::max(from, flow.begin);
  const auto later = [&](Time when) { return when > from ? when + pause : when; };
  const Time warmed = flow.begin + flow.warm;
  for (Ns& done : flow.done)
    done = later(warmed + done) - later(warmed);
  flow.warm = later(warmed) - flow.begin;
  flow.end = later(flow.end);
}

void DataPlane::end(std::uint32_t batch, std::size_t index) {
  const auto found = live_.find(batch);
  if (found == live_.end()) return;
  Live& live = found->second;
  Flow& flow = live.flows[index];
  if (flow.stalled != Time::max()) return;
  flow.ended = true;
  for (const std::uint32_t rank : flow.ranks) {
    const std::uint32_t node = live.team.ranks[rank].node;
    const bool complete = std::ranges::all_of(
        live.flows, [&](const Flow& other) { return other.ended || !touches(live, other, node); });
    if (!complete || !live.at_work.contains(node) || !live.at_work[node]) continue;
    const auto call = std::exchange(live.at_work[node], {});
    call(samples(live, node));
  }
}

bool DataPlane::touches(const Live& live, const Flow& flow, std::uint32_t node) const {
  return std::ranges::any_of(flow.ranks,
                             [&](std::uint32_t rank) { return live.team.ranks[rank].node == node; });
}

std::vector<Sample> DataPlane::samples(const Live& live, std::uint32_t node) const {
  std::vector<Sample> samples;
  const bool transfer = live.batch.op == Op::transfer;
  for (std::uint32_t rank = 0; rank < live.team.ranks.size(); ++rank) {
    if (live.team.ranks[rank].node != node) continue;
    Sample& sample = samples.emplace_back(Sample{.rank = rank, .lack = scenario_.lack(node)});
    for (const Flow& flow : live.flows) {
      const bool receives = transfer ? flow.ranks[1] == rank : true;
      const bool sends = transfer && flow.ranks[0] == rank;
      if ((!receives && !sends) || !flow.started || flow.done.empty()) continue;
      const Time until = std::min(clock_.now(), flow.stalled);
      const Ns timed = until >= flow.end ? flow.done.back() : std::max(until - flow.begin, Ns::zero());
      sample.kept = std::max(sample.kept, kept(node, timed));
      if (!transfer || sends) sample.others_out = std::max(sample.others_out, others(node, false, timed));
      if (receives) sample.others_in = std::max(sample.others_in, others(node, true, timed));
      if (!receives) continue;
      for (const Ns done : flow.done) {
        if (flow.begin + flow.warm + done <= until) sample.done.push_back(done);
      }
      const double whole = std::chrono::duration<double>(flow.end - flow.begin).count();
      const double past = std::chrono::duration<double>(until - flow.begin).count();
      const double all = static_cast<double>(live.batch.bytes) * (live.batch.warmup + live.batch.iterations) *
                         (transfer ? 1.0 : 1.0 - 1.0 / static_cast<double>(live.team.ranks.size()));
      sample.received = static_cast<std::uint64_t>(all * std::clamp(past / whole, 0.0, 1.0));
    }
  }
  return samples;
}

/// Processes see less than what they were kept (fabric/pulse.h): up to a tenth less.
Ns DataPlane::kept(std::uint32_t node, Ns span) const {
  const double part = (1 - scenario_.runs(node)) * dice_.real(0.9, 1);
  return Ns(static_cast<Ns::rep>(part * static_cast<double>(span.count())));
}

/// Devices tell a little less than others moved (fabric/meter.h).
std::uint64_t DataPlane::others(std::uint32_t node, bool inward, Ns span) const {
  const double part = scenario_.others(node, inward) * dice_.real(0.9, 1);
  return static_cast<std::uint64_t>(part * scenario_.rate / 8 * std::chrono::duration<double>(span).count());
}

void DataPlane::leave(Live& live, std::uint32_t node) {
  if (live.at_work.erase(node) == 0) return;
  for (Flow& flow : live.flows) {
    if (!flow.ended && touches(live, flow, node)) flow.stalled = std::min(flow.stalled, clock_.now());
  }
}

std::vector<Sample> DataPlane::withdraw(std::uint32_t node, std::uint32_t batch) {
  const auto found = live_.find(batch);
  if (found == live_.end() || !found->second.at_work.contains(node)) return {};
  auto partial = samples(found->second, node);
  leave(found->second, node);
  return partial;
}

void DataPlane::withdraw(std::uint32_t node) {
  for (auto& [team, there] : meeting_)
    there.erase(node);
  for (auto& [id, live] : live_)
    leave(live, node);
}

void DataPlane::cut(std::uint32_t node) {
  cut_[node] = true;
  for (auto& [id, live] : live_) {
    for (Flow& flow : live.flows) {
      if (!flow.ended && touches(live, flow, node)) flow.stalled = std::min(flow.stalled, clock_.now());
    }
  }
}

}  // namespace netcheck::sim
