// Drawing a scenario. The shares of the kinds are even; sizes and rates spread over orders of magnitude.
#include "scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "dice.h"

namespace netcheck::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, static_cast<std::size_t>(kLastKind) + 1> kNames = {
    "none",     "late",     "absent",    "crash",        "freeze",      "hiccup",      "starved",
    "crowded",  "lacking",  "cut_data",  "cut_all",      "hang_open",   "hang_invite", "hang_join",
    "hang_run", "die_open", "die_join",  "die_run",      "refuse_open", "refuse_join", "slow_node",
    "slow_tx",  "slow_rx",  "slow_rail", "slow_rail_tx", "slow_link",   "two_slow",    "unlike"};

/// Between GPUs of a node: far above any network.
constexpr double kInside = 4e12;

/// What a site asks for: a fraction of the nominal rate over all rails.
constexpr double kAsked = 0.8;

/// One rail of R at factor f leaves (R − 1 + f) / R of a node: below kAsked − 0.05 for f below this.
double slowest_rail_that_shows(std::uint16_t rails) {
  return 1 - rails * (1 - kAsked + 0.05);
}

/// What a protocol that gives way has of a rail of which others take a part: half of what they leave where
/// they take half.
double left_beside(double taken) {
  return (1 - taken) * (1 - taken);
}

