// What a decision is made from, as the tests change it: a job, its finding, and what Slurm says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "prolog/decide.h"

namespace netcheck::prolog {

inline constexpr std::int64_t kNow = 1'000'000;

// Job 17 on n1 to n3, where n3 is slow; n4 and n5 are free, n9 is in another partition. Requeue is asked for.
struct Situation {
  Policy policy;
  Finding finding;
  JobFacts job{"17", "", true, false};
  ClusterFacts cluster;
  OwnHistory own;

  Situation() {
    policy.action = Action::requeue;
    finding.kind = Finding::Kind::fail;
    finding.nodes = {"n1", "n2", "n3"};
    finding.culprits = {"n3"};
    finding.sites_check = finding.site_fails = true;
    finding.drainable = {{"n3", "n3(tx: 96.0Mbps)"}};
    cluster.standing = Standing{"R", "None", 100, 0, 3, true, false, false, false};
    cluster.placement = Placement{};
    cluster.partition = "main";
    cluster.nodes.emplace();
    for (const char* name : {"n1", "n2", "n3"})
      add(name, "allocated");
    for (const char* name : {"n4", "n5"})
      add(name, "idle");
    cluster.nodes->push_back({"n9", "other", "idle", 64, 1000, "", "", "none"});
  }
  void add(const std::string& name, const std::string& state, std::uint64_t cpus = 64) {
    cluster.nodes->push_back({name, "main", state, cpus, 1000, "gpu:8", "rack1", "none"});
  }
  NodeFacts& node(const std::string& name) {
    for (NodeFacts& node : *cluster.nodes)
      if (node.name == name) return node;
    throw std::out_of_range(name);
  }
  // Two leaf switches, and the ways that were slow.
  void leaves(const std::string& one, const std::string& other,
              std::vector<std::pair<std::string, std::string>> slow) {
    cluster.switches =
        Switches::parse("SwitchName=a Nodes=" + one + "\nSwitchName=b Nodes=" + other + "\n").value();
    finding.slow_ways = std::move(slow);
  }
  [[nodiscard]] ActionPlan decide() const { return decide_action(policy, finding, job, cluster, own, kNow); }
};

/// What is changed, and what the line's end comes to.
struct Row {
  const char* name;
  std::function<void(Situation&)> change;
  Action action;
  const char* tail;
};

inline void expect_outcome(const Row& row) {
  Situation situation;
  row.change(situation);
  const ActionPlan plan = situation.decide();
  EXPECT_EQ(name(plan.action), name(row.action));
  EXPECT_EQ(plan.tail, row.tail);
}

}  // namespace netcheck::prolog
