// What will be done and why: every effective value with its source. Pure: built-in values, then the site's
// file, then those of its rules that match the job, in order, then the user's request, which may ask for more
// and never for less.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/flaw.h"
#include "contract/units.h"
#include "policy/request.h"

namespace netcheck {

enum class Mode : std::uint8_t { opt_in, always };
enum class Shared : std::uint8_t { skip, measure };
/// What becomes of GPUs that are not what a figure is for: slices of MIG, or used by others.
enum class OnGpu : std::uint8_t { refuse, measure };
enum class OnInconclusive : std::uint8_t { annotate, requeue_once };
[[nodiscard]] std::string_view name(Mode mode);              ///< "opt-in", "always"
[[nodiscard]] std::string_view name(Shared shared);          ///< "skip", "measure"
[[nodiscard]] std::string_view name(OnGpu action);           ///< "refuse", "measure"
[[nodiscard]] std::string_view name(OnInconclusive action);  ///< "annotate", "requeue_once"

/// "1%" of something, or a number of it.
struct Share {
  double percent = 0;       ///< where it is one
  std::uint32_t count = 0;  ///< where percent is 0
  /// Rounded down, but at least 1 of a share in percent.
  [[nodiscard]] std::uint32_t of(std::uint32_t total) const;
  friend bool operator==(const Share&, const Share&) = default;
};

/// Every setting of a check. Defaults are the built-in values; etc/netcheck.toml documents each.
struct Policy {
  // [threshold]
  std::string profile = "none";      ///< its values are in those below
  std::optional<Rate> min;           ///< effective: max of the site's and the user's
  std::optional<Rate> site_min;      ///< the site's alone
  std::optional<Rate> min_per_rail;  ///< of each rail's bus bandwidth
  std::optional<Rate> min_per_pair;  ///< of one way between two nodes, all rails together
  /// Of what the hardware could nominally reach: count where that is known and RDMA carries the bytes
  std::optional<double> min_fraction, min_fraction_per_rail;
  std::optional<Rate> nominal;  ///< what a node's rails could reach together, where netcheck cannot know
  // [findings]
  Weights findings;
  // [hardware]
  std::optional<std::uint32_t> gpus, ports;  ///< what each node has; none: only the others are a measure
  std::string nccl_topology;  ///< NCCL's description of the nodes, which counts for what is near to what
  // [check]
  std::string op = "auto";
  Ns time = std::chrono::seconds(8);       ///< whole deadline: Slurm 25.11 prints "Prolog hung" after 8 s
  Ns max_time = std::chrono::seconds(20);  ///< what a user's time= may reach
  Ns rendezvous = std::chrono::seconds(3);
  Ns slice = std::chrono::milliseconds(1500);  ///< measuring time of a pass
  std::uint32_t group_size = 8;
  // [when]
  Mode mode = Mode::opt_in;
  Shared shared = Shared::skip;
  Ns min_walltime = std::chrono::minutes(1);
  Ns min_interval{};  ///< 0: every job is measured
  Ns settle = std::chrono::minutes(2);
  std::vector<std::string> allow_users, allow_accounts, allow_groups;  ///< all empty: everybody
  std::string kill_switch;  ///< beside CONFIG's folder's "disabled"
  // [users]
  std::vector<Action> user_actions;  ///< beside the site's own
  std::optional<Rate> lowest_min, highest_min;
  // [action]
  Action action = Action::annotate;
  bool drain = false;
  bool dry_run = false;
  OnInconclusive on_inconclusive = OnInconclusive::annotate;
  Action requeue_fallback = Action::annotate;
  bool between_switches = false;  ///< refuse also for what is slow only between leaf switches
  bool early_start = true;        ///< help a requeued job to start at once (prolog/early_start.h)
  std::uint32_t max_requeues = 2;
  std::uint32_t max_drain = 1;
  Share max_drained_total{.percent = 1};
  std::uint32_t max_actions_per_hour = 20;
  // [probe]
  std::string probe_user = "netcheck";
  std::string module_directory;  ///< "" = the build's own libdir/netcheck
  std::uint64_t memory = 0;      ///< bytes a message buffer may take; 0 = the module's default
  // [peers]
  std::uint16_t first_port = 860, last_port = 899;  ///< below 1024: no local user can squat on them
  std::string address = "{node}";                   ///< template: how a node is reached
  std::map<std::string, std::string> addresses;     ///< exceptions by node
  std::string credential = "munge";                 ///< or "key"
  std::string key_file;                             ///< for credential = "key"
  std::string munge_socket;                         ///< "" = libmunge's default
  // [fabric]
  std::string fabric = "auto";       ///< "auto": by what the job has (fabric_of); or a module's name
  std::vector<std::string> devices;  ///< globs, in rail order; empty: chosen (docs/design.md)
  std::vector<std::string> exclude;  ///< globs on top of the built-in ones
  // [nccl]: the fabric over GPUs
  std::string nccl_library, nccl_driver, nccl_watcher;  ///< paths; "": where the loader finds them
  std::map<std::string, std::string> nccl_env;          ///< NCCL_* = value
  std::string nccl_algorithm = "Ring";
  std::uint32_t max_world = 64;  ///< ranks of a communicator, but never under those of two nodes
  OnGpu mig = OnGpu::refuse, busy = OnGpu::refuse;
  std::string require_transport;  ///< "IB": what NCCL's bytes must go over between nodes; "": anything
  // [record]
  std::string run_directory = "/run/netcheck";
  std::string spool_dir;  ///< where records are kept for good; "": nowhere
  bool annotate = true;   ///< write AdminComment

