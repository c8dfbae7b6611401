// The players of a check for the session's tests: assignments, inventories, and machines fed by hand.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "session/follower.h"
#include "session/leader.h"
#include "session/patience.h"

namespace netcheck::session::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// When the check starts; any time will do.
inline constexpr Time kStart = Time(seconds(1'000));

/// Node `self` of n1 … nN, with the built-in policy: 3 s of rendezvous, 8 s in all.
inline Assignment assignment(std::uint32_t nodes, std::uint32_t self) {
  Assignment assignment;
  assignment.roster.run = {.cluster = "c", .job = 17, .restart = 0};
  for (std::uint32_t i = 1; i <= nodes; ++i)
    assignment.roster.nodes.push_back("n" + std::to_string(i));
  assignment.roster.self = self;
  assignment.policy.fabric = "ucx";  // as the supervisor leaves it
  assignment.deadline = kStart + assignment.policy.time;
  assignment.rendezvous_deadline = kStart + assignment.policy.rendezvous;
  assignment.agreement = agreement(assignment.policy);
  return assignment;
}

inline Inventory inventory(const std::string& node) {
  Inventory inventory;
  inventory.node = node;
  inventory.version = NETCHECK_VERSION;
  inventory.machine = "model";
  return inventory;
}

inline Present present(const Assignment& assignment) {
  return {.inventory = inventory("n"),
          .agreement = assignment.agreement,
          .terms = agreement_terms(assignment.policy),
          .remaining = seconds(8)};
}

inline fabric::Ready ready(std::vector<std::string> lanes = {"eth0"}) {
  return {
      .module = "ucx", .version = "1.13.1", .lanes = std::move(lanes), .max_bytes = 1u << 20, .terms = {}};
}

/// All actions of one type, in order.
template <typename Wanted, typename Action>
std::vector<Wanted> all_of(const std::vector<Action>& actions) {
  std::vector<Wanted> found;
  for (const Action& action : actions) {
    if (const auto* wanted = std::get_if<Wanted>(&action)) found.push_back(*wanted);
  }
  return found;
}

/// All messages of one type in a leader's or a follower's actions.
template <typename Wanted>
std::vector<Wanted> said(const std::vector<FollowerAction>& actions) {
  std::vector<Wanted> found;
  for (const ToLeader& to : all_of<ToLeader>(actions)) {
    if (const auto* wanted = std::get_if<Wanted>(&to.message)) found.push_back(*wanted);
  }
  return found;
}
template <typename Wanted>
std::map<std::uint32_t, Wanted> told(const std::vector<LeaderAction>& actions) {
  std::map<std::uint32_t, Wanted> found;
  for (const ToNode& to : all_of<ToNode>(actions)) {
    if (const auto* wanted = std::get_if<Wanted>(&to.message)) found.emplace(to.node, *wanted);
  }
  return found;
}

}  // namespace netcheck::session::test
