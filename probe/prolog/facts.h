// What the controller says about a job and its cluster, as the decision needs it: read from columns whose
// fields are numbers, enumerations, or names that an administrator chose. Pure. Anything that is not
// understood is an error or nullopt, never a guess: without the fact the action is not taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/error.h"
#include "contract/job.h"
#include "prolog/columns.h"

namespace netcheck::prolog {

/// How a job stands.
struct Standing {
  std::string state;           ///< compact: "R", "PD", "CG"
  std::string reason;          ///< why it is pending: "BeginTime", "BadConstraints", cut at 19 bytes
  std::uint64_t priority = 0;  ///< 0: held, or it can never run
  std::uint32_t restarts = 0;
  std::uint32_t nodes = 0;
  bool may_be_requeued = false;
  bool contiguous = false;
  bool wants_features = false, wants_gres = false;
  /// What it asks of features is for its nodes together ("[rack1*2&rack2]"), or longer than the column.
  bool constrained_together = false;

  /// In its prolog: neither ended nor held nor being requeued by somebody else.
  [[nodiscard]] bool running() const { return state == "R" || state == "CF"; }
};
/// squeue's --Format for it, how long each row is, and the one row whose JobID is `job`.
inline constexpr std::size_t kStandingBytes = 10 * kColumn;
[[nodiscard]] std::string standing_format();
[[nodiscard]] Result<Standing> read_standing(std::string_view text, std::uint32_t job);

/// Where a job may run.
struct Placement {
  bool reserved = false;              ///< it runs in a reservation
  std::string excluded_list;          ///< the user's --exclude, as Slurm folds it
  std::vector<std::string> excluded;  ///< the same, by node
  std::vector<std::string> required;  ///< the user's --nodelist
};
/// squeue's --format for it (the long one has no field for exclusions, in 22.05 at least).
[[nodiscard]] std::string placement_format();
[[nodiscard]] Result<Placement> read_placement(std::string_view text, std::uint32_t job);

/// A node in a partition.
struct NodeFacts {
  std::string name, partition;
  std::string state;  ///< "idle", "allocated", "drained", "down*"
  std::uint64_t cpus = 0, memory = 0;
  std::string gres, features;
  std::string reason;  ///< "none", or why it is drained or down
};
/// sinfo's --Format for it.
[[nodiscard]] std::string nodes_format();
/// All of sinfo's rows. Error: no row, or one that is none.
[[nodiscard]] Result<std::vector<NodeFacts>> read_nodes(std::string_view text);

/// Every reason of ours begins with this.
inline constexpr std::string_view kDrainReason = "netcheck: ";
[[nodiscard]] bool drained_by_us(const NodeFacts& node);

/// An action of ours, as its job's line tells it: `acted=UNIX_TIME`, and `drain=NODES` where it drains.
struct Deed {
  std::uint32_t job = 0;
  std::int64_t time = 0;
  std::string drain = {};  ///< as it stands in the line; empty: nothing drained
  /// Which deed it is; not what was done.
  friend auto operator<=>(const Deed& a, const Deed& b) {
    return std::pair(a.job, a.time) <=> std::pair(b.job, b.time);
  }
  friend bool operator==(const Deed& a, const Deed& b) { return (a <=> b) == 0; }
};
/// squeue's --Format for live jobs, and sacct's --format for ended ones: both have the id, then the comment.
[[nodiscard]] std::string deeds_format();
inline constexpr const char* kSacctFields = "JobIDRaw,AdminComment";
/// Of squeue's and sacct's answers together, each once, those since `since`, without `own`.
[[nodiscard]] std::vector<Deed> read_deeds(std::string_view squeue, std::string_view sacct,
                                           std::int64_t since, const Deed& own);
/// The nodes that these deeds, those since `since`, have drained or are about to. nullopt: one of the lines
/// is cut, so they are not known.
[[nodiscard]] std::optional<std::vector<std::string>> drains_announced(const std::vector<Deed>& deeds,
                                                                       std::int64_t since);

/// What a job's own line still says of its earlier runs.
struct OwnHistory {
  std::uint32_t requeues = 0;  ///< ours
  std::string previous;        ///< "fail(slow=n3)"; empty: no run before, or none refused
};
/// `comment`: all of AdminComment as this run found it. Never throws anything away that counts.
[[nodiscard]] OwnHistory read_own_history(std::string_view comment);

}  // namespace netcheck::prolog
