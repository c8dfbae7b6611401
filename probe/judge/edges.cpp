// From the samples of the blame rounds to edges: a rate, zero, or no evidence. See edges.h.
#include "judge/edges.h"

#include <algorithm>
#include <set>

#include "judge/evidence.h"
#include "measure/collective.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

/// What the history tells about an edge of one step.
struct Known {
  /// Bytes have come over some way, once: the fabric works in principle, so no bytes are a finding. Without
  /// that (a firewall, a wrong device everywhere) they are none.
  bool anything = false;
  std::set<std::uint32_t> broken_nodes;  ///< whose fabric process failed before this step
};

const NodeOutcome* outcome_of(const Done& done, std::uint32_t node) {
  const auto found = std::ranges::find(done.outcomes, node, &NodeOutcome::node);
  return found == done.outcomes.end() ? nullptr : &*found;
}

Rate over(double bytes, Ns time) {
  return time > Ns::zero() ? rate_of(bytes, time) : Rate{};
}

/// Both ends' processes, over the span of the figure. Who says nothing at all may not have run at all.
double ends_running(const Sample* sender, const Sample* receiver, Ns span) {
  if (sender == nullptr || receiver == nullptr) return 0;
  return part_running({*sender, *receiver}, span);
}

/// What others took at the two ends, either way, since acknowledgements go back: who drowns a sender's slows
/// it down as well. Of a sender the whole batch is counted, a little longer than the span of the figure.
Rate room_at_ends(const Sample* sender, const Sample* receiver, Ns span) {
  std::uint64_t most = 0;
  for (const Sample* end : {sender, receiver})
    if (end != nullptr) most = std::max({most, end->others_in, end->others_out});
  return room_of_others(most, span);
}

/// Some way carried half as much for others as the check's ways carry, or anything where those carry nothing.
bool crowded(const std::vector<EdgeFigure>& edges) {
  std::vector<double> rates;
  for (const EdgeFigure& edge : edges)
    if (edge.rate && edge.rate->bits_per_second > 0) rates.push_back(edge.rate->bits_per_second);
  const double typical = median(rates).value_or(0);
  return std::ranges::any_of(
      edges, [typical](const EdgeFigure& edge) { return edge.room_of_others.bits_per_second > typical; });
}

/// What did not end in time is abandoned, and what is left of it may be in the way of whoever comes next: in
/// a crowd that is no evidence, of no way.
void drop_what_did_not_end(std::vector<EdgeFigure>& edges) {
  for (EdgeFigure& edge : edges)
    if (edge.partial) edge.rate.reset();
}

/// One edge by its receiver's sample.
EdgeFigure read_edge(const Reading& reading, const Edge& edge, const Done& done, const Measure& measure,
                     const Known& known) {
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
    if (const auto time = transfer_time(*sample)) figure.rate = alg_bandwidth(reading.batch->bytes, *time);
    if (const auto mean = mean_time(*sample)) figure.average = alg_bandwidth(reading.batch->bytes, *mean);
    figure.timed = sample->done.back();
    figure.part_running = ends_running(reading.samples[edge.from], sample, figure.timed);
    figure.room_of_others = room_at_ends(reading.samples[edge.from], sample, figure.timed);
    return figure;
  }
  // Not done: evidence only if the receiver's fabric lived and waited until the allowance.
  if (!receiver->trouble) return figure;
  figure.partial = true;
  const Ns waited = std::max(measure.allowance, receiver->took);
  figure.part_running = ends_running(reading.samples[edge.from], sample, waited);
  figure.room_of_others = room_at_ends(reading.samples[edge.from], sample, waited);
  const std::uint64_t received = sample == nullptr ? 0 : sample->received;
  if (received > 0) {
    figure.rate = over(static_cast<double>(received), waited);
    return figure;
  }
  // Nothing came; but no process that hardly ran could have sent or taken anything.
  if (known.anything && figure.part_running > 0) figure.rate = Rate{0};
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

/// Some batch of the step brought bytes from one node to another.
bool carried(const Reading& reading) {
  if (reading.batch->op != Op::transfer) return reading.complete();
  return std::ranges::any_of(reading.batch->edges, [&](const Edge& edge) {
    return inside(edge, reading) && arrived(reading, edge.to);
  });
}

void read_step(const Done& done, const Measure& measure, const TeamIndex& teams, const Known& known,
               std::vector<EdgeFigure>& edges) {
  const bool alone = pairs_of(measure, teams).size() == 1;
  for (const Reading& reading : readings(teams, done)) {
    if (reading.batch->op != Op::transfer) continue;
    for (const Edge& edge : reading.batch->edges) {
      if (!inside(edge, reading)) continue;
      edges.push_back(read_edge(reading, edge, done, measure, known));
      edges.back().alone = alone;
    }
  }
}

}  // namespace

std::vector<EdgeFigure> inside_edges_of(const History& history) {
  const TeamIndex teams = teams_of(history);
  std::vector<EdgeFigure> edges;
  std::uint32_t steps = 0;
  for (const Done& done : history.done) {
    const Measure* measure = measure_of(done);
    if (measure == nullptr || !measure->inside) continue;
    const std::size_t before = edges.size();
    read_step(done, *measure, teams, Known{.anything = true, .broken_nodes = {}}, edges);
    for (std::size_t i = before; i < edges.size(); ++i)
      edges[i].round = steps;
    ++steps;
  }
  return edges;
}

std::vector<EdgeFigure> edges_of(const Plan& /*plan*/, const History& history) {
  const TeamIndex teams = teams_of(history);
  Known known;
  for (const Done& done : history.done)
    if (!known.anything) known.anything = std::ranges::any_of(readings(teams, done), carried);
  std::vector<EdgeFigure> edges;
  for (const Done& done : history.done) {
    const Measure* measure = measure_of(done);
    if (measure != nullptr && measure->phase == Phase::blame && !measure->inside)
      read_step(done, *measure, teams, known, edges);
    for (const NodeOutcome& outcome : done.outcomes)
      if (outcome.trouble && !is_evidence(*outcome.trouble)) known.broken_nodes.insert(outcome.node);
  }
  if (crowded(edges)) drop_what_did_not_end(edges);
  return edges;
}

}  // namespace netcheck::judge
