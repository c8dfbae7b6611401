// See rounds.h. A round is one matching, measured as two one-way half-rounds; every rail of every pair at
// once.
#include "judge/rounds.h"

#include <algorithm>
#include <map>

#include "judge/blame.h"
#include "judge/evidence.h"
#include "judge/groups.h"
#include "judge/matching.h"
#include "judge/pairs.h"
#include "judge/standing.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

using std::chrono::milliseconds;

/// What a half-round shall take at the median rate of the edges so far: long against bursts, and a node at a
/// tenth still ends within the allowance.
constexpr Ns kAtMedian = milliseconds(80);
/// The same at the gate's rate, which is the slowest node's when the gate failed.
constexpr Ns kAtGate = milliseconds(160);
/// When rounds only compare, or bytes do not arrive, they are short; shorter still, and what a shaper or a
/// switch lets through at first reads as 2 % of the rate.
constexpr Ns kBrief = milliseconds(100);
/// A slow node at a tenth of the median rate, and some more.
constexpr int kPatience = 11;
constexpr Ns kConstant = milliseconds(300);
/// Where paths are dead, waiting longer tells nothing: retransmission timers are 200 ms and double.
constexpr Ns kFindAllowance = milliseconds(700);
constexpr Ns kLeastAllowance = milliseconds(250);
/// Fresh teams after an abandoned fabric, within a round's share of the time.
constexpr Ns kReform = milliseconds(120);
/// On a network of unknown rate: at 10 Mb/s both transfers take 420 ms.
constexpr std::uint64_t kSounding = 256u << 10;
/// A half-round that took less at the median rate says too little beside others of kAtMedian: of three nodes,
/// one late moment in 13 ms read 0.87 of the rate, and the spread of four good ways then hid a node at a
/// tenth.
constexpr Ns kTooQuick = milliseconds(30);
/// A figure over less is, as a pace, taken for no more than so long would have brought.
constexpr Ns kMoment = std::chrono::microseconds(500);
constexpr int kMostRepeats = 2;
constexpr std::uint32_t kWarmup = 1, kIterations = 4, kMostIterations = 64;
constexpr std::uint64_t kGrain = 64, kLeastBytes = 4u << 10;
/// Rounds 0 and 1 are fixed, and where a group is odd part of round 2; up to three are spent on suspects.
constexpr std::uint32_t kFixedRounds = 2, kMostRounds = 5;

/// The last Measure of the rounds and what came of it; nullptr before the first.
const Done* last_round(const History& history) {
  const Done* last = nullptr;
  for (const Done& done : history.done)
    if (const Measure* measure = measure_of(done); measure != nullptr && measure->phase == Phase::blame)
      last = &done;
  return last;
}

bool forming_twice(const History& history) {
  const std::size_t count = history.done.size();
  const auto vain = [&](const Done& done) { return form_of(done) != nullptr && stalled(done); };
  return count >= 2 && vain(history.done[count - 1]) && vain(history.done[count - 2]);
}

struct Rates {
  std::vector<double> median;  ///< by rail, of the edges that count so far, or keep_pace; 0: none
  bool dead = false;           ///< some edge is known to carry nothing
};

/// What the next size goes by. A moment says little of a rate: 4 KiB that were there before the clock began
/// have read as 400 Gb/s of a link of 100 Mb/s, and the next messages never ended.
double pace_of(const EdgeFigure& edge) {
  const double part = edge.timed <= Ns::zero() ? 1 : std::chrono::duration<double>(edge.timed) / kMoment;
  return edge.rate->bits_per_second * std::min(part, 1.0);
}

Rates rates_of(const Standings& standings) {
  std::vector<std::vector<double>> by_lane(standings.lanes());
  Rates rates;
  for (const EdgeFigure& edge : standings.edges()) {
    if (!edge.rate || edge.from.lane >= by_lane.size()) continue;
    if (edge.rate->bits_per_second <= 0)
      rates.dead = true;
    else if (!edge.partial)
      by_lane[edge.from.lane].push_back(pace_of(edge));
  }
  for (const auto& lane : by_lane)
    rates.median.push_back(median(lane).value_or(0));
  return rates;
}

