// Nodes, channels and time of one simulated check.
#include "world.h"

#include <fmt/format.h>

#include <utility>

#include "contract/overloaded.h"
#include "judge/names.h"

namespace netcheck::sim {

using session::Message;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

/// Nothing of a check may happen after this; the longest deadline is 8 s after the latest start.
constexpr Time kEndOfTime = Time(std::chrono::seconds(30));
/// A check of 64 nodes has some 5,000 events; one that reaches this goes round in circles.
constexpr std::uint64_t kEndless = 50'000;
/// Credentials, look-ups.
constexpr Ns kProving = milliseconds(5), kProvingLongest = milliseconds(40);

/// A look at the hardware takes at most so long here.
constexpr Ns kLooking = milliseconds(200);

std::string words(const judge::NodeOutcome& outcome) {
  if (!outcome.trouble) return fmt::format("ok, {} samples", outcome.samples.size());
  return fmt::format("{}: {}", judge::name(*outcome.trouble), outcome.detail);
}

std::string words(const Message& message) {
  std::string text(session::name(message));
  std::visit(Overloaded{[&](const session::Answer& said) {
                          text += fmt::format(" to step {}: {}", said.step, words(said.outcome));
                        },
                        [&](const session::Cards& said) { text += fmt::format(" to step {}", said.step); },
                        [&](const session::Invite& said) {
                          text += fmt::format(" step {}: {} teams", said.step, said.teams.size());
                        },
                        [&](const session::Run& said) {
                          const Batch& batch = said.batches.front();
                          text += fmt::format(" step {}: {} {} x {}, {} edges, allowance {}", said.step,
                                              netcheck::name(batch.op), format_bytes(batch.bytes),
                                              batch.iterations, batch.edges.size(),
                                              format_duration(said.allowance));
                        },
                        [&](const session::Close& said) { text += ": " + said.line; },
                        [&](const session::Broken& said) { text += ": " + said.detail; }, [](const auto&) {}},
             message);
  return text;
}

}  // namespace

World::World(const Scenario& scenario, std::function<void(const std::string&)> trace)
    : scenario_(scenario),
      dice_(scenario.seed + 1),
      data_(clock_, scenario_, dice_),
      trace_(std::move(trace)),
      nodes_(scenario.nodes) {}

Outcome World::run() {
  for (std::uint32_t index = 0; index < scenario_.nodes; ++index)
    prepare(index);
  schedule_fault();
  Outcome outcome;
  while (outcome.events < kEndless && clock_.step(kEndOfTime))
    ++outcome.events;
  for (Node& node : nodes_) {
    outcome.nodes.push_back({.able = node.follower && !node.dead && !node.frozen,
                             .report = std::move(node.report),
                             .finished = node.finished,
                             .deadline = node.deadline,
                             .assignment = std::move(node.assignment)});
  }
  return outcome;
}

// --- nodes ------------------------------------------------------------------------------------------------

void World::prepare(std::uint32_t index) {
  Node& node = nodes_[index];
  const Policy& policy = scenario_.policy;
  node.started = Time(scenario_.starts[index]);
  node.deadline = node.started + policy.time;
  Roster& roster = node.assignment.roster;
  roster.run = {.cluster = "sim", .job = static_cast<std::uint32_t>(scenario_.seed), .restart = 0};
  for (std::uint32_t i = 0; i < scenario_.nodes; ++i)
    roster.nodes.push_back(fmt::format("n{}", i + 1));
  roster.self = index;
  node.assignment.policy = policy;
  const Fault& fault = scenario_.fault;
  if (fault.kind == Kind::unlike && fault.node == index) node.assignment.policy.slice *= 2;
  node.assignment.agreement = agreement(node.assignment.policy);
  node.assignment.deadline = node.deadline + scenario_.clocks[index];
  node.assignment.rendezvous_deadline = node.started + policy.rendezvous + scenario_.clocks[index];
  if (fault.kind == Kind::absent && fault.node == index) return;
  clock_.at(node.started, [this, index] { boot(index); });
}

