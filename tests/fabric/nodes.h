// Several nodes' fabrics driven by one process: a ChildFabric each, formed into teams and run through batches
// as a session would. For the unit tests (all on the loopback device) and for fabric_nodes (each child in a
// network namespace of its own).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabric/child.h"
#include "system/loop.h"

namespace netcheck::fabric {

class Nodes {
 public:
  explicit Nodes(const std::vector<ChildCommand>& commands) {
    events_.resize(commands.size());
    for (std::size_t node = 0; node < commands.size(); ++node)
      fabrics_.push_back(std::make_unique<ChildFabric>(
          loop_, commands[node], [this, node](Event event) { events_[node].push_back(std::move(event)); }));
  }

  [[nodiscard]] ChildFabric& fabric(std::size_t node) { return *fabrics_.at(node); }
  [[nodiscard]] std::size_t size() const { return fabrics_.size(); }
  [[nodiscard]] system::Loop& loop() { return loop_; }

  /// One event of each node in `nodes`, by node; nullopt where none came by `limit`.
  std::vector<std::optional<Event>> gather(const std::set<std::uint32_t>& nodes, Ns limit) {
    const Time deadline = system::now() + limit;
    while (waiting(nodes) && system::now() < deadline)
      loop_.turn(std::min(deadline, system::now() + std::chrono::milliseconds(50)));
    std::vector<std::optional<Event>> answers(size());
    for (const auto node : nodes) {
      if (events_[node].empty()) continue;
      answers[node] = std::move(events_[node].front());
      events_[node].erase(events_[node].begin());
    }
    return answers;
  }

  std::vector<std::optional<Event>> open(const Options& options, Ns limit = std::chrono::seconds(10)) {
    for (auto& fabric : fabrics_)
      fabric->open(options);
    return gather(everyone(), limit);
  }

  /// Invites and joins all members. The answers to join; where an invitation failed, that.
  std::vector<std::optional<Event>> form(const Team& team, Ns limit = std::chrono::seconds(10)) {
    const auto members = nodes_of(team);
    for (const auto node : members)
      fabric(node).invite(team, node);
    const auto invited = gather(members, limit);
    std::vector<Bytes> cards;
    std::set<std::uint32_t> seen;
    for (const auto& rank : team.ranks) {
      if (!seen.insert(rank.node).second) continue;
      if (!invited[rank.node] || !std::holds_alternative<Invited>(*invited[rank.node])) return invited;
      cards.push_back(std::get<Invited>(*invited[rank.node]).card);
    }
    for (const auto node : members)
      fabric(node).join(Join{team, cards, node});
    return gather(members, limit);
  }

  /// Runs one batch on all members.
  std::vector<std::optional<Event>> run(const Team& team, const Batch& batch,
                                        Ns limit = std::chrono::seconds(20)) {
    for (const auto node : nodes_of(team))
      fabric(node).run(batch);
    return gather(nodes_of(team), limit);
  }

  static std::set<std::uint32_t> nodes_of(const Team& team) {
    std::set<std::uint32_t> nodes;
    for (const auto& rank : team.ranks)
      nodes.insert(rank.node);
    return nodes;
  }
  [[nodiscard]] std::set<std::uint32_t> everyone() const {
    std::set<std::uint32_t> nodes;
    for (std::uint32_t node = 0; node < size(); ++node)
      nodes.insert(node);
    return nodes;
  }

 private:
  [[nodiscard]] bool waiting(const std::set<std::uint32_t>& nodes) const {
    for (const auto node : nodes)
      if (events_[node].empty()) return true;
    return false;
  }

  system::Loop loop_;
  std::vector<std::vector<Event>> events_;
  std::vector<std::unique_ptr<ChildFabric>> fabrics_;
};

}  // namespace netcheck::fabric