struct Size {
  std::uint64_t bytes = 0;
  std::uint32_t iterations = kIterations;
};

Size size_for(const Plan& plan, double bits_per_second, Ns target) {
  Size size;
  const double seconds = std::chrono::duration<double>(target).count();
  const double total = bits_per_second / 8 * seconds;
  const auto cap = static_cast<double>(byte_cap(plan));
  const double each = std::clamp(total / (kIterations + kWarmup), static_cast<double>(kLeastBytes), cap);
  size.bytes = static_cast<std::uint64_t>(each) / kGrain * kGrain;
  if (each >= cap)
    size.iterations = static_cast<std::uint32_t>(
        std::clamp(total / cap - kWarmup, double{kIterations}, double{kMostIterations}));
  return size;
}

/// Everything that the next step of the rounds is made from.
struct Situation {
  const Plan& plan;
  const History& history;
  const Gate& gate;
  Need need;
  Ns left;
  std::vector<EdgeFigure> edges;
  Standings standings;
  Rates rates;
  TeamIndex teams;
};

/// When all ways of the last half-round are faster than most until then, their rate is what sizes go by. Of
/// three nodes with the first at a hundredth, the one way that it is not on is else measured with so few
/// bytes that its figure, over too short a time, counts for nothing.
void keep_pace(Situation& now) {
  const Done* last = last_round(now.history);
  if (last == nullptr) return;
  const Matching pairs = pairs_of(*measure_of(*last), now.teams);
  std::map<std::uint16_t, double> slowest;
  for (const EdgeFigure& edge : now.edges) {
    if (edge.round != measure_of(*last)->round) continue;
    if (std::ranges::find(pairs, Pair{edge.from.node, edge.to.node}) == pairs.end()) continue;
    const double rate = edge.rate && !edge.partial ? pace_of(edge) : 0;
    const auto [found, first] = slowest.try_emplace(edge.from.lane, rate);
    if (!first) found->second = std::min(found->second, rate);
  }
  for (const auto& [lane, rate] : slowest)
    if (lane < now.rates.median.size()) now.rates.median[lane] = std::max(now.rates.median[lane], rate);
}

bool in_vain(const Situation& now) {
  return now.need == Need::find || now.rates.dead;
}

/// Nobody is looked for.
bool only_compares(const Situation& now) {
  return now.need == Need::compare && !now.rates.dead;
}

/// The lanes on which a team's pairs are measured: those that all nodes have.
std::vector<std::uint16_t> lanes_of(const Plan& plan, const Team& team) {
  if (plan.teaming == Teaming::per_lane) return {team.ranks.front().lane};
  std::vector<std::uint16_t> lanes;
  for (std::uint32_t lane = 0; lane < rails(plan); ++lane)
    lanes.push_back(static_cast<std::uint16_t>(lane));
  return lanes;
}

/// bits/s of one way on a lane of this team, of the fastest, so that none is brief; 0: not known.
double median_on(const Situation& now, const Team& team) {
  double fastest = 0;
  for (const std::uint16_t lane : lanes_of(now.plan, team))
    if (lane < now.rates.median.size()) fastest = std::max(fastest, now.rates.median[lane]);
  return fastest;
}

/// The same by the gate. Over all lanes of a node it tells only what they carry together.
double gate_on(const Situation& now, const Team& team) {
  const auto figures = figures_of(now.plan, now.history);
  if (!figures) return 0;
  if (now.plan.teaming == Teaming::over_lanes) return figures->busbw.bits_per_second / rails(now.plan);
  const std::uint16_t lane = team.ranks.front().lane;
  return lane < figures->per_rail.size() ? figures->per_rail[lane].bits_per_second : 0;
}

