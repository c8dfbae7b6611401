// See job_flaws.h.
#include "judge/job_flaws.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "contract/job.h"
#include "contract/wire.h"
#include "judge/job_limit.h"
#include "judge/names.h"

namespace netcheck::judge {
namespace {

constexpr std::size_t kNamesBytes = 96;  ///< of the nodes of one flaw
constexpr std::size_t kWordsBytes = 48;  ///< of what is wrong there
constexpr std::size_t kWhatBytes = 512;
constexpr double kPercent = 100;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// A device's name, as a node gives it; "" where it is a node's name, so that nobody is brought up by others.
std::string device_name(const Plan& plan, const std::string& text) {
  std::string name;
  for (const char c : text)
    if (is_letter(c) || c == '_' || c == '.' || c == ':' || c == '-') name += c;
  constexpr std::size_t kBytes = 24;
  if (name.size() > kBytes) name.resize(kBytes);
  return std::ranges::find(plan.nodes, name, &NodePlan::name) == plan.nodes.end() ? name : "";
}

/// "2 × 400 Gb/s" → "2x400Gb/s"; nullopt: there is more in it than numbers.
std::optional<std::string> number_words(std::string text) {
  constexpr std::string_view kTimes = "×", kUnit = " Gb/s";
  for (auto at = text.find(kTimes); at != std::string::npos; at = text.find(kTimes))
    text.replace(at, kTimes.size(), 1, 'x');
  std::string bare = text;
  for (auto at = bare.find(kUnit); at != std::string::npos; at = bare.find(kUnit))
    bare.erase(at, kUnit.size());
  if (text.empty() || bare.find_first_not_of("0123456789.+-x ") != std::string::npos) return std::nullopt;
  std::erase(text, ' ');
  return text;
}

std::string difference_words(const Oddity& odd) {
  const auto theirs = number_words(odd.value), others = number_words(odd.usual);
  if (!theirs || !others) return {};
  return printable(fmt::format("{}, others {}", *theirs, *others), kWordsBytes);
}

/// What nodes differ in because of something else that is wrong with them: told once is enough.
std::vector<Flaw> causes_of(Flaw odd) {
  switch (odd) {
    case Flaw::odd_ports:
      return {Flaw::port_down};
    case Flaw::odd_rate:
      return {Flaw::port_slow, Flaw::port_down, Flaw::odd_ports};
    case Flaw::odd_mtu:
      return {Flaw::mtu_uneven, Flaw::odd_ports};
    case Flaw::odd_pcie:
      return {Flaw::pcie_narrow, Flaw::odd_gpus, Flaw::odd_ports};
    case Flaw::odd_nvlink:
      return {Flaw::nvlink_uneven, Flaw::nvlink_missing, Flaw::odd_gpus};
    default:
      return {};
  }
}

/// A cause that the site takes less seriously explains nothing away.
bool is_explained(const JobFlaw& odd, const std::vector<JobFlaw>& told) {
  const auto causes = causes_of(odd.flaw);
  return !odd.nodes.empty() && std::ranges::all_of(odd.nodes, [&](std::uint32_t node) {
    return std::ranges::any_of(told, [&](const JobFlaw& other) {
      return std::ranges::find(causes, other.flaw) != causes.end() && other.weight >= odd.weight &&
             std::ranges::binary_search(other.nodes, node);
    });
  });
}

void add_own(const Plan& plan, std::vector<JobFlaw>& flaws) {
  std::map<std::pair<Flaw, std::string>, std::size_t> place;  // the same of several nodes is one
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (!plan.nodes[i].hardware) continue;
    for (const OwnFlaw& own : plan.nodes[i].hardware->flaws) {
      const std::string words = device_name(plan, own.culprit);
      const auto [at, first] = place.try_emplace({own.flaw, words}, flaws.size());
      if (first)
        flaws.push_back({own.flaw,
                         plan.weights.of(own.flaw),
                         {},
                         words,
                         printable(fmt::format("{}: {}", node_name(plan, i), own.what), kWhatBytes),
                         is_broken_part(own.flaw)});
      auto& nodes = flaws[at->second].nodes;
      if (nodes.empty() || nodes.back() != i) nodes.push_back(i);
    }
  }
}

void add_odd(const Plan& plan, std::vector<JobFlaw>& flaws) {
  std::vector<NodeTraits> traits;
  for (const NodePlan& node : plan.nodes)
    traits.push_back({node.name, node.machine, node.hardware ? node.hardware->traits : std::vector<Trait>()});
  for (const Oddity& odd : odd_ones(traits)) {
    const auto flaw = flaw_of(odd.key);
    if (!flaw) continue;
    JobFlaw next{
        *flaw, plan.weights.of(*flaw), odd.nodes, difference_words(odd), printable(odd.what, kWhatBytes),
        false};
    const bool again = std::ranges::any_of(flaws, [&](const JobFlaw& other) {
      return other.flaw == *flaw && other.nodes == odd.nodes;  // GPUs, and their model
    });
    if (!again && !is_explained(next, flaws)) flaws.push_back(std::move(next));
  }
}

std::string percent_words(const Rate& rate, const Rate& limit) {
  return fmt::format("{:.0f}% of limit", kPercent * rate.bits_per_second / limit.bits_per_second);
}

/// The figure falls short of the limit, or one rail's of its own, and would do so unhindered (standing.h).
std::optional<std::string> shortfall(const Plan& plan, const JobLimit& limit,
                                     const std::optional<Figures>& figures) {
  const auto free = figures ? unhindered(*figures) : std::nullopt;
  if (!limit.counts || !free) return std::nullopt;
  const auto is_short = [](const Rate& rate, const Rate& most) {
    return rate.bits_per_second < kShort * most.bits_per_second;
  };
  if (!plan.thresholds.min_fraction && is_short(free->busbw, *limit.all))
    return percent_words(figures->busbw, *limit.all);
  if (plan.thresholds.min_fraction_per_rail || !limit.rail || free->per_rail.empty()) return std::nullopt;
  const auto worst = std::ranges::min_element(free->per_rail) - free->per_rail.begin();
  const auto lane = static_cast<std::size_t>(worst);
  if (!is_short(free->per_rail[lane], *limit.rail)) return std::nullopt;
  return fmt::format("rail {}: {}", lane, percent_words(figures->per_rail[lane], *limit.rail));
}

}  // namespace

