// A verdict and the facts → a plan. Pure. See decide.h.
#include "prolog/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "contract/job.h"
#include "contract/overloaded.h"
#include "judge/line.h"
#include "judge/standing.h"
#include "policy/settings.h"

namespace netcheck::prolog {
namespace {

// A job that has been restarted this often, by whomever, is not requeued again whatever its comment says: a
// tool that empties comments would otherwise make a loop. Slurm's own max_batch_requeue is 5.
constexpr std::uint32_t kMaxRestarts = 16;
constexpr std::size_t kReasonBytes = 200;  // of a drained node: sinfo -R is read by people

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string why_no_culprit(const judge::Blame& blame, std::size_t nodes) {
  if (blame.fabric_wide) return "fabric-wide";
  if (blame.oversubscribed) return "oversubscribed";
  if (!blame.culprits.empty()) return "link";  // both its ends are fine: neither is to be kept away from
  return nodes == 2 ? "two-nodes" : "no-culprit";
}

// Whether a node, as sinfo shows it, will take jobs again without anybody's help.
bool usable(std::string state) {
  while (!state.empty() && (state.back() == '~' || state.back() == '-'))
    state.pop_back();  // powered down, or planned for another job: it comes back by itself
  constexpr std::array<std::string_view, 5> kGood = {"idle", "mixed", "allocated", "completing", "planned"};
  return std::ranges::find(kGood, state) != kGood.end();
}

// Nodes of the job's partition as good as those it was given, in whatever it asked for.
class Eligible {
 public:
  Eligible(const Finding& finding, const Standing& standing, const ClusterFacts& cluster) {
    for (const NodeFacts& node : *cluster.nodes)
      if (node.partition == cluster.partition) nodes_.push_back(&node);
    std::size_t given = 0;
    for (const NodeFacts* node : nodes_) {
      if (!contains(finding.nodes, node->name)) continue;
      cpus_ = given == 0 ? node->cpus : std::min(cpus_, node->cpus);
      memory_ = given == 0 ? node->memory : std::min(memory_, node->memory);
      kinds_.emplace(kind_of(*node, standing));
      ++given;
    }
    known_ = given == finding.nodes.size();
  }
  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] std::size_t without(const std::vector<std::string>& excluded,
                                    const Standing& standing) const {
    return static_cast<std::size_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const NodeFacts* node) {
      return usable(node->state) && !contains(excluded, node->name) && node->cpus >= cpus_ &&
             node->memory >= memory_ && kinds_.contains(kind_of(*node, standing));
    }));
  }

 private:
  // What a constraint says is Slurm's to read; a node that has exactly what a given one has satisfies it.
  static std::string kind_of(const NodeFacts& node, const Standing& standing) {
    return (standing.wants_features ? node.features : "") + "\n" + (standing.wants_gres ? node.gres : "");
  }
  std::vector<const NodeFacts*> nodes_;
  std::set<std::string> kinds_;
  std::uint64_t cpus_ = 0, memory_ = 0;
  bool known_ = false;
};

bool drains(const Policy& policy, const Finding& finding) {
  return policy.drain && finding.kind == Finding::Kind::fail && finding.site_fails &&
         !finding.drainable.empty();
}

class Decision {
 public:
  Decision(const Policy& policy, const Finding& finding, const JobFacts& job, const ClusterFacts& cluster,
           const OwnHistory& own, std::int64_t now)
      : policy_(policy), finding_(finding), job_(job), cluster_(cluster), own_(own), now_(now) {}

  ActionPlan make() {
    plan_.requeues = own_.requeues;
    plan_.wanted = wanted();
    choose();
    choose_drain();
    plan_.counts = !plan_.drain.empty() || (plan_.action != Action::annotate && sites_action());
    if (plan_.counts && !policy_.dry_run) hold_the_rate();
    if (plan_.action == Action::requeue) ++plan_.requeues;
    say();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] Action wanted() const {
    if (finding_.kind == Finding::Kind::fail) return policy_.action;
    const bool again =
        finding_.kind == Finding::Kind::broken_off && policy_.on_inconclusive == OnInconclusive::requeue_once;
    return again ? Action::requeue : Action::annotate;
  }