Size size_on(const Situation& now, const Team& team) {
  if (const double median = median_on(now, team); median > 0)
    return size_for(now.plan, median, in_vain(now) || now.need == Need::compare ? kBrief : kAtMedian);
  if (const double rate = gate_on(now, team); rate > 0)
    return size_for(now.plan, rate, now.need == Need::blame ? kAtGate : kBrief);
  return {.bytes = std::min(kSounding, byte_cap(now.plan) / kGrain * kGrain), .iterations = 1};
}

/// Edges of the pairs inside this team, on each lane that all nodes have.
std::vector<Edge> edges_in(const Plan& plan, const Team& team,
                           const std::map<std::uint32_t, std::uint32_t>& sends_to) {
  std::map<Rank, std::uint32_t> position;
  for (std::uint32_t rank = 0; rank < team.ranks.size(); ++rank)
    position[team.ranks[rank]] = rank;
  std::vector<Edge> edges;
  for (const std::uint16_t lane : lanes_of(plan, team))
    for (const auto& [from, to] : sends_to) {
      const auto sender = position.find({from, lane}), receiver = position.find({to, lane});
      if (sender != position.end() && receiver != position.end())
        edges.push_back({.from = sender->second, .to = receiver->second});
    }
  return edges;
}

/// The pairs as batches on the joined teams, one per team that has a pair.
std::vector<Batch> batches_for(const Situation& now, const Form& form, const Matching& pairs) {
  std::map<std::uint32_t, std::uint32_t> sends_to;
  for (const Pair& pair : pairs)
    sends_to[pair.from] = pair.to;
  std::vector<Batch> batches;
  std::uint32_t id = free_batch_id(now.history);
  for (const Team& team : form.teams) {
    auto edges = edges_in(now.plan, team, sends_to);
    if (edges.empty()) continue;
    const Size size = size_on(now, team);
    batches.push_back({.id = id,
                       .team = team.id,
                       .root = 0,
                       .op = Op::transfer,
                       .type = now.plan.type,
                       .bytes = size.bytes,
                       .warmup = kWarmup,
                       .iterations = size.iterations,
                       .edges = std::move(edges),
                       .algorithm = "",
                       .seed = now.plan.seed + id,
                       .verify = true});
    ++id;
  }
  return batches;
}

/// Rounds after this one that are needed to resolve one fault: in an odd group somebody was idle in each; in
/// groups suspects meet others.
std::uint32_t rounds_due(const Plan& plan, std::uint32_t round) {
  const auto nodes = static_cast<std::uint32_t>(plan.nodes.size());
  const std::uint32_t needed =
      nodes == 2 ? 1 : kFixedRounds + (nodes % 2 == 1 || group_count(plan) > 1 ? 1 : 0);
  return needed > round + 1 ? needed - round - 1 : 0;
}

/// The wait of a half-round: long enough for a node at a tenth, but so that the rounds that are still due
/// fit.
std::optional<Ns> round_allowance(const Situation& now, std::uint32_t round, bool back) {
  const std::uint32_t this_round = back ? 1 : 2;
  const std::uint32_t rounds = rounds_due(now.plan, round);
  const std::uint32_t due = this_round + 2 * rounds;
  const Ns wanted = in_vain(now)                ? kFindAllowance
                    : now.need == Need::compare ? kBrief * kPatience + kConstant
                                                : kAtMedian * kPatience + kConstant;
  const Ns reform = now.plan.teaming == Teaming::over_lanes && in_vain(now) ? now.plan.forming : kReform;
  const Ns share = (now.left - kAnswering) / due - reform;
  return allow(std::min(wanted, std::max(share, kLeastAllowance)), kLeastAllowance, now.left);
}

