// What is done about a verdict: the site's policy, the verdict as the supervisor computed it, and what Slurm
// says, → a plan. Pure; tested from tables. Every brake is here, and every brake has a word in the line.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/verdict.h"
#include "policy/policy.h"
#include "prolog/annotate.h"
#include "prolog/facts.h"
#include "prolog/switches.h"

namespace netcheck::prolog {

/// A verdict, as far as actions need it.
struct Finding {
  enum class Kind : std::uint8_t {
    pass,
    fail,
    broken_off,    ///< inconclusive, after the check had begun
    not_measured,  ///< inconclusive, before: one node, a busy node, a bad configuration. Nothing ever follows
  };
  Kind kind = Kind::not_measured;
  std::vector<std::string> nodes;     ///< the job's
  std::vector<std::string> culprits;  ///< nodes to keep away from: by name, each once; never a link's ends
  std::string no_culprit;             ///< why there is none: "two-nodes", "fabric-wide", "link", "no-culprit"
  bool sites_check = false;  ///< made with the site's operation, not with one that the user asked for
  /// The same samples fail on the site's thresholds, with the site's operation: only then may a node be
  /// drained, and only then does the action count for the cluster. Else it is the user's own wish for his own
  /// job.
  bool site_fails = false;
  /// The figures jumped about: something other than the network may have held up a process that measured (a
  /// node without CPU to spare). Nobody is drained for that.
  bool noisy = false;
  /// Data arrived that nobody of the check had sent. Worth a fail in the line; but one witness, and a network
  /// transport without credentials, are no reason to do anything to a job or a node.
  bool corrupt = false;
  struct Isolated {
    std::string node, words;  ///< "n3(tx: 95.9Mbps)"
    bool fast_enough =
        false;              ///< slower than others, and as fast as the site asks: the way to it, or by design
    bool own_word = false;  ///< a part of it is broken, as it says itself; not measured
  };
  std::vector<Isolated> drainable;  ///< isolated with two partners who are fine, on the site's thresholds
  /// Ways that were slow, by the site's thresholds: from, to.
  std::vector<std::pair<std::string, std::string>> slow_ways;
  bool flawed = false;  ///< fails by its hardware, whatever was measured
  /// judge::nearly_enough: worth a fail in the line, and nothing that is done to the job.
  bool nearly_enough = false;
  /// The same on the site's thresholds: nobody is drained, nothing counted. A user's higher wish changes
  /// nothing about that.
  bool nearly_by_site = false;
};

/// `site`: the verdict on the site's thresholds; nullopt: it cannot be had (the user chose another
/// operation).
[[nodiscard]] Finding finding_of(const judge::Verdict& verdict, const std::optional<judge::Verdict>& site,
                                 const judge::Plan& plan);

/// What was asked of Slurm; nullopt: not asked, or no answer.
struct ClusterFacts {
  std::optional<Standing> standing;
  std::optional<Placement> placement;
  std::optional<std::vector<NodeFacts>> nodes;  ///< of all partitions
  std::string partition;                        ///< the job's
  std::optional<std::uint32_t> deeds;           ///< other actions of the last hour
  bool deeds_failed = false;                    ///< asked, and no answer
  /// Nodes that other checks have announced to drain a moment ago, whether or not sinfo shows it yet;
  /// nullopt: a line of theirs cannot be read.
  std::optional<std::vector<std::string>> announced = std::vector<std::string>{};
  std::optional<Switches> switches = Switches{};  ///< nullopt: a file that cannot be understood
  std::string refused;                            ///< Slurm's own words when it would not do what was planned
  bool drain_refused = false;                     ///< it would not drain
};

struct ActionPlan {
  Action action = Action::annotate;
  Action wanted = Action::annotate;  ///< before any brake
  std::vector<std::string> exclude;  ///< the new ExcNodeList: the user's and the culprits; empty: as it was
  bool start_early = false;          ///< a helper lets the job start at once
  std::vector<std::string> drain;
  std::string drain_reason;
  bool counts = false;         ///< towards max_actions_per_hour
  std::string tail;            ///< of the line: " action=requeue requeues=1 acted=…"
  std::string brakes;          ///< of it: " brake=not-batch drain_brake=max_drain=1"; empty: none held
  std::uint32_t requeues = 0;  ///< ours, this one included

  [[nodiscard]] bool acts() const { return action != Action::annotate || !drain.empty(); }
};

/// Whether the job may be held, requeued or cancelled, by the policy and the verdict alone: then it has to be
/// known how it stands.
[[nodiscard]] bool may_refuse(const Policy& policy, const Finding& finding);

/// What else has to be asked of Slurm before it can be decided.
struct Questions {
  bool placement = false, nodes = false;
  bool switches = false;  ///< of a file
  [[nodiscard]] bool any() const { return placement || nodes || switches; }
};
[[nodiscard]] Questions questions(const Policy& policy, const Finding& finding, const JobFacts& job,
                                  const OwnHistory& own);

/// `now`: unix time, for `acted=`. `job_id`: for the reason of a drain.
[[nodiscard]] ActionPlan decide_action(const Policy& policy, const Finding& finding, const JobFacts& job,
                                       const ClusterFacts& cluster, const OwnHistory& own, std::int64_t now);

}  // namespace netcheck::prolog