  // What is done to the job is the site's doing. A user's wish for his own job (a threshold, an operation, an
  // action) is not held back by the site's rate, and takes nothing of it from others.
  [[nodiscard]] bool sites_action() const {
    if (finding_.kind == Finding::Kind::broken_off) return finding_.sites_check;
    return finding_.site_fails && !finding_.nearly_by_site && !asked_for();
  }

  // By the user, for his own job.
  [[nodiscard]] bool asked_for() const {
    const auto source = policy_.sources.find("action.action");
    return source != policy_.sources.end() && source->second == policy::kRequested;
  }

  void choose() {
    if (plan_.wanted == Action::annotate) return;
    std::string why = plan_.wanted == Action::requeue ? no_requeue() : why_not(plan_.wanted);
    if (why.empty()) {
      plan_.action = plan_.wanted;
      if (plan_.action == Action::requeue) aim();
      return;
    }
    brake(why);
    if (plan_.wanted != Action::requeue || finding_.kind != Finding::Kind::fail) return;
    const Action fallback = policy_.requeue_fallback;
    if (fallback == Action::annotate || fallback == Action::requeue) return;
    why = why_not(fallback);
    if (why.empty())
      plan_.action = fallback;
    else
      brake(fmt::format("{}:{}", name(fallback), why));
  }

  // What keeps every action from this job.
  [[nodiscard]] std::string why_no_action() const {
    if (finding_.corrupt) return "corrupt-data";
    if (job_.component) return "heterogeneous";  // Slurm cannot requeue a component without its siblings
    if (!cluster_.standing) return "state-unknown";
    if (!cluster_.standing->running()) return "state-" + cluster_.standing->state;
    if (finding_.nearly_enough && !asked_for()) return "nearly-enough";
    if (sites_action()) return no_proof_within_a_switch();
    return {};
  }

  // What is slow only on ways between leaf switches may be an uplink: other jobs fill it whenever they like,
  // and no job is to be refused for that, unless the site says so.
  [[nodiscard]] std::string no_proof_within_a_switch() const {
    if (finding_.kind != Finding::Kind::fail || finding_.flawed || policy_.between_switches) return {};
    if (!cluster_.switches) return "switches-unknown";
    if (!cluster_.switches->part(finding_.nodes)) return {};
    const auto within = [&](const auto& way) { return cluster_.switches->share(way.first, way.second); };
    return std::ranges::any_of(finding_.slow_ways, within) ? "" : "between-switches";
  }

  // The same of a node alone. Where it shares its leaf switch with no node that it was slow with, its uplink
  // is not told from its own link.
  [[nodiscard]] std::string alone_on_its_switch(const Finding::Isolated& culprit) const {
    if (culprit.own_word) return {};
    if (!cluster_.switches) return "switches-unknown";
    if (!cluster_.switches->part(finding_.nodes)) return {};
    const auto proves = [&](const auto& way) {
      return (way.first == culprit.node || way.second == culprit.node) &&
             cluster_.switches->share(way.first, way.second);
    };
    return std::ranges::any_of(finding_.slow_ways, proves) ? "" : "alone-on-its-switch";
  }

  [[nodiscard]] std::string why_not(Action action) const {
    if (std::string why = why_no_action(); !why.empty()) return why;
    if (action == Action::cancel) return {};
    if (!job_.batch) return "not-batch";
    if (!cluster_.standing->may_be_requeued) return "no-requeue";
    if (!cluster_.refused.empty()) return "refused";
    return {};
  }

  [[nodiscard]] std::string no_requeue() const {
    if (std::string why = why_not(Action::requeue); !why.empty()) return why;
    if (finding_.kind == Finding::Kind::broken_off && own_.requeues > 0) return "requeued-before";
    if (own_.requeues >= policy_.max_requeues) return fmt::format("max_requeues={}", policy_.max_requeues);
    if (cluster_.standing->restarts >= kMaxRestarts) return fmt::format("restarts={}", kMaxRestarts);
    if (finding_.kind == Finding::Kind::broken_off) return {};
    if (finding_.culprits.empty()) return finding_.no_culprit;
    return nowhere_else();
  }