/// A half-round whose size was a guess (the gate's rate is its slowest node's) and far too small: once the
/// rate is known, it is repeated.
bool too_quick(const Situation& now, const Done& last) {
  const Measure& measure = *measure_of(last);
  const auto same_half = [&](const Done& done) {
    const Measure* other = measure_of(done);
    return other != nullptr && other->phase == Phase::blame && other->round == measure.round &&
           other->back == measure.back;
  };
  if (stalled(last) || std::ranges::count_if(now.history.done, same_half) > kMostRepeats) return false;
  return std::ranges::any_of(measure.batches, [&](const Batch& batch) {
    const auto team = now.teams.find(batch.team);
    if (team == now.teams.end()) return false;
    const double median = median_on(now, *team->second);
    if (median <= 0) return false;
    const double seconds = static_cast<double>(batch.bytes) * 8 / median * batch.iterations;
    return seconds < std::chrono::duration<double>(kTooQuick).count() &&
           size_on(now, *team->second).bytes > 2 * batch.bytes;
  });
}

struct Wanted {
  std::uint32_t round = 0;
  bool back = false;
  Matching pairs;
  int which = 0;  ///< partition whose teams contain the pairs
};

/// The partition of the first two rounds: the gate's last.
int home(const Situation& now) {
  return group_count(now.plan) > 1 ? now.gate.which : 0;
}

/// Pairs for a round of suspects: inside the other partition, where they meet others; else at home.
std::optional<Wanted> suspects_round(const Situation& now, std::uint32_t round) {
  const int other = group_count(now.plan) > 1 ? 1 - home(now) : 0;
  for (const int which : {other, home(now)}) {
    Wanted wanted{.round = round,
                  .back = false,
                  .pairs = suspects_with_good(now.plan, now.standings, which),
                  .which = which};
    if (!wanted.pairs.empty()) return wanted;
    if (other == home(now)) break;
  }
  return std::nullopt;
}

/// One slow pair alone, when that would tell path collisions from a bad link.
std::optional<Wanted> alone_round(const Situation& now, std::uint32_t round) {
  auto pair = worth_alone(now.plan, now.standings, decode(now.plan, now.edges));
  // Or a way that was under min_per_pair once.
  if (const auto way = short_way(now.plan, now.edges); !pair && way && way->times < 2)
    pair = Pair{way->from, way->to};
  if (!pair) return std::nullopt;
  for (const int which : {home(now), 1 - home(now)})
    if (inside_groups(now.plan, which, {*pair}))
      return Wanted{.round = round, .back = false, .pairs = {*pair}, .which = which};
  return std::nullopt;
}

/// Whoever was idle meets its second partner, whether or not anybody is suspect: of three nodes the first is
/// on all ways until then, and when it is slow nothing tells that they could be faster. Suspects use the
/// round too.
std::optional<Wanted> left_over_round(const Situation& now, std::uint32_t round) {
  Wanted wanted{.round = round, .back = false, .pairs = left_over(now.plan, home(now)), .which = home(now)};
  if (wanted.pairs.empty()) return std::nullopt;
  if (only_compares(now)) return wanted;
  wanted.pairs = suspects_with_good(now.plan, now.standings, wanted.which, std::move(wanted.pairs));
  return wanted;
}

/// Where the gate failed and all that was tried is fine: the gate's ways that were not. A slow way between
/// two nodes that are fine with their other partners lies on one of those, or nowhere.
std::optional<Wanted> ring_round(const Situation& now, std::uint32_t round) {
  const auto slow = [&](const Path& path) { return now.standings.slow(path); };
  if (now.need != Need::blame || std::ranges::any_of(now.standings.paths(), slow)) return std::nullopt;
  Wanted wanted{.round = round,
                .back = false,
                .pairs = untried_ring(now.plan, now.standings, home(now)),
                .which = home(now)};
  if (wanted.pairs.empty()) return std::nullopt;
  return wanted;
}

