// See standing.h.
#include "judge/standing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "judge/groups.h"
#include "judge/rails.h"
#include "measure/statistics.h"

namespace netcheck::judge {
namespace {

/// How far from the median an edge must be, in standard deviations of the good edges: 6, and 30 / count more
/// because few edges may by chance lie close together. kOwnNoise: what any two edges differ by, however close
/// a few of them lie. Chosen so that with independent noise of 10 % no healthy node is slow with both its
/// partners in 10,000 checks of 3 to 16 nodes (tests/unit/judge_noise_test.cpp); idle links, which differ by
/// 1–2 %, leave τ at 0.8 of the median, or just below it with three or four nodes.
constexpr double kDeviations = 6, kFewEdges = 30, kOwnNoise = 0.02;
/// A figure over less accuses nobody, and counts for nothing beside a longer one of the same way: latency and
/// one late wake-up weigh too much, and with what a shaper lets through at once (2 ms at the link's rate) 3
/// ms have read 1.4 times the rate. A slow edge takes long.
constexpr Ns kTooShort = std::chrono::milliseconds(10);

/// Had both ends' processes run all the time, and the devices carried nothing else. Infinite where the
/// processes ran too little to tell.
double unhindered(const EdgeFigure& edge) {
  if (edge.part_running <= 0) return std::numeric_limits<double>::infinity();
  return edge.rate->bits_per_second / edge.part_running + edge.room_of_others.bits_per_second;
}

Direction opposite(Direction way) {
  return way == Direction::transmit ? Direction::receive : Direction::transmit;
}

}  // namespace

std::vector<double> floors_of(const Plan& plan) {
  const auto rate = [](const std::optional<Rate>& one) { return one ? one->bits_per_second : 0; };
  const std::uint32_t lanes = rails(plan);
  std::vector<double> floors(lanes, rate(plan.thresholds.site_floor) / std::max(lanes, 1U));
  if (!plan.thresholds.min_per_rail) return floors;
  for (const Rail& rail : rails_of(plan))
    for (const std::uint16_t lane : rail.lanes)
      floors[lane] = std::max(floors[lane], rate(plan.thresholds.min_per_rail) * rail.ports /
                                                static_cast<double>(rail.lanes.size()));
  return floors;
}

Standings::Standings(const Plan& plan, std::vector<EdgeFigure> edges, double fraction)
    : lanes_(rails(plan)), edges_(std::move(edges)) {
  std::map<std::string, std::size_t> kinds;
  for (const NodePlan& node : plan.nodes)
    kinds_.push_back(kinds.try_emplace(node.machine, kinds.size()).first->second);
  kind_count_ = kinds.size();
  standings_.resize(plan.nodes.size() * 2 * lanes_);
  hold_against_bars(plan, fraction);
  drop_brief();
  set_words();
}

/// Without the figures that are excused: those neither accuse anybody nor speak for anybody. The bar may be
/// another one then, so that others are excused; each turn leaves fewer.
void Standings::hold_against_bars(const Plan& plan, double fraction) {
  do {
    paths_.clear();
    merge();
    set_bars(plan, fraction);
  } while (std::erase_if(edges_, [this](const EdgeFigure& edge) { return excused(edge); }) > 0);
}

/// Slow, but unhindered it would not be.
bool Standings::excused(const EdgeFigure& edge) const {
  if (!fits(edge) || !edge.rate) return false;
  const Path way{.from = edge.from.node, .to = edge.to.node, .lane = edge.from.lane};
  return slow(way, edge.rate->bits_per_second) && !slow(way, unhindered(edge));
}

bool Standings::fits(const EdgeFigure& edge) const {
  return edge.from.node < kinds_.size() && edge.to.node < kinds_.size() && edge.from.node != edge.to.node &&
         edge.from.lane < lanes_;
}

std::size_t Standings::slot(std::uint32_t node, Direction way, std::uint32_t lane) const {
  return (static_cast<std::size_t>(node) * 2 + (way == Direction::receive ? 1 : 0)) * lanes_ + lane;
}

const Standing& Standings::of(std::uint32_t node, Direction way, std::uint32_t lane) const {
  return standings_[slot(node, way, lane)];
}

const Bar& Standings::bar_of(std::uint32_t node, std::uint32_t lane) const {
  return bars_[kinds_[node] * lanes_ + lane];
}

bool Standings::met(std::uint32_t a, std::uint32_t b) const {
  return met_.contains(std::minmax(a, b));
}

void Standings::merge() {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>, Path> merged;
  for (const EdgeFigure& edge : edges_) {
    if (!fits(edge)) continue;
    met_[std::minmax(edge.from.node, edge.to.node)] = true;
    if (!edge.rate) continue;
    const double rate = edge.rate->bits_per_second;
    Path& path = merged[{edge.from.node, edge.to.node, edge.from.lane}];
    const bool lasting = edge.partial || edge.timed == Ns::zero() || edge.timed >= kTooShort;
    if (path.lasting && !lasting) continue;
    if (lasting && !path.lasting) path = {};  // what was brief has had its say
    path.from = edge.from.node;
    path.to = edge.to.node;
    path.lane = edge.from.lane;
    path.lasting = lasting;
    path.best = std::max(path.best, rate);
    path.best_unhindered = std::max(path.best_unhindered, unhindered(edge));
    ++path.times;
    path.average = std::max(path.average, edge.average.value_or(*edge.rate).bits_per_second);
    double& kind = edge.alone ? path.alone : path.together;
    kind = std::max(kind, rate);
  }
  lasting_.assign(lanes_, false);
  for (const auto& [key, path] : merged) {
    paths_.push_back(path);
    if (path.lasting) lasting_[path.lane] = true;
  }
}

/// Brief figures say what is typical only where there are no others (networks too fast for the memory).
bool Standings::counts(const Path& path) const {
  return path.lasting || !lasting_[path.lane];
}

void Standings::drop_brief() {
  std::erase_if(paths_, [this](const Path& path) { return !path.lasting && slow(path); });
}

void Standings::set_bars(const Plan& plan, double fraction) {
  set_scores([this](const Path& path) { return counts(path); });
  const auto floors = floors_of(plan);
  bars_.resize(kind_count_ * lanes_);
  for (std::size_t kind = 0; kind < kind_count_; ++kind)
    for (std::uint32_t lane = 0; lane < lanes_; ++lane)
      bars_[kind * lanes_ + lane] = bar_for(kind, lane, floors[lane], fraction);
}

Bar Standings::bar_for(std::size_t kind, std::uint32_t lane, double floor, double fraction) const {
  std::vector<double> scores, unhindered;
  std::size_t nodes = 0;
  for (std::uint32_t node = 0; node < kinds_.size(); ++node) {
    if (kinds_[node] != kind) continue;
    ++nodes;
    for (const Direction way : {Direction::transmit, Direction::receive})
      if (const Standing& standing = of(node, way, lane); standing.word != Word::unknown) {
        scores.push_back(standing.best);
        unhindered.push_back(standing.best_unhindered);
      }
  }
  Bar bar;
  bar.scores = scores.size();
  bar.below_floor = static_cast<std::size_t>(
      std::ranges::count_if(unhindered, [floor](double score) { return score < floor || score <= 0; }));
  bar.median = median(scores).value_or(0);
  // Nobody of its kind to compare with: only the site can say what is slow.
  if (nodes < 2) {
    bar.threshold = floor;
    return bar;
  }
  const double relative = fraction * bar.median;
  const double noise = noise_of_good(kind, lane, relative, bar.median);
  bar.threshold = std::max(0.0, std::min(std::max(floor, relative), bar.median - noise));
  return bar;
}

double Standings::noise_of_good(std::size_t kind, std::uint32_t lane, double least, double middle) const {
  std::vector<double> good;
  for (const Path& path : paths_)
    if (counts(path) && path.lane == lane && kinds_[path.from] == kind && kinds_[path.to] == kind &&
        path.best >= least)
      good.push_back(path.best);
  if (good.size() < 2) return 0;
  // Faster than the middle by more than anything is slower: that is a burst, not noise. As noise, one such
  // figure among few would lower the bar below any slow node.
  const double deepest = std::max(0.0, middle - *std::ranges::min_element(good));
  double sum = 0, squares = 0;
  for (const double rate : good) {
    const double offset = std::min(rate - middle, deepest);
    sum += offset;
    squares += offset * offset;
  }
  const auto count = static_cast<double>(good.size());
  const double variance = (squares - sum * sum / count) / (count - 1);
  const double own = kOwnNoise * middle;
  return (kDeviations + kFewEdges / count) * std::sqrt(std::max(variance, 0.0) + own * own);
}

bool Standings::slow(const Path& path, double bits_per_second) const {
  if (bits_per_second <= 0) return true;
  // Between two classes the weaker one's bar counts.
  return bits_per_second <
         std::min(bar_of(path.from, path.lane).threshold, bar_of(path.to, path.lane).threshold);
}

bool Standings::very_slow(const Path& path) const {
  const double typical = std::min(bar_of(path.from, path.lane).median, bar_of(path.to, path.lane).median);
  return slow(path) && path.best <= kVerySlow * typical;
}

bool Standings::cleared(const Path& path) const {
  return of(path.from, Direction::transmit, path.lane).word == Word::good &&
         of(path.to, Direction::receive, path.lane).word == Word::good;
}

void Standings::set_scores(const std::function<bool(const Path&)>& of_interest) {
  std::ranges::fill(standings_, Standing{});
  const auto score = [this](std::uint32_t node, Direction way, const Path& path) {
    Standing& standing = standings_[slot(node, way, path.lane)];
    standing.best = std::max(standing.best, path.best);
    standing.average = std::max(standing.average, path.average);
    standing.best_unhindered = std::max(standing.best_unhindered, path.best_unhindered);
    standing.word = Word::slow;  // until set_words
  };
  for (const Path& path : paths_) {
    if (!of_interest(path)) continue;
    score(path.from, Direction::transmit, path);
    score(path.to, Direction::receive, path);
  }
}

void Standings::set_words() {
  set_scores([](const Path&) { return true; });
  for (const Path& path : paths_) {
    if (slow(path)) continue;
    standings_[slot(path.from, Direction::transmit, path.lane)].word = Word::good;
    standings_[slot(path.to, Direction::receive, path.lane)].word = Word::good;
  }
  std::map<std::size_t, std::set<std::uint32_t>> fine_partners;
  const auto witness = [&](std::uint32_t node, Direction way, std::uint32_t partner, std::uint32_t lane) {
    if (of(node, way, lane).word == Word::slow && of(partner, opposite(way), lane).word == Word::good)
      fine_partners[slot(node, way, lane)].insert(partner);
  };
  for (const Path& path : paths_) {
    witness(path.from, Direction::transmit, path.to, path.lane);
    witness(path.to, Direction::receive, path.from, path.lane);
  }
  for (const auto& [index, partners] : fine_partners)
    if (partners.size() >= 2) standings_[index].word = Word::isolated;
}

}  // namespace netcheck::judge
