// See rounds.h. A round is one matching, measured as two one-way half-rounds; every rail of every pair at
// once.
#include "judge/rounds.h"

#include <algorithm>
#include <map>

#include "judge/blame.h"
#include "judge/evidence.h"
#include "judge/groups.h"
#include "judge/inside.h"
#include "judge/matching.h"
#include "judge/pairs.h"
#include "judge/standing.h"
#include "judge/transfers.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

using std::chrono::milliseconds;

/// A slow node at a tenth of the median rate, and some more.
constexpr int kPatience = 11;
constexpr Ns kConstant = milliseconds(300);
/// Where paths are dead, waiting longer tells nothing: retransmission timers are 200 ms and double.
constexpr Ns kFindAllowance = milliseconds(700);
constexpr Ns kLeastAllowance = milliseconds(250);
/// Fresh teams after an abandoned fabric, within a round's share of the time.
constexpr Ns kReform = milliseconds(120);
/// A half-round that took less at the median rate says too little beside others of kAtMedian: of three nodes,
/// one late moment in 13 ms read 0.87 of the rate, and the spread of four good ways then hid a node at a
/// tenth.
constexpr Ns kTooQuick = milliseconds(30);
constexpr int kMostRepeats = 2;
/// Rounds 0 and 1 are fixed, and where a group is odd part of round 2; up to three are spent on suspects.
constexpr std::uint32_t kFixedRounds = 2, kMostRounds = 5;

bool forming_twice(const History& history) {
  const std::size_t count = history.done.size();
  const auto vain = [&](const Done& done) { return form_of(done) != nullptr && stalled(done); };
  return count >= 2 && vain(history.done[count - 1]) && vain(history.done[count - 2]);
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
    return other != nullptr && other->phase == Phase::blame && !other->inside &&
           other->round == measure.round && other->back == measure.back;
  };
  if (stalled(last) || std::ranges::count_if(now.history.done, same_half) > kMostRepeats) return false;
  return std::ranges::any_of(measure.batches, [&](const Batch& batch) {
    const auto team = now.teams.find(batch.team);
    if (team == now.teams.end()) return false;
    const double median = median_on(now, *team->second);
    if (median <= 0) return false;
    const double seconds = static_cast<double>(batch.bytes) * 8 / median * batch.iterations;
    return seconds < std::chrono::duration<double>(kTooQuick).count() &&
           bytes_on(now, *team->second) > 2 * batch.bytes;
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

/// Its teams are joined, or there is time to form them for a round.
bool in_reach(const Situation& now, int which) {
  const Form* form = joined(now.history);
  if (form != nullptr && same_teams(*form, partition(now.plan, which, 0))) return true;
  return now.left >= now.plan.forming + kAnswering + 2 * (kLeastAllowance + kAnswering);
}

/// Pairs for a round of suspects: inside the other partition, where they meet others; else, or where time is
/// too short for its teams, at home.
std::optional<Wanted> suspects_round(const Situation& now, std::uint32_t round) {
  const int other = group_count(now.plan) > 1 ? 1 - home(now) : 0;
  for (const int which : {other, home(now)}) {
    if (which != home(now) && !in_reach(now, which)) continue;
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
    // In groups of two nobody has a second partner, but in the other partition.
    if (round == 0 || group_count(now.plan) == 1) return std::nullopt;
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

/// Every node's lanes among themselves, all nodes at once, after the rounds: so often that a slow one is seen
/// twice.
std::optional<Measure> inside_step(const Situation& now, const Form* form) {
  if (form == nullptr || in_vain(now) || !has_inside(now.plan)) return std::nullopt;
  const InsideSoFar so_far = inside_so_far(now.history);
  if (so_far.telling >= kInsideTimes || so_far.steps > kInsideTimes) return std::nullopt;
  const auto allowance = allow(kBrief * kPatience + kConstant, kLeastAllowance, now.left);
  if (!allowance) return std::nullopt;
  Measure measure{.phase = Phase::blame,
                  .batches = {},
                  .allowance = *allowance,
                  .round = so_far.steps,
                  .back = so_far.steps % 2 == 1,
                  .inside = true};
  measure.batches = batches_inside(now, *form, so_far, measure.back);
  if (measure.batches.empty()) return std::nullopt;
  return measure;
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
  if (!wanted) {
    if (auto inside = inside_step(now, joined(history))) return *inside;
    return Stop{};
  }
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
