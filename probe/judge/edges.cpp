// From the samples of the blame rounds to edges: a rate, zero, or no evidence. See blame.h.
#include <algorithm>
#include <set>
#include <tuple>

#include "judge/blame.h"
#include "judge/evidence.h"
#include "measure/collective.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

using WayKey = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>;  // from node, to node, lane

/// What is known when a step is read: it grows from step to step.
struct Known {
  std::set<WayKey> carried;              ///< ways over which bytes have come
  std::set<std::uint32_t> broken_nodes;  ///< whose fabric process failed before
};

const NodeOutcome* outcome_of(const Done& done, std::uint32_t node) {
  const auto found = std::ranges::find(done.outcomes, node, &NodeOutcome::node);
  return found == done.outcomes.end() ? nullptr : &*found;
}

Rate over(double bytes, Ns time) {
  return time > Ns::zero() ? rate_of(bytes, time) : Rate{};
}

/// One edge by its receiver's sample. `elsewhere`: another edge of the same step brought bytes.
EdgeFigure read_edge(const Reading& reading, const Edge& edge, const Done& done, const Measure& measure,
                     const Known& known, bool elsewhere) {
  EdgeFigure figure{.from = reading.team->ranks[edge.from],
                    .to = reading.team->ranks[edge.to],
                    .round = measure.round,
                    .rate = std::nullopt};
  const NodeOutcome* receiver = outcome_of(done, figure.to.node);
  const NodeOutcome* sender = outcome_of(done, figure.from.node);
  if (receiver == nullptr || sender == nullptr) return figure;
  for (const NodeOutcome* end : {receiver, sender})
    if ((end->trouble && !is_evidence(*end->trouble)) || known.broken_nodes.contains(end->node))
      return figure;
  const Sample* sample = reading.samples[edge.to];
  if (sample != nullptr && complete(*sample, *reading.batch)) {
    const auto time = rank_time(*sample);
    if (time && *time > Ns::zero()) figure.rate = alg_bandwidth(reading.batch->bytes, *time);
    return figure;
  }
  // Not done: evidence only if the receiver's fabric lived and waited until the allowance.
  if (!receiver->trouble) return figure;
  figure.partial = true;
  const std::uint64_t received = sample == nullptr ? 0 : sample->received;
  if (received > 0) {
    figure.rate = over(static_cast<double>(received), std::max(measure.allowance, receiver->took));
    return figure;
  }
  const WayKey way{figure.from.node, figure.to.node, figure.from.lane};
  if (known.carried.contains(way) || elsewhere) figure.rate = Rate{0};
  return figure;
}

/// Bytes arrived at this rank in this batch.
bool arrived(const Reading& reading, std::uint32_t rank) {
  const Sample* sample = reading.samples[rank];
  return sample != nullptr && (sample->received > 0 || !sample->done.empty());
}

bool inside(const Edge& edge, const Reading& reading) {
  return edge.from < reading.samples.size() && edge.to < reading.samples.size();
}

/// Whether each rank of a completed operation has sent to the next one.
bool goes_around(const Batch& batch) {
  const bool whole = batch.op == Op::all_gather || batch.op == Op::all_reduce ||
                     batch.op == Op::reduce_scatter || batch.op == Op::alltoall;
  return whole && batch.algorithm != "doubling";
}

/// Ways that a step shows to have carried bytes: a transfer's edges; a ring's neighbours when it completed.
void learn(const Reading& reading, Known& known) {
  const auto& ranks = reading.team->ranks;
  const auto add = [&](std::uint32_t from, std::uint32_t to) {
    known.carried.insert({ranks[from].node, ranks[to].node, ranks[from].lane});
  };
  if (reading.batch->op == Op::transfer) {
    for (const Edge& edge : reading.batch->edges)
      if (inside(edge, reading) && arrived(reading, edge.to)) add(edge.from, edge.to);
    return;
  }
  if (!goes_around(*reading.batch) || !reading.complete()) return;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    add(rank, static_cast<std::uint32_t>((rank + 1) % ranks.size()));
}

std::size_t node_pairs(const Measure& measure, const TeamIndex& teams) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Batch& batch : measure.batches)
    if (const auto team = teams.find(batch.team); team != teams.end())
      for (const Edge& edge : batch.edges)
        if (edge.from < team->second->ranks.size() && edge.to < team->second->ranks.size())
          pairs.insert({team->second->ranks[edge.from].node, team->second->ranks[edge.to].node});
  return pairs.size();
}

void read_step(const Done& done, const TeamIndex& teams, Known& known, std::vector<EdgeFigure>& edges) {
  const Measure* measure = measure_of(done);
  if (measure == nullptr) return;
  const auto all = readings(teams, done);
  std::size_t live = 0;
  for (const Reading& reading : all)
    if (reading.batch->op == Op::transfer)
      for (const Edge& edge : reading.batch->edges)
        if (inside(edge, reading) && arrived(reading, edge.to)) ++live;
  const bool alone = node_pairs(*measure, teams) == 1;
  for (const Reading& reading : all) {
    if (measure->phase != Phase::blame || reading.batch->op != Op::transfer) continue;
    for (const Edge& edge : reading.batch->edges) {
      if (!inside(edge, reading)) continue;
      edges.push_back(read_edge(reading, edge, done, *measure, known, live > 0));
      edges.back().alone = alone;
    }
  }
  for (const Reading& reading : all)
    learn(reading, known);
}

}  // namespace

std::vector<EdgeFigure> edges_of(const Plan& /*plan*/, const History& history) {
  const TeamIndex teams = teams_of(history);
  Known known;
  std::vector<EdgeFigure> edges;
  for (const Done& done : history.done) {
    read_step(done, teams, known, edges);
    for (const NodeOutcome& outcome : done.outcomes)
      if (outcome.trouble && !is_evidence(*outcome.trouble)) known.broken_nodes.insert(outcome.node);
  }
  return edges;
}

}  // namespace netcheck::judge
