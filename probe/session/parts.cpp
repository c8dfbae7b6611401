// Splitting a step among the nodes, and holding orders and answers to the roster. Called by both machines.
#include "session/parts.h"

#include <algorithm>
#include <set>

namespace netcheck::session {
namespace {

std::optional<std::string> misfit(const Team& team, std::size_t nodes, std::uint32_t self,
                                  std::size_t lanes) {
  std::set<Rank> seen;
  bool member = false;
  for (const Rank& rank : team.ranks) {
    if (rank.node >= nodes) return "a team has a node that is none of this job's";
    if (!seen.insert(rank).second) return "a team has a rank twice";
    if (rank.node != self) continue;
    member = true;
    if (rank.lane >= lanes) return "a team wants a lane that is not open here";
  }
  if (!member) return "an invitation to a team that this node is not in";
  return std::nullopt;
}

std::optional<std::string> misfit(const Batch& batch, const Team& team, std::uint64_t max_bytes) {
  const std::size_t ranks = team.ranks.size();
  if (batch.bytes > max_bytes) return "a batch is larger than the buffers opened here";
  if (batch.iterations == 0) return "a batch of no operations";
  if (batch.root >= ranks) return "a batch's root is no rank of its team";
  for (const Edge& edge : batch.edges) {
    if (edge.from >= ranks || edge.to >= ranks || edge.from == edge.to)
      return "a transfer between ranks that do not exist";
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::uint32_t> members_of(const Team& team) {
  std::vector<std::uint32_t> members;
  std::set<std::uint32_t> seen;
  for (const Rank& rank : team.ranks) {
    if (seen.insert(rank.node).second) members.push_back(rank.node);
  }
  return members;
}

std::map<std::uint32_t, std::vector<Team>> parts_of(const judge::Form& form) {
  std::map<std::uint32_t, std::vector<Team>> parts;
  for (const Team& team : form.teams) {
    for (const std::uint32_t node : members_of(team))
      parts[node].push_back(team);
  }
  return parts;
}

std::map<std::uint32_t, std::vector<Batch>> parts_of(const judge::Measure& measure, const Teams& teams) {
  std::map<std::uint32_t, std::vector<Batch>> parts;
  for (const Batch& batch : measure.batches) {
    const auto team = teams.find(batch.team);
    if (team == teams.end()) continue;
    for (const std::uint32_t node : members_of(team->second))
      parts[node].push_back(batch);
  }
  return parts;
}

std::optional<std::string> misfit(const Invite& invite, std::size_t nodes, std::uint32_t self,
                                  std::size_t lanes) {
  std::set<std::uint32_t> ids;
  for (const Team& team : invite.teams) {
    if (!ids.insert(team.id).second) return "two teams of one number";
    if (auto why = misfit(team, nodes, self, lanes)) return why;
  }
  if (ids.empty()) return "an invitation to no team";
  return std::nullopt;
}

std::optional<std::string> misfit(const Connect& connect, const Teams& teams) {
  std::set<std::uint32_t> ids;
  for (const TeamCards& cards : connect.teams) {
    const auto team = teams.find(cards.team);
    if (team == teams.end()) return "cards of a team that this node was not invited to";
    if (!ids.insert(cards.team).second) return "cards of one team twice";
    if (cards.cards.size() != members_of(team->second).size())
      return "cards that are not one for each member";
  }
  if (ids.size() != teams.size()) return "a team without its cards";
  return std::nullopt;
}

std::optional<std::string> misfit(const Run& run, const Teams& teams, std::uint64_t max_bytes) {
  std::set<std::uint32_t> ids, busy;
  for (const Batch& batch : run.batches) {
    const auto team = teams.find(batch.team);
    if (team == teams.end()) return "a batch of a team that is not connected here";
    if (!ids.insert(batch.id).second || !busy.insert(batch.team).second) return "two batches for one team";
    if (auto why = misfit(batch, team->second, max_bytes)) return why;
  }
  if (ids.empty()) return "a run of no batch";
  return std::nullopt;
}

std::optional<std::string> misfit(const Cards& cards, const std::vector<Team>& invited) {
  if (cards.cards.size() != invited.size()) return "not one card for each team";
  for (std::size_t i = 0; i < invited.size(); ++i) {
    if (cards.cards[i].team != invited[i].id) return "not one card for each team";
  }
  return std::nullopt;
}

std::optional<std::string> misfit(const Answer& answer, std::uint32_t node, const std::vector<Batch>& batches,
                                  const Teams& teams) {
  const judge::NodeOutcome& outcome = answer.outcome;
  if (outcome.node != node) return "it answers for another node";
  if (outcome.samples.size() != outcome.batch.size()) return "samples without their batch";
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (std::size_t i = 0; i < outcome.samples.size(); ++i) {
    const Sample& sample = outcome.samples[i];
    const auto batch = std::ranges::find(batches, outcome.batch[i], &Batch::id);
    if (batch == batches.end()) return "a sample of a batch that it was not given";
    const Team& team = teams.at(batch->team);
    if (sample.rank >= team.ranks.size() || team.ranks[sample.rank].node != node)
      return "a sample of a rank that is not its own";
    if (sample.done.size() > batch->iterations) return "more completions than operations";
    if (!std::ranges::is_sorted(sample.done)) return "completions that do not rise";
    if (!seen.emplace(batch->id, sample.rank).second) return "two samples of one rank";
  }
  return std::nullopt;
}

}  // namespace netcheck::session
