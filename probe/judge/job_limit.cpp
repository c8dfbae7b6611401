// See job_limit.h.
#include "judge/job_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "judge/groups.h"
#include "judge/names.h"
#include "judge/rails.h"
#include "measure/limits.h"

namespace netcheck::judge {
namespace {

/// What a node says of itself; nullopt: it does not know.
struct Built {
  std::optional<Rate> all, rail;
};

/// The rail of a lane: itself, or a port that it goes over.
const RailSpeed* rail_of(const NodePlan& node, const std::string& lane) {
  if (!node.hardware) return nullptr;
  const auto& rails = node.hardware->rails;
  const auto carries = [&](const RailSpeed& rail) {
    return rail.lane == lane || std::ranges::find(rail.gpus, lane) != rail.gpus.end();
  };
  const auto found = std::ranges::find_if(rails, carries);
  return found == rails.end() ? nullptr : &*found;
}

/// A lane that is none of the rails it told of is one of unknown speed.
Built built(const NodePlan& node) {
  if (!node.hardware || node.hardware->rails.empty()) return {};
  const auto& rails = node.hardware->rails;
  for (const std::string& lane : node.lanes)
    if (rail_of(node, lane) == nullptr) return {};
  Built sum{Rate{0}, rails.front().nominal};
  for (const RailSpeed& rail : rails) {
    if (!rail.nominal) return {};
    sum.all->bits_per_second += rail.nominal->bits_per_second;
    sum.rail = std::min(*sum.rail, *rail.nominal);
  }
  return sum;
}

/// What more than half of those say that say anything; nullopt: no such rate.
class Usual {
 public:
  void add(const std::optional<Rate>& rate) {
    if (!rate) return;
    ++all_;
    // Rates are sums of rounded numbers: a megabit makes no difference.
    constexpr double kSame = 1e6;
    auto& [times, exact] = of_[std::llround(rate->bits_per_second / kSame)];
    ++times;
    exact = *rate;
  }
  [[nodiscard]] std::optional<Rate> most() const {
    for (const auto& [rounded, entry] : of_)
      if (entry.first * 2 > all_) return entry.second;
    return std::nullopt;
  }

 private:
  std::map<std::int64_t, std::pair<std::size_t, Rate>> of_;
  std::size_t all_ = 0;
};

std::optional<Rate> larger(const std::optional<Rate>& one, const std::optional<Rate>& other) {
  if (!one || !other) return one ? one : other;
  return std::max(*one, *other);
}

std::optional<Rate> smaller(const std::optional<Rate>& one, const std::optional<Rate>& other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

/// More than half of the nodes that say what carries their bytes say RDMA.
bool over_rdma(const Plan& plan) {
  std::size_t rdma = 0, all = 0;
  for (const NodePlan& node : plan.nodes) {
    if (!node.hardware || node.lanes.empty()) continue;
    const auto carries = [&](const std::string& lane) {
      const RailSpeed* rail = rail_of(node, lane);
      return rail != nullptr && rail->rdma;
    };
    ++all;
    if (std::ranges::all_of(node.lanes, carries)) ++rdma;
  }
  return rdma * 2 > all;
}

/// Every rail is a team of its own, one rank on each node; or one team is over all GPUs.
std::optional<Rate> of_operation(const Plan& plan, const std::optional<Rate>& all) {
  if (!all) return std::nullopt;
  Limits limits;
  limits.rails.resize(1);
  limits.rails.front().nominal = limits.nominal = all;
  if (plan.teaming == Teaming::over_lanes) limits.gpus.resize(rails(plan));
  return limit_of(limits, plan.op, static_cast<std::uint32_t>(plan.nodes.size())).bus;
}

void set_at_least(std::optional<Rate>& threshold, const std::optional<double>& part,
                  const std::optional<Rate>& limit) {
  if (!part || !limit) return;
  threshold = larger(threshold, Rate{*part * limit->bits_per_second});
}

}  // namespace

JobLimit limit_of_job(const Plan& plan) {
  struct Class {
    Usual all, rail;
  };
  std::map<std::string, Class> classes;
  std::vector<Built> nodes;
  for (const NodePlan& node : plan.nodes) {
    nodes.push_back(built(node));
    classes[node.machine].all.add(nodes.back().all);
    classes[node.machine].rail.add(nodes.back().rail);
  }
  JobLimit limit;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const Class& kind = classes[plan.nodes[i].machine];
    Built node{larger(nodes[i].all, kind.all.most()), larger(nodes[i].rail, kind.rail.most())};
    if (plan.thresholds.nominal) {
      double count = 0;
      for (const Rail& rail : rails_of(plan))
        count += rail.ports;
      count = std::max(count, 1.0);
      node = {plan.thresholds.nominal, Rate{plan.thresholds.nominal->bits_per_second / count}};
    }
    if (!node.all) {
      limit = {.why = fmt::format("what {}'s rails are built for is not known", node_name(plan, i))};
      break;
    }
    limit.all = smaller(limit.all, node.all);
    limit.rail = smaller(limit.rail, node.rail);
  }
  limit.all = of_operation(plan, limit.all);
  if (limit.all && !over_rdma(plan)) limit.why = "it is not RDMA that carries the bytes";
  limit.counts = limit.all && limit.why.empty();
  return limit;
}

void set_bars(Plan& plan) {
  Thresholds& asked = plan.thresholds;
  asked.unattainable.clear();
  const JobLimit limit = limit_of_job(plan);
  if (!limit.counts) return;
  const auto drop = [&](std::optional<Rate>& threshold, const char* key, const Rate& most) {
    if (!threshold || *threshold <= most) return false;
    asked.unattainable.push_back(fmt::format("{}: {}", key, format_rate(*threshold, true)));
    threshold.reset();
    return true;
  };
  // A user's own wish is held against the job all the same: it asked for better nodes than these.
  const bool the_sites = asked.min == asked.site_floor;
  if (drop(asked.site_floor, "min", *limit.all) && the_sites) asked.min.reset();
  drop(asked.min_per_rail, "min_per_rail", *limit.rail);
  drop(asked.min_per_pair, "min_per_pair", *limit.all);
  set_at_least(asked.min, asked.min_fraction, limit.all);
  set_at_least(asked.site_floor, asked.min_fraction, limit.all);
  set_at_least(asked.min_per_rail, asked.min_fraction_per_rail, limit.rail);
}

}  // namespace netcheck::judge
