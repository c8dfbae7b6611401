// The modelled network: how long batches take, and what stops them. Paths have a rate and a latency and share
// nothing; a collective is as fast as the slowest path of its ring; a transfer as its own path.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "clock.h"
#include "dice.h"
#include "scenario.h"

namespace netcheck::sim {

class DataPlane {
 public:
  using Ended = std::function<void(std::vector<Sample>)>;

  DataPlane(Clock& clock, const Scenario& scenario, Dice& dice)
      : clock_(clock), scenario_(scenario), dice_(dice), cut_(scenario.nodes, false) {}

  /// A node begins its part. `ended` is called when that is complete, if it ever is.
  void begin(std::uint32_t node, const Team& team, const Batch& batch, Ended ended);
  /// A node is there to form a team. `met` is called when all of its nodes are.
  void meet(std::uint32_t node, const Team& team, std::function<void()> met);
  /// What the node's ranks have until now; it takes no further part, so the others wait in vain.
  [[nodiscard]] std::vector<Sample> withdraw(std::uint32_t node, std::uint32_t batch);
  /// The node takes no further part in anything it has begun.
  void withdraw(std::uint32_t node);
  /// No data in or out of the node from now on.
  void cut(std::uint32_t node);

 private:
  /// What moves together: a whole collective, or one edge of a transfer.
  struct Flow {
    std::vector<std::uint32_t> ranks;
    Time begin{}, end{};
    Ns warm{};
    std::vector<Ns> done;  ///< since the end of the warm-up
    Time stalled = Time::max();
    bool started = false, ended = false;
  };
  struct Live {
    Batch batch;
    Team team;
    std::map<std::uint32_t, Ended> at_work;  ///< by node
    std::vector<Flow> flows;
  };

  void start(Live& live, std::size_t flow);
  void end(std::uint32_t batch, std::size_t flow);
  void halt(const Live& live, Flow& flow) const;
  void leave(Live& live, std::uint32_t node);
  [[nodiscard]] bool touches(const Live& live, const Flow& flow, std::uint32_t node) const;
  [[nodiscard]] double ring(const std::vector<Rank>& ranks) const;
  [[nodiscard]] double seconds(const Live& live, const Flow& flow) const;
  [[nodiscard]] std::vector<Sample> samples(const Live& live, std::uint32_t node) const;
  [[nodiscard]] Ns kept(std::uint32_t node, Ns span) const;
  [[nodiscard]] std::uint64_t others(std::uint32_t node, bool inward, Ns span) const;

  Clock& clock_;
  const Scenario& scenario_;
  Dice& dice_;
  std::vector<bool> cut_;
  std::map<std::uint32_t, Live> live_;                                               ///< by batch
  std::map<std::uint32_t, std::map<std::uint32_t, std::function<void()>>> meeting_;  ///< by team and node
};

}  // namespace netcheck::sim