std::optional<Wanted> new_round(const Situation& now, std::uint32_t round) {
  if (round < kFixedRounds) {
    Wanted wanted{.round = round, .back = false, .pairs = {}, .which = home(now)};
    wanted.pairs = round == 0 ? neighbours(now.plan, wanted.which) : across(now.plan, wanted.which);
    if (!wanted.pairs.empty()) return wanted;
    return std::nullopt;
  }
  if (round == kFixedRounds)
    if (auto wanted = left_over_round(now, round)) return wanted;
  if (only_compares(now)) return std::nullopt;
  if (round < kMostRounds)
    if (auto wanted = suspects_round(now, round)) return wanted;
  if (round < kMostRounds)
    if (auto wanted = ring_round(now, round)) return wanted;
  return alone_round(now, round);
}

std::optional<Wanted> wanted_next(const Situation& now) {
  const Done* last = last_round(now.history);
  if (last == nullptr) return new_round(now, 0);
  const Measure& measure = *measure_of(*last);
  Wanted same{.round = measure.round,
              .back = measure.back,
              .pairs = pairs_of(measure, now.teams),
              .which = home(now)};
  if (!inside_groups(now.plan, same.which, same.pairs)) same.which = 1 - same.which;
  if (too_quick(now, *last)) return same;
  if (measure.back) return new_round(now, measure.round + 1);
  same.back = true;
  for (Pair& pair : same.pairs)
    std::swap(pair.from, pair.to);
  return same;
}

}  // namespace

const Form* joined(const History& history) {
  const Form* form = nullptr;
  for (const Done& done : history.done) {
    if (form_of(done) != nullptr) form = form_of(done);
    if (stalled(done)) form = nullptr;
  }
  return form;
}

bool same_teams(const Form& form, const std::vector<Team>& teams) {
  return form.teams.size() == teams.size() &&
         std::ranges::equal(form.teams, teams, {}, &Team::ranks, &Team::ranks);
}

std::optional<Ns> allow(Ns wanted, Ns least, Ns left) {
  const Ns room = left - kAnswering;
  if (room < least) return std::nullopt;
  return std::min(wanted, room);
}

std::uint32_t free_team_id(const History& history) {
  std::uint32_t id = 1;
  for (const Done& done : history.done)
    if (const Form* form = form_of(done))
      for (const Team& team : form->teams)
        id = std::max(id, team.id + 1);
  return id;
}

std::uint32_t free_batch_id(const History& history) {
  std::uint32_t id = 1;
  for (const Done& done : history.done)
    if (const Measure* measure = measure_of(done))
      for (const Batch& batch : measure->batches)
        id = std::max(id, batch.id + 1);
  return id;
}

Step next_round(const Plan& plan, const History& history, const Gate& gate, Need need, Ns left) {
  if (forming_twice(history)) return Stop{};
  auto edges = edges_of(plan, history);
  Standings standings(plan, edges, kBlameFraction);
  Rates rates = rates_of(standings);
  Situation now{.plan = plan,
                .history = history,
                .gate = gate,
                .need = need,
                .left = left,
                .edges = std::move(edges),
                .standings = std::move(standings),
                .rates = std::move(rates),
                .teams = teams_of(history)};
  keep_pace(now);
  const auto wanted = wanted_next(now);
  if (!wanted) return Stop{};
  const auto teams = partition(plan, wanted->which, free_team_id(history));
  const Form* form = joined(history);
  if (form == nullptr || !same_teams(*form, teams)) {
    if (left < plan.forming + kAnswering + kLeastAllowance) return Stop{};
    return Form{.phase = Phase::blame, .teams = teams};
  }
  const auto allowance = round_allowance(now, wanted->round, wanted->back);
  if (!allowance) return Stop{};
  Measure measure{.phase = Phase::blame,
                  .batches = batches_for(now, *form, wanted->pairs),
                  .allowance = *allowance,
                  .round = wanted->round,
                  .back = wanted->back};
  if (measure.batches.empty()) return Stop{};
  return measure;
}

}  // namespace netcheck::judge
