// One simulated check: every node's machines, joined by modelled channels, a modelled fabric and virtual
// time. Drives the very Leader and Follower that run on a cluster, the way the driver (probe.cpp) does.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "clock.h"
#include "dataplane.h"
#include "dice.h"
#include "fabric.h"
#include "scenario.h"
#include "session/follower.h"
#include "session/leader.h"

namespace netcheck::sim {

/// How it ended on one node.
struct End {
  bool able = false;  ///< it started and was neither dead nor stopped when its deadline came
  std::optional<session::Report> report;
  Time finished{}, deadline{};  ///< true time
  session::Assignment assignment;
};
struct Outcome {
  std::vector<End> nodes;
  std::uint64_t events = 0;
};

class World {
 public:
  /// `trace`: told every message and order, in words; may be empty.
  World(const Scenario& scenario, std::function<void(const std::string&)> trace);
  [[nodiscard]] Outcome run();

 private:
  using Event = std::variant<session::LeaderEvent, session::FollowerEvent>;
  struct Node {
    session::Assignment assignment;
    std::optional<session::Leader> leader;
    std::optional<session::Follower> follower;
    std::unique_ptr<SimFabric> fabric;
    Time started{}, deadline{}, finished{};
    bool dead = false, frozen = false;
    std::deque<std::function<void()>> backlog;  ///< what waits for a frozen node
    std::optional<session::Report> report;
    std::uint64_t timer = 0;
    std::set<std::uint32_t> connected;
    Time last_arrival_up{}, last_arrival_down{};  ///< keep the channel to the leader in order
  };

  void prepare(std::uint32_t index);
  void boot(std::uint32_t index);
  void schedule_fault();
  void strike();
  void thaw(std::uint32_t index);

  // Channels
  void knock(std::uint32_t index);
  void proven_at_leader(std::uint32_t index);
  void send(std::uint32_t from, std::uint32_t to, std::function<void()> arrive);
  [[nodiscard]] bool reachable(std::uint32_t from, std::uint32_t to) const;
  void deliver(std::uint32_t index, std::function<void()> happen);
  [[nodiscard]] std::optional<session::Message> over_the_wire(session::Message message) const;
  void close_channels(std::uint32_t index, const std::string& why);

  // Machines
  void feed(std::uint32_t index, Event event);
  void carry_out(std::uint32_t index, session::LeaderAction action, std::deque<Event>& next);
  void carry_out(std::uint32_t index, session::FollowerAction action, std::deque<Event>& next);
  void finish(std::uint32_t index, session::Report report);
  void set_timer(std::uint32_t index);
  [[nodiscard]] Time local(std::uint32_t index) const { return clock_.now() + scenario_.clocks[index]; }
  void choose_lanes(std::uint32_t index);
  [[nodiscard]] std::optional<judge::NodeHardware> hardware(std::uint32_t index);
  void tell(std::uint32_t index, const std::string& text) const;

  Scenario scenario_;
  Clock clock_;
  Dice dice_;
  DataPlane data_;
  std::function<void(const std::string&)> trace_;
  std::vector<Node> nodes_;
  bool control_cut_ = false;
};

}  // namespace netcheck::sim