  // Why it cannot be shown that the job could run without the culprits.
  [[nodiscard]] std::string nowhere_else() const {
    const Standing& standing = *cluster_.standing;
    if (!cluster_.placement) return "placement-unknown";
    if (cluster_.placement->reserved) return "reservation";
    if (standing.contiguous) return "contiguous";
    if (standing.constrained_together) return "constraint";
    for (const std::string& culprit : finding_.culprits)
      if (contains(cluster_.placement->required, culprit)) return "nodelist-has-" + culprit;
    if (!cluster_.nodes) return "nodes-unknown";
    const Eligible eligible(finding_, standing, cluster_);
    if (!eligible.known()) return "nodes-unknown";
    const std::size_t left = eligible.without(exclusions(), standing);
    const std::size_t needed = std::max<std::size_t>(standing.nodes, finding_.nodes.size());
    return left < needed ? fmt::format("nodes-left={}", left) : "";
  }

  [[nodiscard]] std::vector<std::string> exclusions() const {
    std::vector<std::string> all = cluster_.placement->excluded;
    for (const std::string& culprit : finding_.culprits)
      if (!contains(all, culprit)) all.push_back(culprit);
    return all;
  }

  // The first time the job is helped to start at once; later ones wait Slurm's two minutes, and so does a job
  // whose check broke off: a node that is away for a moment comes back in that time.
  void aim() {
    if (finding_.kind != Finding::Kind::fail) return;
    plan_.exclude = exclusions();
    plan_.start_early = own_.requeues == 0 && policy_.early_start;
  }

  void choose_drain() {
    if (!drains(policy_, finding_)) return;
    if (finding_.corrupt) return drain_brake("corrupt-data");
    if (finding_.noisy) return drain_brake("noisy");
    if (finding_.nearly_by_site) return drain_brake("nearly-enough");
    if (cluster_.drain_refused) return drain_brake("refused");
    if (!cluster_.nodes) return drain_brake("nodes-unknown");
    if (cluster_.deeds_failed) return drain_brake("actions-uncounted");
    if (!cluster_.announced) return drain_brake("drains-unknown");
    // What others are about to drain is counted as drained: each announces it before it counts, so of any
    // number at the same moment none overlooks all the others.
    std::set<std::string> all, drained(cluster_.announced->begin(), cluster_.announced->end());
    for (const NodeFacts& node : *cluster_.nodes) {
      all.insert(node.name);
      if (drained_by_us(node)) drained.insert(node.name);
    }
    const std::uint32_t most = policy_.max_drained_total.of(static_cast<std::uint32_t>(all.size()));
    std::string measured, found;  // in words
    for (const Finding::Isolated& culprit : finding_.drainable) {
      std::string why = why_no_drain(culprit.node);
      if (why.empty() && culprit.fast_enough) why = "fast-enough";
      if (why.empty()) why = alone_on_its_switch(culprit);
      if (!why.empty()) why = fmt::format("{}:{}", culprit.node, why);
      const bool full = plan_.drain.size() >= policy_.max_drain,
                 over = !drained.contains(culprit.node) && drained.size() >= most;
      if (why.empty() && full) why = fmt::format("max_drain={}", policy_.max_drain);
      if (why.empty() && over) why = fmt::format("max_drained_total={}", most);
      if (!why.empty()) {
        drain_brake(why);
        if (full || over) return;
        continue;
      }
      plan_.drain.push_back(culprit.node);
      drained.insert(culprit.node);
      (culprit.own_word ? found : measured) += " " + culprit.words;
      plan_.drain_reason = printable(fmt::format("{}job {}{}{}", kDrainReason, job_.target,
                                                 said(" measured", measured), said(" found", found)),
                                     kReasonBytes);
    }
  }