void draw_fault(Scenario& scenario, Dice& dice) {
  Fault& fault = scenario.fault;
  fault.kind = static_cast<Kind>(dice.pick(static_cast<std::uint32_t>(kLastKind) + 1));
  fault.node = dice.pick(scenario.nodes);
  fault.other = (fault.node + dice.pick(1, scenario.nodes - 1)) % scenario.nodes;
  fault.at = dice.time(milliseconds(0), milliseconds(3'500));
  fault.factor = dice.real(0.08, 0.7);
  switch (fault.kind) {
    case Kind::late:
      fault.at = dice.time(milliseconds(200), milliseconds(2'300));
      scenario.starts[fault.node] = fault.at;
      break;
    case Kind::hiccup:
      fault.lasts = dice.time(milliseconds(20), milliseconds(2'000));
      fault.halts = Dice(~scenario.seed).chance(0.5);  // of its own: all else stays what the seed says
      break;
    case Kind::starved:
      fault.factor = dice.real(0.02, 0.95);
      break;
    case Kind::lacking:
      fault.factor = dice.real(0.002, 0.95);
      break;
    case Kind::crowded:
      fault.factor = dice.real(0.05, 0.98);
      fault.inward = dice.chance(0.5);
      break;
    case Kind::hang_run:
    case Kind::die_run:
      fault.call = dice.pick(1, 5);
      break;
    case Kind::slow_rail:
    case Kind::slow_rail_tx:
      scenario.rails = 2;
      fault.lane = static_cast<std::uint16_t>(dice.pick(scenario.rails));
      fault.factor = dice.real(0.08, slowest_rail_that_shows(scenario.rails));
      break;
    default:
      break;
  }
}

/// By dice of its own: all else stays what the seed says.
void draw_hardware(Scenario& scenario) {
  Dice dice(scenario.seed + (std::uint64_t{1} << 32));
  scenario.rdma = dice.chance(0.5);
  if (dice.chance(0.3)) scenario.liar = dice.pick(scenario.nodes);
  if (dice.chance(0.2)) scenario.blind = dice.pick(scenario.nodes);
  Policy& policy = scenario.policy;
  for (const Flaw flaw : kAllFlaws)
    policy.findings.of(flaw) = static_cast<Weight>(dice.pick(3));
  if (!scenario.rdma || !policy.site_min || !dice.chance(0.5)) return;
  policy.site_min.reset();  // the same, as a part of the limit
  policy.min.reset();
  policy.min_fraction = kAsked;
}

/// By dice of its own: all else stays what the seed says. NCCL sees nothing of what others do on its devices.
void draw_teaming(Scenario& scenario) {
  Dice dice(scenario.seed + (std::uint64_t{1} << 33));
  scenario.policy.fabric = "ucx";
  scenario.over_lanes = dice.chance(0.3) && scenario.fault.kind != Kind::crowded;
  if (!scenario.over_lanes) return;
  scenario.policy.fabric = "nccl";
  scenario.policy.max_world = dice.pick(2, 128);
  if (scenario.fault.kind == Kind::slow_rail || scenario.fault.kind == Kind::slow_rail_tx) return;
  const auto lanes = static_cast<std::uint16_t>(1U << dice.pick(4));  // 1, 2, 4, 8
  const double factor = static_cast<double>(lanes) / std::exchange(scenario.rails, lanes);
  for (auto* threshold : {&scenario.policy.min, &scenario.policy.site_min})
    if (*threshold) (*threshold)->bits_per_second *= factor;
}

}  // namespace

std::string_view name(Kind kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

Scenario draw(std::uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.nodes = static_cast<std::uint32_t>(dice.logarithmic(4, 64.99));
  scenario.rails = static_cast<std::uint16_t>(dice.pick(1, 2));
  scenario.rate = dice.logarithmic(200e6, 400e9);
  // Fast networks have short latencies: at most a megabit is on the way.
  const Ns longest = Ns(static_cast<std::int64_t>(1e6 / scenario.rate * 1e9));
  scenario.latency = dice.time(microseconds(2), std::min<Ns>(longest, microseconds(200)));
  scenario.noise = dice.real(0, 0.05);
  scenario.strangers = dice.chance(0.2);
  scenario.wire = dice.chance(0.05);
  for (std::uint32_t node = 0; node < scenario.nodes; ++node) {
    scenario.starts.push_back(dice.time(milliseconds(0), milliseconds(150)));
    scenario.clocks.push_back(dice.time(std::chrono::seconds(1), std::chrono::hours(1'000)));
  }
  draw_fault(scenario, dice);
  const double nominal = scenario.rate * scenario.rails;
  if (dice.chance(0.8) || scenario.slow_fault()) {
    scenario.policy.site_min = Rate{kAsked * nominal};
    scenario.policy.min = scenario.policy.site_min;
  }
  draw_hardware(scenario);
  draw_teaming(scenario);
  return scenario;
}

bool Scenario::slow_fault() const {
  return fault.kind >= Kind::slow_node && fault.kind <= Kind::two_slow;
}

double Scenario::path(Rank from, Rank to) const {
  if (from.node == to.node) return kInside;
  const bool out = from.node == fault.node, in = to.node == fault.node;
  bool slow = false;
  switch (fault.kind) {
    case Kind::lacking:
    case Kind::slow_node:
      slow = out || in;
      break;
    case Kind::slow_tx:
      slow = out;
      break;
    case Kind::slow_rx:
      slow = in;
      break;
    case Kind::slow_rail:
      slow = (out || in) && from.lane == fault.lane;
      break;
    case Kind::slow_rail_tx:
      slow = out && from.lane == fault.lane;
      break;
    case Kind::slow_link:
      slow = out && to.node == fault.other;
      break;
    case Kind::two_slow:
      slow = out || in || from.node == fault.other || to.node == fault.other;
      break;
    default:
      break;
  }
  const double taken = std::max(others(from.node, false), others(to.node, true));
  return (slow ? rate * fault.factor : rate) * runs(from.node) * runs(to.node) * left_beside(taken);
}

double Scenario::others(std::uint32_t node, bool inward) const {
  const bool here = fault.kind == Kind::crowded && fault.node == node && fault.inward == inward;
  return here ? fault.factor : 0;
}

Lack Scenario::lack(std::uint32_t node) const {
  return fault.kind == Kind::lacking && fault.node == node ? Lack::tcp_memory : Lack::nothing;
}

double Scenario::runs(std::uint32_t node) const {
  return fault.kind == Kind::starved && fault.node == node ? fault.factor : 1;
}

std::string Scenario::describe() const {
  return fmt::format(
      "seed {}: {} nodes, {} {} of {}, latency {} us, noise {:.1f} %, min {}: {} at n{}{} "
      "(factor {:.2f}, at {}, call {}, lasts {}{}){}{}",
      seed, nodes, rails, over_lanes ? "lanes in one team" : "rails", format_rate({rate}),
      latency.count() / 1000, noise * 100, policy.min ? format_rate(*policy.min) : "none", name(fault.kind),
      fault.node + 1,
      fault.kind == Kind::slow_link || fault.kind == Kind::two_slow ? fmt::format(" and n{}", fault.other + 1)
                                                                    : "",
      fault.factor, format_duration(fault.at), fault.call, format_duration(fault.lasts),
      fault.halts    ? ", data too"
      : fault.inward ? ", inward"
                     : "",
      strangers ? ", strangers" : "", wire ? ", over the wire" : "");
}

}  // namespace netcheck::sim
