// Where each node stands by the edges so far: per direction and rail, proven good, slow, or nothing known.
// Pure. The script takes its suspects from it, the blame its culprits. Method and limits:
// docs/measurement.md, "Blame".
//
// A node's score is its best edge: one good edge exonerates it. An edge is slow below τ of its rail, which
// compares nodes of one class of hardware only:
//   τ = min(max(site's floor per rail, 0.8 × median score), median score - 6 to 20 × spread of the good
//   edges)
//
// What is nobody's fault. A process that was stopped, or waited for a processor, moves no bytes; a device
// that carries somebody else's bytes has less room for the check's. The network is not to blame for either.
// The rule, here and wherever the judge holds a rate against a bar: what counts against anybody is the
// unhindered rate, the rate divided by part_running and room_of_others added to it (measure/statistics.h says
// what those are). An edge that is slow, and unhindered would not be, is excused: left out, it accuses nobody
// and speaks for nobody. A gate that is below what is asked and unhindered would not be so is excused as well
// (verdict.cpp): nobody fails by it, and the line names whose process was kept most, or whose device others
// used most. The ways under min_per_pair (pairs.cpp), the floor of a rail (Bar::below_floor) and what a
// culprit can carry (verdict.cpp) go by the unhindered rate, too. Where a process cannot be said to have run
// at all, no bytes are no evidence (edges.cpp). Why, and what was measured: docs/measurement.md, "Kept from
// running" and "Other traffic".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "judge/edges.h"

namespace netcheck::judge {

/// Of the median score: below it an edge is slow (docs/measurement.md).
inline constexpr double kBlameFraction = 0.8;
/// Where the question is what a way can carry, not whether it is slow: whatever falls short of the median at
/// all, and is brief or would not do so unhindered, is left out.
inline constexpr double kWholeMedian = 1.0;
/// A lone edge is slow when it is below this part of the median, and of what exonerates its nodes.
inline constexpr double kVerySlow = 0.4;

/// One way between two nodes on one rail, all its measurements together. bits/s.
struct Path {
  std::uint32_t from = 0, to = 0;
  std::uint16_t lane = 0;
  double best = 0;             ///< of all its measurements; of those that lasted, where there are any
  double average = 0;          ///< the same of all bytes over all the time: what is told
  double best_unhindered = 0;  ///< the same of the unhindered rates
  double together = -1;        ///< best while others ran; -1: never
  std::uint32_t times = 0;     ///< how many measurements those are
  bool lasting = false;        ///< some figure rests on more than a moment: it may accuse
  double alone = -1;           ///< best with nothing else running; -1: never
};

enum class Word : std::uint8_t {
  unknown,  ///< no edge with evidence
  good,     ///< an edge at or above τ
  slow,     ///< all edges below τ, but not with two partners who are fine
  isolated  ///< all edges below τ, two of them with different partners who are fine
};

struct Standing {
  Word word = Word::unknown;
  double best = 0;             ///< of its paths; bits/s
  double average = 0;          ///< best of its paths' averages: what is told
  double best_unhindered = 0;  ///< best of its paths'
};

/// What an edge of one class of hardware on one rail is held against. bits/s.
struct Bar {
  double median = 0;     ///< of the scores
  double threshold = 0;  ///< τ; 0: nothing to compare with, only a dead path is slow
  std::size_t scores = 0;
  std::size_t below_floor = 0;  ///< of them, below the site's floor even unhindered, or dead
};

/// What the site asks of each lane that all nodes have: its part of the whole, and of its rail. bits/s.
[[nodiscard]] std::vector<double> floors_of(const Plan& plan);

class Standings {
 public:
  /// `fraction` of the median that is slow: kBlameFraction or kWholeMedian.
  Standings(const Plan& plan, std::vector<EdgeFigure> edges, double fraction);

  [[nodiscard]] const Standing& of(std::uint32_t node, Direction way, std::uint32_t lane) const;
  [[nodiscard]] const std::vector<Path>& paths() const { return paths_; }
  /// The edges that count: all but the excused.
  [[nodiscard]] const std::vector<EdgeFigure>& edges() const { return edges_; }
  [[nodiscard]] bool slow(const Path& path, double bits_per_second) const;
  [[nodiscard]] bool slow(const Path& path) const { return slow(path, path.best); }
  /// Below τ and below 0.4 of the median: a single edge has no second measurement to excuse it.
  [[nodiscard]] bool very_slow(const Path& path) const;
  /// Both its ends are good, by this path or by others: were it slow, it would be the way between them.
  [[nodiscard]] bool cleared(const Path& path) const;
  /// Whether the two nodes have been a pair, either way.
  [[nodiscard]] bool met(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] const std::vector<Bar>& bars() const { return bars_; }
  [[nodiscard]] std::uint32_t lanes() const { return lanes_; }
  /// The bar of the node's class of hardware on a rail.
  [[nodiscard]] const Bar& bar_of(std::uint32_t node, std::uint32_t lane) const;

 private:
  void merge();
  void hold_against_bars(const Plan& plan, double fraction);
  [[nodiscard]] bool excused(const EdgeFigure& edge) const;
  [[nodiscard]] bool fits(const EdgeFigure& edge) const;
  void set_bars(const Plan& plan, double fraction);
  void set_scores(const std::function<bool(const Path&)>& of_interest);
  void set_words();
  [[nodiscard]] Bar bar_for(std::size_t kind, std::uint32_t lane, double floor, double fraction) const;
  void drop_brief();
  [[nodiscard]] bool counts(const Path& path) const;
  [[nodiscard]] std::size_t slot(std::uint32_t node, Direction way, std::uint32_t lane) const;
  [[nodiscard]] double noise_of_good(std::size_t kind, std::uint32_t lane, double least, double middle) const;

  std::uint32_t lanes_;
  std::vector<std::size_t> kinds_;  ///< class of hardware by node
  std::size_t kind_count_ = 0;
  std::vector<EdgeFigure> edges_;
  std::vector<Path> paths_;
  std::vector<bool> lasting_;  ///< by lane: some path is lasting
  std::vector<Standing> standings_;
  std::vector<Bar> bars_;  ///< [kind × lanes + lane]
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> met_;
};

}  // namespace netcheck::judge