  static std::string said(const char* verb, const std::string& words) {
    return words.empty() ? "" : verb + words;
  }

  // Never a node that somebody has a reason for already, whatever its state.
  [[nodiscard]] std::string why_no_drain(const std::string& culprit) const {
    bool found = false;
    for (const NodeFacts& node : *cluster_.nodes) {
      if (node.name != culprit) continue;
      found = true;
      if (!node.reason.empty() && node.reason != "none") return "has-a-reason";
      if (!usable(node.state)) return node.state;
    }
    return found ? "" : "unknown";
  }

  void hold_the_rate() {
    if (policy_.max_actions_per_hour == 0) return;
    std::string why;
    if (cluster_.deeds_failed) why = "actions-uncounted";
    if (cluster_.deeds && *cluster_.deeds >= policy_.max_actions_per_hour)
      why = fmt::format("max_actions_per_hour={}", policy_.max_actions_per_hour);
    if (why.empty()) return;
    plan_.counts = false;
    plan_.drain.clear();
    if (plan_.action != Action::annotate && !sites_action()) return drain_brake(why);
    plan_.action = Action::annotate;
    plan_.exclude.clear();
    plan_.start_early = false;
    brakes_ = why;
  }

  void brake(const std::string& why) { brakes_ += (brakes_.empty() ? "" : ",") + why; }
  void drain_brake(const std::string& why) { drain_brakes_ += (drain_brakes_.empty() ? "" : ",") + why; }

  void say() {
    std::string& tail = plan_.tail;
    const bool any = plan_.wanted != Action::annotate || plan_.acts() || !drain_brakes_.empty();
    if (any)
      tail = fmt::format(" {}={}", policy_.dry_run ? "action=annotate would" : "action", name(plan_.action));
    if (any && plan_.wanted != plan_.action) tail += fmt::format(" wanted={}", name(plan_.wanted));
    if (!brakes_.empty()) plan_.brakes = " brake=" + brakes_;
    tail += plan_.brakes;
    if (!plan_.drain.empty())
      tail += fmt::format(" {}={}", policy_.dry_run ? "would_drain" : "drain", fold_node_list(plan_.drain));
    if (!drain_brakes_.empty()) {
      tail += " drain_brake=" + drain_brakes_;
      plan_.brakes += " drain_brake=" + drain_brakes_;
    }
    if (policy_.dry_run) plan_.requeues = own_.requeues;
    if (plan_.requeues > 0) tail += fmt::format(" requeues={}", plan_.requeues);
    if (plan_.counts && !policy_.dry_run) tail += fmt::format(" acted={}", now_);
    if (!own_.previous.empty()) tail += " prev=" + own_.previous;
  }

  const Policy& policy_;
  const Finding& finding_;
  const JobFacts& job_;
  const ClusterFacts& cluster_;
  const OwnHistory& own_;
  std::int64_t now_;
  ActionPlan plan_;
  std::string brakes_, drain_brakes_;
};

/// What is slower than others, and yet as fast as the site asks of each rail, has not failed the check by
/// itself. `measured` of a whole node: the best of its rails.
bool fast_enough(const judge::Plan& plan, const judge::Culprit& culprit) {
  double asked = 0;
  const auto floors = judge::floors_of(plan);
  for (std::size_t lane = 0; lane < floors.size(); ++lane)
    if (!culprit.lane || *culprit.lane == lane) asked = std::max(asked, floors[lane]);
  return asked > 0 && culprit.measured.bits_per_second >= asked;
}

// Nodes whose hardware fails the check are kept away from like slow ones, once there are others to be like.
void add_flawed(const judge::Fail& failed, Finding& finding) {
  for (const judge::Flawed& flawed : failed.flawed)
    for (const std::uint32_t node : flawed.nodes)
      if (node < finding.nodes.size() && !contains(finding.culprits, finding.nodes[node]))
        finding.culprits.push_back(finding.nodes[node]);
}

