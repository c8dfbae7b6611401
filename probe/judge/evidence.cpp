// See evidence.h.
#include "judge/evidence.h"

#include <algorithm>
#include <set>

namespace netcheck::judge {

bool complete(const Sample& sample, const Batch& batch) {
  return batch.iterations > 0 && sample.done.size() == batch.iterations;
}

bool Reading::complete() const {
  const auto ended = [this](std::uint32_t rank) {
    return rank < samples.size() && samples[rank] != nullptr && judge::complete(*samples[rank], *batch);
  };
  if (batch->op == Op::transfer)
    return std::ranges::all_of(batch->edges, [&](const Edge& edge) { return ended(edge.to); });
  for (std::uint32_t rank = 0; rank < samples.size(); ++rank)
    if (!ended(rank)) return false;
  return !samples.empty();
}

TeamIndex teams_of(const History& history) {
  TeamIndex index;
  for (const Done& done : history.done)
    if (const Form* form = form_of(done))
      for (const Team& team : form->teams)
        index[team.id] = &team;
  return index;
}

std::vector<Reading> readings(const TeamIndex& teams, const Done& done) {
  const Measure* measure = measure_of(done);
  if (measure == nullptr) return {};
  std::vector<Reading> result;
  std::unordered_map<std::uint32_t, std::size_t> by_batch;
  for (const Batch& batch : measure->batches) {
    const auto team = teams.find(batch.team);
    if (team == teams.end()) continue;
    by_batch[batch.id] = result.size();
    result.push_back({&batch, team->second, std::vector<const Sample*>(team->second->ranks.size(), nullptr)});
  }
  for (const NodeOutcome& outcome : done.outcomes) {
    const std::size_t count = std::min(outcome.samples.size(), outcome.batch.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Sample& sample = outcome.samples[i];
      const auto found = by_batch.find(outcome.batch[i]);
      if (found == by_batch.end()) continue;
      Reading& reading = result[found->second];
      if (sample.rank >= reading.team->ranks.size()) continue;
      if (reading.team->ranks[sample.rank].node != outcome.node) continue;
      reading.samples[sample.rank] = &sample;
    }
  }
  return result;
}

std::vector<Pair> pairs_of(const Measure& measure, const TeamIndex& teams) {
  std::set<Pair> pairs;
  for (const Batch& batch : measure.batches)
    if (const auto team = teams.find(batch.team); team != teams.end())
      for (const Edge& edge : batch.edges)
        if (edge.from < team->second->ranks.size() && edge.to < team->second->ranks.size())
          pairs.insert({team->second->ranks[edge.from].node, team->second->ranks[edge.to].node});
  return {pairs.begin(), pairs.end()};
}

bool is_evidence(Trouble trouble) {
  return trouble == Trouble::no_bytes;
}

const NodeOutcome* broken(const Done& done) {
  for (const NodeOutcome& outcome : done.outcomes)
    if (outcome.trouble && !is_evidence(*outcome.trouble)) return &outcome;
  return nullptr;
}

bool stalled(const Done& done) {
  return std::ranges::any_of(done.outcomes, [](const NodeOutcome& outcome) {
    return outcome.trouble && is_evidence(*outcome.trouble);
  });
}

const Measure* measure_of(const Done& done) {
  return std::get_if<Measure>(&done.step);
}
const Form* form_of(const Done& done) {
  return std::get_if<Form>(&done.step);
}

}  // namespace netcheck::judge