std::vector<JobFlaw> flaws_of(const Plan& plan) {
  std::vector<JobFlaw> flaws;
  add_own(plan, flaws);
  add_odd(plan, flaws);
  std::erase_if(flaws, [](const JobFlaw& flaw) { return flaw.weight == Weight::ignore; });
  std::ranges::stable_sort(flaws, std::greater<>(), &JobFlaw::weight);
  return flaws;
}

std::string describe(const JobFlaw& flaw, const Plan& plan) {
  if (flaw.nodes.empty()) return fmt::format("{}(nodes differ)", name(flaw.flaw));
  std::vector<std::string> names;
  for (const std::uint32_t node : flaw.nodes)
    names.push_back(node_name(plan, node));
  return fmt::format("{}({}{}{})", plain(fold_node_list(names, kNamesBytes), kNamesBytes + 16),
                     name(flaw.flaw), flaw.short_words.empty() ? "" : ": ", flaw.short_words);
}

std::vector<std::string> hardware_warnings(const Plan& plan, const std::optional<Figures>& figures) {
  std::vector<std::string> words;
  for (const std::string& threshold : plan.thresholds.unattainable)
    words.push_back(fmt::format("unattainable({})", plain(threshold, kWordsBytes)));
  if (const auto less = shortfall(plan, limit_of_job(plan), figures)) words.push_back(*less);
  for (const JobFlaw& flaw : flaws_of(plan))
    words.push_back(describe(flaw, plan));
  return words;
}

std::optional<Rate> limit_to_tell(const Plan& plan, const std::optional<Figures>& figures) {
  const JobLimit limit = limit_of_job(plan);
  if (!limit.counts) return std::nullopt;
  const Thresholds& asked = plan.thresholds;
  const bool decides = asked.min_fraction || asked.min_fraction_per_rail || !asked.unattainable.empty();
  return decides || shortfall(plan, limit, figures) ? limit.all : std::nullopt;
}

Json hardware_to_json(const Plan& plan) {
  Json findings = Json::array();
  for (const JobFlaw& flaw : flaws_of(plan)) {
    Json nodes = Json::array();
    for (const std::uint32_t node : flaw.nodes)
      nodes.push_back(node_name(plan, node));
    findings.push_back({{"code", name(flaw.flaw)},
                        {"severity", name(flaw.weight)},
                        {"nodes", std::move(nodes)},
                        {"what", flaw.what}});
  }
  const JobLimit limit = limit_of_job(plan);
  Json told{{"counts", limit.counts}, {"why", limit.why}};
  if (limit.all) told["nominal_bps"] = limit.all->bits_per_second;
  if (limit.rail) told["nominal_per_rail_bps"] = limit.rail->bits_per_second;
  return {{"findings", std::move(findings)}, {"limit", std::move(told)}};
}

}  // namespace netcheck::judge