// Drained only for a broken part, by the node's own word: what most of a job's nodes have may be what is
// wrong.
void add_broken(const judge::Fail& failed, Finding& finding) {
  for (const judge::Flawed& flawed : failed.flawed) {
    if (!flawed.broken_part) continue;
    for (const std::uint32_t node : flawed.nodes) {
      if (node >= finding.nodes.size()) continue;
      const std::string& name = finding.nodes[node];
      if (std::ranges::find(finding.drainable, name, &Finding::Isolated::node) == finding.drainable.end())
        finding.drainable.push_back({.node = name, .words = flawed.words, .own_word = true});
    }
  }
}

}  // namespace

Finding finding_of(const judge::Verdict& verdict, const std::optional<judge::Verdict>& site,
                   const judge::Plan& plan) {
  Finding finding;
  for (const judge::NodePlan& node : plan.nodes)
    finding.nodes.push_back(node.name);
  const auto known = [&](const judge::Culprit& culprit) {
    return !culprit.peer && culprit.node < finding.nodes.size();
  };
  std::visit(Overloaded{[&](const judge::Pass&) { finding.kind = Finding::Kind::pass; },
                        [&](const judge::Inconclusive& unknown) {
                          finding.kind = unknown.phase == judge::Phase::start ? Finding::Kind::not_measured
                                                                              : Finding::Kind::broken_off;
                        },
                        [&](const judge::Fail& failed) {
                          finding.kind = Finding::Kind::fail;
                          for (const judge::Culprit& culprit : failed.blame.culprits)
                            if (known(culprit) && !contains(finding.culprits, finding.nodes[culprit.node]))
                              finding.culprits.push_back(finding.nodes[culprit.node]);
                          add_flawed(failed, finding);
                          finding.flawed = !failed.flawed.empty();
                          if (finding.culprits.empty())
                            finding.no_culprit = failed.flawed.empty()
                                                     ? why_no_culprit(failed.blame, plan.nodes.size())
                                                     : "nodes-differ";
                        }},
             verdict);
  const auto* site_fail = site ? std::get_if<judge::Fail>(&*site) : nullptr;
  finding.sites_check = site.has_value();
  if (finding.kind != Finding::Kind::fail || site_fail == nullptr) return finding;
  finding.site_fails = true;
  finding.noisy = site_fail->figures && site_fail->figures->noisy;
  for (const judge::Culprit& culprit : site_fail->blame.culprits) {
    if (!known(culprit) || !culprit.isolated) continue;
    const std::string& node = finding.nodes[culprit.node];
    const Finding::Isolated isolated{
        .node = node, .words = judge::describe(culprit, plan), .fast_enough = fast_enough(plan, culprit)};
    const auto there = std::ranges::find(finding.drainable, node, &Finding::Isolated::node);
    if (there == finding.drainable.end())
      finding.drainable.push_back(isolated);
    else if (there->fast_enough && !isolated.fast_enough)
      *there = isolated;  // one of its rails is not
  }
  add_broken(*site_fail, finding);
  return finding;
}

bool may_refuse(const Policy& policy, const Finding& finding) {
  if (finding.kind == Finding::Kind::fail) return policy.action != Action::annotate;
  return finding.kind == Finding::Kind::broken_off && policy.on_inconclusive == OnInconclusive::requeue_once;
}

Questions questions(const Policy& policy, const Finding& finding, const JobFacts& job,
                    const OwnHistory& own) {
  Questions ask;
  const bool requeues = finding.kind == Finding::Kind::fail && policy.action == Action::requeue &&
                        !job.component && job.batch && !finding.culprits.empty() &&
                        own.requeues < policy.max_requeues;
  ask.placement = requeues;
  ask.nodes = requeues || drains(policy, finding);
  ask.switches = finding.kind == Finding::Kind::fail && (may_refuse(policy, finding) || ask.nodes);
  return ask;
}

ActionPlan decide_action(const Policy& policy, const Finding& finding, const JobFacts& job,
                         const ClusterFacts& cluster, const OwnHistory& own, std::int64_t now) {
  return Decision(policy, finding, job, cluster, own, now).make();
}

}  // namespace netcheck::prolog