  std::map<std::string, std::string>
      sources;  ///< "check.time" → "/etc/netcheck/netcheck.toml:12", "rule 2 at …:40", "profile hdr at …:9",
                ///< "built-in", "the job's request"

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// What rules look at. nullopt: not known.
struct JobKind {
  std::optional<std::string> partition, account;
  std::optional<std::uint32_t> nodes;
  std::optional<std::string> gpu;       ///< the model, "NVIDIA H100 80GB HBM3"; "" where there is none
  std::optional<std::string> hardware;  ///< the class of hardware, as in a record's inventory ("machine")
};

/// One [[rule]] of the file.
struct Rule {
  std::string source;  ///< "rule 2 at /etc/netcheck/netcheck.toml:40"
  // Conditions: all must hold. Empty: any. Globs, one of which must match.
  std::vector<std::string> partition, account, gpu, hardware;
  std::uint32_t least_nodes = 0, most_nodes = UINT32_MAX;
  // What it sets.
  Policy values;
  std::map<std::string, std::string> sets;  ///< "check.time" → source; its values are in `values`
};

enum class Match : std::uint8_t { no, yes, unknown };
/// Whether the rule is for this kind of job. `why`: the condition that does not hold, or what would have to
/// be known ("partition is 'debug'").
[[nodiscard]] Match matches(const Rule& rule, const JobKind& kind, std::string& why);

/// The site's file as read.
struct Site {
  Policy defaults;
  std::vector<Rule> rules;
  std::string file;
};

/// The site's file, as text; keys are "[section] field" as above. Unknown keys, wrong types and values out of
/// range are errors with file and line.
[[nodiscard]] Result<Site> parse_config(std::string_view toml, std::string_view file_name);

/// The policy for one kind of job: the defaults and every rule that is known to match, in order. Error: what
/// the rules make of it does not fit together.
[[nodiscard]] Result<Policy> resolve(const Site& site, const JobKind& kind);

/// "min_fraction counts where …"; "" where no fraction is asked for.
[[nodiscard]] std::string where_fractions_count(const Policy& policy);

/// What in a policy has no effect, in words, one line each.
[[nodiscard]] std::vector<std::string> without_effect(const Policy& policy);
/// The same of the site's file: of its sections, and of what each rule makes of them.
[[nodiscard]] std::vector<std::string> without_effect(const Site& site);

/// A part of the request that was not granted as it stands.
struct Wish {
  enum class Kind : std::uint8_t {
    min_below_site,
    min_too_low,
    min_too_high,
    action,
    time_above,
    time_below
  };
  Kind kind{};
  std::string text;    ///< "time=60s: the site's maximum is 20s"
  std::string counts;  ///< in its place: "20s"
  /// For a job that runs all the same: "time=60s: the site's maximum is 20s, so 20s counts".
  [[nodiscard]] std::string note() const { return text + ", so " + counts + " counts"; }
  /// A job with this wish is refused at submission; the others are granted in part, and said so.
  [[nodiscard]] bool forbidden() const { return kind < Kind::time_above; }
  friend bool operator==(const Wish&, const Wish&) = default;
};

/// The request applied: a higher `min`, a longer `time` up to `max_time`, any `op`, an action among those
/// that the site allows. What is not granted is in `wishes`; the site's value stands there.
[[nodiscard]] Policy apply(Policy policy, const Request& request, std::vector<Wish>& wishes);

/// Those wishes that no rule could still grant, whatever is not known of the job: what a user can be told at
/// submission, where a partition may not be known.
[[nodiscard]] std::vector<Wish> not_granted_for_sure(const Site& site, const JobKind& kind,
                                                     const Request& request);

/// The module for a job on this node.
[[nodiscard]] std::string fabric_of(const Policy& policy, bool has_gpus);

/// How a node is reached: the site's exception, else its template with {node} filled in.
[[nodiscard]] std::string address_of(const Policy& policy, const std::string& node);

/// Hash of the settings that decide what is measured over what and what is asked of the hardware, and so
/// whether a pass still says something (hex).
[[nodiscard]] std::string measured_with(const Policy& policy);

/// Hash of the settings on which all nodes must agree (hex); a difference is named before anything can hang
/// on it.
[[nodiscard]] std::string agreement(const Policy& policy);
/// The same settings as "key=value" lines, to name the difference.
[[nodiscard]] std::vector<std::string> agreement_terms(const Policy& policy);

}  // namespace netcheck
