// See matching.h.
#include "judge/matching.h"

#include <algorithm>
#include <set>

#include "judge/groups.h"

namespace netcheck::judge {
namespace {

bool doubted(const Standings& standings, std::uint32_t node, Direction way, std::uint32_t lane) {
  const Word word = standings.of(node, way, lane).word;
  return word == Word::slow || word == Word::unknown;
}

bool suspect(const Standings& standings, std::uint32_t node) {
  for (std::uint32_t lane = 0; lane < standings.lanes(); ++lane)
    for (const Direction way : {Direction::transmit, Direction::receive})
      if (doubted(standings, node, way, lane)) return true;
  return false;
}

/// Doubts about `node` that an edge with `partner` would settle: the partner is proven good the other way.
std::uint32_t settles(const Standings& standings, std::uint32_t node, std::uint32_t partner) {
  std::uint32_t count = 0;
  for (std::uint32_t lane = 0; lane < standings.lanes(); ++lane) {
    if (doubted(standings, node, Direction::transmit, lane) &&
        standings.of(partner, Direction::receive, lane).word == Word::good)
      ++count;
    if (doubted(standings, node, Direction::receive, lane) &&
        standings.of(partner, Direction::transmit, lane).word == Word::good)
      ++count;
  }
  return count;
}

struct Offer {
  std::uint32_t value = 0;
  Pair pair;
};

/// Adds pairs to `matching`; nodes that are in it already are taken.
void match_group(const Standings& standings, const Group& group, Matching& matching) {
  std::vector<Offer> offers;
  for (std::size_t i = 0; i < group.size(); ++i)
    for (std::size_t j = i + 1; j < group.size(); ++j) {
      const std::uint32_t a = group[i], b = group[j];
      if (standings.met(a, b)) continue;
      const std::uint32_t value = settles(standings, a, b) + settles(standings, b, a);
      // Two suspects may clear each other where nobody is proven good: three nodes, one of them bad both
      // ways.
      const bool both = suspect(standings, a) && suspect(standings, b);
      if (value > 0 || both) offers.push_back({value, {a, b}});
    }
  std::ranges::stable_sort(offers, std::ranges::greater{}, &Offer::value);
  std::set<std::uint32_t> taken;
  for (const Pair& pair : matching)
    taken.insert({pair.from, pair.to});
  for (const Offer& offer : offers) {
    if (taken.contains(offer.pair.from) || taken.contains(offer.pair.to)) continue;
    taken.insert({offer.pair.from, offer.pair.to});
    matching.push_back(offer.pair);
  }
}

}  // namespace

Matching neighbours(const Plan& plan, int which) {
  Matching matching;
  for (const Group& group : groups_of(plan, which))
    for (std::size_t i = 0; i + 1 < group.size(); i += 2)
      matching.push_back({group[i], group[i + 1]});
  return matching;
}

Matching across(const Plan& plan, int which) {
  Matching matching;
  for (const Group& group : groups_of(plan, which)) {
    if (group.size() < 3) continue;
    const std::size_t half = (group.size() + 1) / 2;
    for (std::size_t i = 0; i + half < group.size(); ++i)
      matching.push_back({group[i], group[i + half]});
  }
  return matching;
}

Matching left_over(const Plan& plan, int which) {
  Matching matching;
  for (const Group& group : groups_of(plan, which))
    if (group.size() >= 3 && group.size() % 2 == 1)
      matching.push_back({group[group.size() / 2], group.back()});
  return matching;
}

Matching suspects_with_good(const Plan& plan, const Standings& standings, int which, Matching fixed) {
  for (const Group& group : groups_of(plan, which))
    match_group(standings, group, fixed);
  return fixed;
}

Matching untried_ring(const Plan& plan, const Standings& standings, int which) {
  Matching matching;
  for (const Group& group : groups_of(plan, which)) {
    std::set<std::uint32_t> taken;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::uint32_t from = group[i], to = group[(i + 1) % group.size()];
      if (from == to || standings.met(from, to) || taken.contains(from) || taken.contains(to)) continue;
      taken.insert({from, to});
      matching.push_back({from, to});
    }
  }
  return matching;
}

std::optional<Pair> worth_alone(const Plan& plan, const Standings& standings, const Blame& blame) {
  if (blame.dead && !blame.dead_for_sure) {
    const auto dead =
        std::ranges::find_if(standings.paths(), [](const Path& path) { return path.best <= 0; });
    return Pair{dead->from, dead->to};
  }
  if (plan.nodes.size() < 4) return std::nullopt;  // nothing else runs beside one pair of three nodes
  const Path* slowest = nullptr;
  for (const Path& path : standings.paths()) {
    if (path.alone >= 0 || path.together < 0) continue;
    const bool link = standings.cleared(path) && standings.very_slow(path);
    if (!link && !blame.fabric_wide) continue;
    if (slowest == nullptr || path.together < slowest->together) slowest = &path;
  }
  for (const Path& path : standings.paths())
    if (path.alone >= 0 && path.together >= 0) return std::nullopt;  // once is enough
  if (slowest == nullptr) return std::nullopt;
  return Pair{slowest->from, slowest->to};
}

bool inside_groups(const Plan& plan, int which, const Matching& pairs) {
  std::vector<std::size_t> group_of(plan.nodes.size(), SIZE_MAX);
  const auto groups = groups_of(plan, which);
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (const std::uint32_t node : groups[group])
      group_of[node] = group;
  return std::ranges::all_of(pairs, [&](const Pair& pair) {
    return pair.from < group_of.size() && pair.to < group_of.size() &&
           group_of[pair.from] == group_of[pair.to];
  });
}

}  // namespace netcheck::judge
