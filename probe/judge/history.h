// What a check knew before its first byte (Plan) and what happened since (History): all that the script, the
// blame and the verdict may look at. Pure values; kept in the record, so that a check can be judged again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contract/units.h"
#include "judge/node_hardware.h"
#include "judge/trouble.h"
#include "measure/batch.h"

namespace netcheck::judge {

/// The parts of a check, in order; named in verdicts and records.
enum class Phase : std::uint8_t { start, rendezvous, open, connect, gate, blame, finish };

/// What a verdict is measured against. Rates are bus bandwidth of the whole team: the sum over a node's
/// rails.
struct Thresholds {
  std::optional<Rate> min;  ///< effective: the site's or the user's, whichever asks more. Decides the verdict
  std::optional<Rate> site_floor;    ///< the site's alone. Blame uses this one: a user's wish blames no node
  std::optional<Rate> min_per_rail;  ///< the site's, for each rail's bus bandwidth; blame uses it too
  std::optional<Rate> min_per_pair;  ///< the site's, for one way between two nodes, over all rails
  // Of the job's limit (judge/job_limit.h): what they come to is in those above once set_bars has been
  // called.
  std::optional<double> min_fraction, min_fraction_per_rail;
  std::optional<Rate> nominal;            ///< the site's word for what a node's rails could reach together
  std::string transport;                  ///< "IB": what bytes must go over between nodes; "": anything
  std::vector<std::string> unattainable;  ///< "min: 4000Gbps": dropped, above the limit
};

struct NodePlan {
  std::string name;
  std::vector<std::string> lanes;        ///< what its fabric opened: "eth0", "mlx5_0:1"
  std::string machine;                   ///< class of hardware: only nodes of one class are compared
  std::optional<NodeHardware> hardware;  ///< what it says of itself; nullopt: it could not look
};

/// How the lanes of nodes become teams.
enum class Teaming : std::uint8_t {
  per_lane,   ///< one team for each lane: every rail is measured by itself
  over_lanes  ///< one team over all lanes of its nodes: one communicator, where each costs seconds to form
              ///< (NCCL)
};

struct Plan {
  std::vector<NodePlan> nodes;  ///< NodeList order; every node of the job
  Thresholds thresholds;
  Weights weights;         ///< what the site makes of flawed hardware
  Op op = Op::all_gather;  ///< of the gate
  Type type = Type::f32;
  std::string algorithm;         ///< "" = default
  Ns slice{};                    ///< time the gate may take
  Ns budget{};                   ///< time left for gate and blame together when the script begins
  std::uint32_t group_size = 8;  ///< beyond it, two partitions into groups (facts in docs/measurement.md)
  Teaming teaming = Teaming::per_lane;
  std::uint32_t max_world =
      0;  ///< most ranks of a team over lanes, but never under two nodes'; 0: any number
  /// What next() counts for a Form. UCX: teams take tens of milliseconds, on a loaded node several hundred.
  Ns forming = std::chrono::milliseconds(400);
  std::uint64_t max_bytes = 0;  ///< the smallest Ready::max_bytes
  std::uint64_t seed = 0;
};

// --- what the script asks for ----------------------------------------------------------------------------

/// New teams, all at once; what was before is left. No rank is in two teams.
struct Form {
  Phase phase = Phase::connect;
  std::vector<Team> teams;
  friend bool operator==(const Form&, const Form&) = default;
};
/// One batch per team at most, all at once.
struct Measure {
  Phase phase = Phase::gate;
  std::vector<Batch> batches;
  Ns allowance{};           ///< a rank that is not done by then is given up on (its fabric is abandoned)
  std::uint32_t round = 0;  ///< of blame, 0-based
  bool back = false;        ///< of blame: the second half-round, the same pairs the other way
  bool inside = false;  ///< of blame: no pairs of nodes, but the lanes of each among themselves (inside.h)
  friend bool operator==(const Measure&, const Measure&) = default;
};
struct Stop {
  friend bool operator==(const Stop&, const Stop&) = default;
};
using Step = std::variant<Form, Measure, Stop>;

// --- what came back ---------------------------------------------------------------------------------------

struct NodeOutcome {
  std::uint32_t node = 0;
  std::vector<Sample> samples;       ///< of its ranks in this step; partial when there was trouble
  std::vector<std::uint32_t> batch;  ///< samples[i] belongs to the batch with id batch[i]
  std::optional<Trouble> trouble;
  std::string detail;  ///< of the trouble, in words; printable
  Ns took{};
  std::string transport;                 ///< of a Form, where it is another than Done::transport
  std::map<std::string, Ns> spent = {};  ///< of a Form, as the fabric's library says it was; for the record
};

struct Done {
  Step step;                          ///< Form or Measure
  std::vector<NodeOutcome> outcomes;  ///< of the nodes that answered
  std::string transport;              ///< as the module named it ("tcp/eth0"); of Form
  Ns took{};
};

/// A node that was never there, or whose control channel fell silent.
struct Missing {
  std::uint32_t node = 0;
  Phase phase = Phase::rendezvous;
  std::string detail;
};

/// Why nothing was measured, or nothing more, though nobody is missing: nodes that do not fit together
/// (versions, settings, fabric modules), one that takes no part, a job that is not to be measured or has one
/// node only, a signal. The leader decides that (session/leader.cpp), not the judge: whatever was measured
/// until then, the verdict is inconclusive and says `why`.
struct Refusal {
  Phase phase = Phase::rendezvous;
  std::string why;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct History {
  std::vector<Done> done;
  std::vector<Missing> missing;
  std::optional<Refusal> refusal;
};

[[nodiscard]] Json to_json(const Plan& plan);
[[nodiscard]] Json to_json(const History& history);
// Strict, with bounds checked against the plan (node indices, ranks). They throw Malformed.
[[nodiscard]] Plan plan_from_json(const Json& value);
[[nodiscard]] History history_from_json(const Json& value, const Plan& plan);

}  // namespace netcheck::judge