void World::boot(std::uint32_t index) {
  Node& node = nodes_[index];
  if (node.dead) return;
  Inventory inventory;
  inventory.node = node.assignment.roster.nodes[index];
  inventory.version = NETCHECK_VERSION;
  inventory.machine = "simulated";
  node.fabric =
      std::make_unique<SimFabric>(clock_, data_, scenario_, dice_, index, [this, index](fabric::Event event) {
        deliver(index, [this, index, event = std::move(event)]() mutable {
          feed(index, session::FollowerEvent(std::move(event)));
        });
      });
  node.follower.emplace(node.assignment, std::move(inventory), local(index));
  if (index != 0) {
    set_timer(index);
    clock_.after(dice_.time(kProving, kProvingLongest), [this, index] { knock(index); });
    return;
  }
  node.leader.emplace(node.assignment, local(0));
  feed(0, session::FollowerEvent(session::LeaderFound{}));
  if (scenario_.strangers) {
    clock_.after(dice_.time(milliseconds(0), milliseconds(4'000)), [this] {
      deliver(0, [this] { feed(0, session::LeaderEvent(session::Heed{"10.9.9.9: no hello"})); });
    });
  }
}

void World::schedule_fault() {
  switch (scenario_.fault.kind) {
    case Kind::crash:
    case Kind::freeze:
    case Kind::hiccup:
    case Kind::cut_data:
    case Kind::cut_all:
      clock_.at(Time(scenario_.fault.at), [this] { strike(); });
      break;
    default:
      break;
  }
}

void World::strike() {
  const Fault& fault = scenario_.fault;
  Node& node = nodes_[fault.node];
  tell(fault.node, fmt::format("*** {}", name(fault.kind)));
  switch (fault.kind) {
    case Kind::crash:
      node.dead = true;
      data_.withdraw(fault.node);
      close_channels(fault.node, "the connection was reset");
      break;
    case Kind::freeze:
      node.frozen = true;
      break;
    case Kind::hiccup:
      node.frozen = true;
      clock_.after(fault.lasts, [this, index = fault.node] { thaw(index); });
      break;
    case Kind::cut_all:
      control_cut_ = true;
      [[fallthrough]];
    default:
      data_.cut(fault.node);
  }
}

void World::thaw(std::uint32_t index) {
  Node& node = nodes_[index];
  node.frozen = false;
  tell(index, "*** goes on");
  auto waiting = std::exchange(node.backlog, {});
  for (auto& happen : waiting)
    happen();
}

/// Runs at the node; later where it is frozen, never where it is dead or done.
void World::deliver(std::uint32_t index, std::function<void()> happen) {
  Node& node = nodes_[index];
  if (node.dead || node.report || !node.follower) return;
  if (node.frozen) return node.backlog.push_back(std::move(happen));
  happen();
}

// --- channels ---------------------------------------------------------------------------------------------

bool World::reachable(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t cut = scenario_.fault.node;
  return from == to || !control_cut_ || (from != cut && to != cut);
}

/// In order; now and then behind a full shaper queue.
void World::send(std::uint32_t from, std::uint32_t to, std::function<void()> arrive) {
  if (!reachable(from, to)) return;
  Ns delay = scenario_.latency + dice_.time(microseconds(30), microseconds(500));
  if (dice_.chance(0.02)) delay += dice_.time(milliseconds(1), milliseconds(60));
  Node& follower = nodes_[from == 0 ? to : from];
  Time& last = from == 0 ? follower.last_arrival_down : follower.last_arrival_up;
  last = std::max(last + Ns{1}, clock_.now() + delay);
  clock_.at(last, [this, from, to, arrive = std::move(arrive)]() mutable {
    if (reachable(from, to)) deliver(to, std::move(arrive));
  });
}

/// A follower tries the leader's door until it is answered or its rendezvous is over.
void World::knock(std::uint32_t index) {
  const Node& leader = nodes_[0];
  Node& node = nodes_[index];
  if (node.dead || node.report || clock_.now() > node.started + scenario_.policy.rendezvous) return;
  if (node.connected.contains(0)) return;
  if (leader.follower && !leader.dead && !leader.report && reachable(index, 0) && !node.frozen)
    send(index, 0, [this, index] { proven_at_leader(index); });
  clock_.after(dice_.time(milliseconds(100), milliseconds(300)), [this, index] { knock(index); });
}

void World::proven_at_leader(std::uint32_t index) {
  Node& leader = nodes_[0];
  if (nodes_[index].dead) return;
  if (!leader.connected.insert(index).second) return;
  if (leader.connected.size() == 1) choose_lanes(0);
  send(0, index, [this, index] {
    if (!nodes_[index].connected.insert(0).second) return;
    feed(index, session::FollowerEvent(session::LeaderFound{}));
    choose_lanes(index);
  });
}

void World::close_channels(std::uint32_t index, const std::string& why) {
  if (index != 0) {
    if (!nodes_[0].connected.contains(index)) return;
    return send(index, 0, [this, index, why] {
      feed(0, session::LeaderEvent(session::NodeGone{index, why}));
    });
  }
  for (const std::uint32_t other : nodes_[0].connected)
    send(0, other, [this, other, why] { feed(other, session::FollowerEvent(session::LeaderGone{why})); });
}

/// The look at the hardware ends before or after the fabric has opened.
void World::choose_lanes(std::uint32_t index) {
  fabric::Options options;
  for (int lane = 0; lane < scenario_.rails; ++lane)
    options.devices.push_back(fmt::format("eth{}", lane));
  feed(index, session::FollowerEvent(session::LanesChosen{options, local(index) + kLooking}));
  clock_.after(Dice(scenario_.seed + index).time(milliseconds(1), kLooking), [this, index] {
    deliver(index, [this, index] {
      feed(index, session::FollowerEvent(session::HardwareSeen{hardware(index), "it is strange"}));
    });
  });
}

/// All nodes are alike. The liar says that it is not, that its own devices are other nodes, and that it is
/// built for much more or less.
std::optional<judge::NodeHardware> World::hardware(std::uint32_t index) {
  if (scenario_.blind == index) return std::nullopt;
  judge::NodeHardware hardware{
      .traits = {{"GPUs", "8", true}, {"MTU", "1 × 9000", false}}, .flaws = {}, .rails = {}};
  for (int lane = 0; lane < scenario_.rails; ++lane) {
    const std::string name = fmt::format("eth{}", lane);
    if (scenario_.over_lanes)  // a GPU and its port
      hardware.rails.push_back(
          {fmt::format("mlx5_{}:1", lane), scenario_.rdma, Rate{scenario_.rate}, {name}});
    else
      hardware.rails.push_back({name, scenario_.rdma, Rate{scenario_.rate}, {}});
  }
  if (scenario_.liar != index) return hardware;
  Dice dice(scenario_.seed + index);
  const std::string other = fmt::format("n{}", (index + 1) % scenario_.nodes + 1);
  hardware.traits = {{"GPUs", other, true}, {"MTU", "0", false}};
  for (const Flaw flaw : {Flaw::port_down, Flaw::iommu})
    hardware.flaws.push_back({flaw, other, other + " is to blame"});
  for (judge::RailSpeed& rail : hardware.rails) {
    rail.nominal = Rate{dice.chance(0.5) ? 1.0 : 1e14};
    rail.rdma = dice.chance(0.5);
    if (dice.chance(0.5)) rail.gpus = {"eth0", other};
  }
  return hardware;
}

std::optional<Message> World::over_the_wire(Message message) const {
  if (!scenario_.wire) return message;
  auto decoded = session::decode(session::encode(message), "sim");
  return decoded ? std::optional(std::move(*decoded)) : std::nullopt;
}

// --- machines ---------------------------------------------------------------------------------------------

void World::feed(std::uint32_t index, Event first) {
  std::deque<Event> events;
  events.push_back(std::move(first));
  Node& node = nodes_[index];
  while (!events.empty() && !node.report && !node.dead) {
    Event event = std::move(events.front());
    events.pop_front();
    std::visit(Overloaded{[&](session::LeaderEvent& to_leader) {
                            if (!node.leader) return;
                            for (auto& action : node.leader->on(std::move(to_leader), local(index)))
                              carry_out(index, std::move(action), events);
                          },
                          [&](session::FollowerEvent& to_follower) {
                            for (auto& action : node.follower->on(std::move(to_follower), local(index)))
                              carry_out(index, std::move(action), events);
                          }},
               event);
  }
  if (!node.report) set_timer(index);
}

void World::set_timer(std::uint32_t index) {
  Node& node = nodes_[index];
  Time wake = node.follower->wake();
  if (node.leader) wake = std::min(wake, node.leader->wake());
  clock_.at(wake - scenario_.clocks[index], [this, index, mine = ++node.timer] {
    if (mine != nodes_[index].timer) return;
    deliver(index, [this, index] {
      if (nodes_[index].leader) feed(index, session::LeaderEvent(session::Tick{}));
      if (!nodes_[index].report) feed(index, session::FollowerEvent(session::Tick{}));
    });
  });
}

void World::carry_out(std::uint32_t index, session::LeaderAction action, std::deque<Event>& next) {
  std::visit(Overloaded{[&](session::ToNode& to) {
                          if (trace_) tell(index, fmt::format("→ n{}: {}", to.node + 1, words(to.message)));
                          if (to.node == 0)
                            return next.push_back(
                                session::FollowerEvent(session::FromLeader{std::move(to.message)}));
                          if (!nodes_[0].connected.contains(to.node)) return;
                          auto message = over_the_wire(std::move(to.message));
                          send(0, to.node, [this, node = to.node, message = std::move(message)]() mutable {
                            if (!message)
                              return feed(node, session::FollowerEvent(session::LeaderGone{"unreadable"}));
                            feed(node, session::FollowerEvent(session::FromLeader{std::move(*message)}));
                          });
                        },
                        [&](session::Finish& end) { finish(index, std::move(end.report)); }},
             action);
}

void World::carry_out(std::uint32_t index, session::FollowerAction action, std::deque<Event>& next) {
  SimFabric& fabric = *nodes_[index].fabric;
  std::visit(
      Overloaded{[&](session::ToLeader& to) {
                   if (trace_) tell(index, words(to.message));
                   if (index == 0)
                     return next.push_back(session::LeaderEvent(session::FromNode{0, std::move(to.message)}));
                   auto message = over_the_wire(std::move(to.message));
                   send(index, 0, [this, index, message = std::move(message)]() mutable {
                     if (!message)
                       return feed(0, session::LeaderEvent(session::NodeGone{index, "unreadable"}));
                     feed(0, session::LeaderEvent(session::FromNode{index, std::move(*message)}));
                   });
                 },
                 [&](session::OpenFabric& order) { fabric.open(std::move(order.options)); },
                 [&](session::InviteFabric& order) { fabric.invite(std::move(order.team), index); },
                 [&](session::JoinFabric& order) { fabric.join(std::move(order.join)); },
                 [&](session::RunFabric& order) { fabric.run(std::move(order.batch)); },
                 [&](session::LeaveFabric& order) { fabric.leave(order.team); },
                 [&](session::AbandonFabric&) {
                   if (trace_) tell(index, "abandons its fabric");
                   fabric.abandon();
                 },
                 [&](session::Finish& end) {
                   if (index != 0) finish(index, std::move(end.report));
                 }},
      action);
}

/// The process ends, and with it its channels and its fabric.
void World::finish(std::uint32_t index, session::Report report) {
  Node& node = nodes_[index];
  if (trace_) tell(index, fmt::format("finishes: {}", report.line));
  node.report = std::move(report);
  node.finished = clock_.now();
  ++node.timer;
  data_.withdraw(index);
  close_channels(index, "it ended");
}

void World::tell(std::uint32_t index, const std::string& text) const {
  if (trace_)
    trace_(fmt::format("{:9.3f} ms  n{}: {}",
                       static_cast<double>(clock_.now().time_since_epoch().count()) / 1e6, index + 1, text));
}

}  // namespace netcheck::sim
