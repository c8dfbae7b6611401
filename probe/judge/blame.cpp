// See blame.h: from standings to culprits, or to one clause that says why nobody can be named.
#include "judge/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "judge/groups.h"
#include "judge/names.h"
#include "judge/standing.h"

namespace netcheck::judge {
namespace {

/// More slow links than this beside nodes that are all fine are no broken cables but shared uplinks.
constexpr std::size_t kFewLinks = 2;

/// "" for the only rail, else " on eth1".
std::string on_rail(const Plan& plan, std::uint32_t node, std::uint32_t lane) {
  if (rails(plan) < 2) return "";
  return " on " + printable(plan.nodes[node].lanes[lane], 32);
}

/// A node's isolated directions on one rail.
struct Fault {
  bool transmit = false, receive = false;
  double best = 0;
  [[nodiscard]] bool any() const { return transmit || receive; }
  [[nodiscard]] bool same_ways(const Fault& other) const {
    return transmit == other.transmit && receive == other.receive;
  }
  [[nodiscard]] Direction direction() const {
    if (transmit && receive) return Direction::both;
    return transmit ? Direction::transmit : Direction::receive;
  }
};

Fault fault_of(const Standings& standings, std::uint32_t node, std::uint32_t lane) {
  const Standing& transmit = standings.of(node, Direction::transmit, lane);
  const Standing& receive = standings.of(node, Direction::receive, lane);
  Fault fault{.transmit = transmit.word == Word::isolated, .receive = receive.word == Word::isolated};
  if (fault.transmit) fault.best = transmit.average;
  if (fault.receive) fault.best = std::max(fault.best, receive.average);
  return fault;
}

/// Only nodes that are slow with two different partners who are fine: with one partner it could be the way
/// between them.
void name_nodes(const Plan& plan, const Standings& standings, std::vector<Culprit>& culprits) {
  for (std::uint32_t node = 0; node < plan.nodes.size(); ++node) {
    std::vector<Fault> faults;
    for (std::uint32_t lane = 0; lane < standings.lanes(); ++lane)
      faults.push_back(fault_of(standings, node, lane));
    const bool alike = std::ranges::all_of(
        faults, [&](const Fault& fault) { return fault.any() && fault.same_ways(faults.front()); });
    if (alike) {
      const double best = std::ranges::max_element(faults, {}, &Fault::best)->best;
      culprits.push_back({.node = node,
                          .peer = std::nullopt,
                          .lane = std::nullopt,
                          .direction = faults.front().direction(),
                          .measured = {best},
                          .isolated = true});
      continue;
    }
    for (std::uint32_t lane = 0; lane < faults.size(); ++lane)
      if (faults[lane].any())
        culprits.push_back({.node = node,
                            .peer = std::nullopt,
                            .lane = static_cast<std::uint16_t>(lane),
                            .direction = faults[lane].direction(),
                            .measured = {faults[lane].best},
                            .isolated = true});
  }
}

/// It is far slower than what exonerates its nodes: a node all of whose ways are alike, by chance some above
/// the bar and some below, has no bad link.
bool stands_out(const Standings& standings, const Path& path) {
  return path.best <= kVerySlow * std::min(standings.of(path.from, Direction::transmit, path.lane).best,
                                           standings.of(path.to, Direction::receive, path.lane).best);
}

/// Slow ways between nodes that are both fine with others.
std::vector<const Path*> slow_links(const Standings& standings) {
  std::vector<const Path*> links;
  for (const Path& path : standings.paths())
    if (standings.very_slow(path) && standings.cleared(path) && stands_out(standings, path))
      links.push_back(&path);
  return links;
}

/// Each named link once: over all rails where all are slow, else rail by rail.
void add_links(const Standings& standings, const std::vector<const Path*>& links,
               std::vector<Culprit>& culprits) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const Path*>> by_way;
  for (const Path* link : links)
    by_way[{link->from, link->to}].push_back(link);
  for (const auto& [way, lanes] : by_way) {
    Culprit culprit{.node = way.first,
                    .peer = way.second,
                    .lane = std::nullopt,
                    .direction = Direction::transmit,
                    .measured = {0},
                    .isolated = false};
    if (lanes.size() == standings.lanes()) {
      for (const Path* link : lanes)
        culprit.measured = std::max(culprit.measured, Rate{link->average});
      culprits.push_back(culprit);
      continue;
    }
    for (const Path* link : lanes) {
      culprit.lane = link->lane;
      culprit.measured = {link->average};
      culprits.push_back(culprit);
    }
  }
}

/// Slow links are named where they are few. Many are no broken cables.
void name_links(const Standings& standings, Blame& blame) {
  const auto links = slow_links(standings);
  if (links.size() <= kFewLinks * standings.lanes()) return add_links(standings, links, blame.culprits);
  if (!blame.culprits.empty()) return;
  blame.oversubscribed = true;
  blame.explanation =
      fmt::format("{} slow ways between nodes that are fine with others: shared uplinks or path collisions",
                  links.size());
}

/// A way that was slow while others ran and is fine with nothing else running. With `carried` bytes among the
/// others it has to share; with none it was not there for a while, whoever else was running.
const Path* fine_alone(const Standings& standings, bool carried) {
  for (const Path& path : standings.paths())
    if (path.alone >= 0 && path.together >= 0 && (path.together > 0) == carried &&
        standings.slow(path, path.together) && !standings.slow(path, path.alone) &&
        path.alone > 1.5 * path.together)
      return &path;
  return nullptr;
}

void say_collided(const Plan& plan, const Path& way, Blame& blame) {
  blame.found = true;
  blame.oversubscribed = true;
  blame.explanation =
      fmt::format("{}>{} slow with others ({}), fine alone ({}): shared uplinks or path collisions",
                  node_name(plan, way.from), node_name(plan, way.to), format_rate({way.together}),
                  format_rate({way.alone}));
}

bool carries_nothing(const Path& path) {
  return path.best <= 0;
}

/// One lost packet when a connection opens costs a second, longer than a round waits.
bool seen_dead_twice(const std::vector<Path>& paths) {
  std::map<std::uint32_t, std::uint32_t> times;
  for (const Path& path : paths) {
    if (!carries_nothing(path)) continue;
    times[path.from] += path.times;
    times[path.to] += path.times;
  }
  return std::ranges::any_of(times, [](const auto& node) { return node.second >= 2; });
}

/// Zero is a finding where others carry bytes at the time. With two nodes there are no others: that the gate
/// brought some is all there can be.
void set_silence(const Plan& plan, const Standings& standings, Blame& blame) {
  const auto& paths = standings.paths();
  const bool some = std::ranges::any_of(paths, [](const Path& path) { return path.best > 0; });
  blame.silent = !some && plan.nodes.size() > 2;
  blame.dead = !blame.silent && std::ranges::any_of(paths, carries_nothing);
  blame.dead_for_sure = blame.dead && seen_dead_twice(paths);
}

/// A rail on which most scores are below the site's floor, or nothing arrives. Scores and not edges: one node
/// that is bad both ways makes four of six edges slow among three nodes.
std::optional<std::uint32_t> wide_rail(const Plan& plan, const Standings& standings) {
  if (plan.nodes.size() < 3) return std::nullopt;
  for (std::uint32_t lane = 0; lane < standings.lanes(); ++lane) {
    std::size_t scores = 0, below = 0;
    std::vector<const Bar*> seen;
    for (std::uint32_t node = 0; node < plan.nodes.size(); ++node) {
      const Bar* bar = &standings.bar_of(node, lane);
      if (std::ranges::find(seen, bar) != seen.end()) continue;
      seen.push_back(bar);
      scores += bar->scores;
      below += bar->below_floor;
    }
    // Of each node two; where most of them are not known, what is left does not speak for the fabric.
    if (below * 2 > scores && scores >= plan.nodes.size()) return lane;
  }
  return std::nullopt;
}

/// The node at one end of every way measured; nullopt: the ways have none in common.
std::optional<std::uint32_t> on_all_ways(const Standings& standings) {
  const auto& paths = standings.paths();
  const auto on_all = [&](std::uint32_t node) {
    return std::ranges::all_of(paths, [&](const Path& path) { return path.from == node || path.to == node; });
  };
  for (const std::uint32_t node : {paths.front().from, paths.front().to})
    if (on_all(node)) return node;
  return std::nullopt;
}

/// Most ways of a rail are slow. Where one node is on all of them, it or the fabric: the rounds ended before
/// its partners met.
void say_wide(const Plan& plan, const Standings& standings, std::uint32_t lane, Blame& blame) {
  if (const auto node = on_all_ways(standings)) {
    const std::string name = node_name(plan, *node);
    blame.explanation = fmt::format("most paths measured are slow{0}, and {1} is on each: {1} or the fabric",
                                    on_rail(plan, 0, lane), name);
    return;
  }
  blame.fabric_wide = true;
  blame.explanation =
      fmt::format("most paths are slow{}: the fabric or its configuration", on_rail(plan, 0, lane));
}

/// The slowest way for which nobody could be named, in words; empty when there is none.
std::string unresolved(const Plan& plan, const Standings& standings) {
  const Path* worst = nullptr;
  for (const Path& path : standings.paths())
    if (standings.slow(path) && !standings.cleared(path) && (worst == nullptr || path.best < worst->best))
      worst = &path;
  if (worst == nullptr) return {};
  const std::string from = node_name(plan, worst->from), to = node_name(plan, worst->to);
  const bool sender = standings.of(worst->from, Direction::transmit, worst->lane).word != Word::good;
  const bool receiver = standings.of(worst->to, Direction::receive, worst->lane).word != Word::good;
  std::string side;
  if (sender && receiver)
    side = fmt::format("{}'s transmit or {}'s receive", from, to);
  else if (sender)
    side = fmt::format("{}'s transmit or the way between", from);
  else
    side = fmt::format("{}'s receive or the way between", to);
  return fmt::format("{}>{} slow{} ({}): {}", from, to, on_rail(plan, worst->from, worst->lane),
                     format_rate({worst->average}), side);
}

/// Why there is no name, in one clause.
std::string nobody_named(const Plan& plan, const Standings& standings, Rate median) {
  if (std::string why = unresolved(plan, standings); !why.empty()) return why;
  if (const Path* way = fine_alone(standings, false))
    return fmt::format("{}>{} comes and goes: it carried nothing for a while, and {} later",
                       node_name(plan, way->from), node_name(plan, way->to), format_rate({way->alone}));
  return fmt::format("no node stands out: one way, per rail, the median is {}", format_rate(median));
}

/// Median and τ of the first rail of the largest class: what most of the figures were held against.
void set_bar(const Standings& standings, Blame& blame) {
  const auto largest = std::ranges::max_element(standings.bars(), {}, &Bar::scores);
  if (largest == standings.bars().end()) return;
  blame.median = {largest->median};
  blame.threshold = {largest->threshold};
}

}  // namespace

bool Blame::proves() const {
  return fabric_wide || std::ranges::any_of(culprits, &Culprit::isolated);
}

Blame decode(const Plan& plan, const std::vector<EdgeFigure>& edges) {
  Blame blame;
  if (plan.nodes.empty() || rails(plan) == 0 || edges.empty()) return blame;
  const Standings standings(plan, edges, kBlameFraction);
  if (standings.paths().empty()) return blame;
  set_bar(standings, blame);
  set_silence(plan, standings, blame);
  blame.found =
      std::ranges::any_of(standings.paths(), [&](const Path& path) { return standings.slow(path); });
  if (blame.silent) {
    blame.explanation = "no bytes came over any way";
  } else if (const Path* collided = fine_alone(standings, true)) {
    say_collided(plan, *collided, blame);
  } else if (const auto lane = wide_rail(plan, standings)) {
    say_wide(plan, standings, *lane, blame);
  } else {
    name_nodes(plan, standings, blame.culprits);
    name_links(standings, blame);
    if (blame.culprits.empty() && blame.explanation.empty())
      blame.explanation = nobody_named(plan, standings, blame.median);
  }
  return blame;
}

}  // namespace netcheck::judge
