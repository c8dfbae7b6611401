// Reading a history: which samples belong to which batch, and whether a step ended well. Pure. Used by the
// script, the blame and the verdict, so that all three see the same evidence.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "judge/history.h"

namespace netcheck::judge {

/// One batch of a step with what its ranks reported. Points into the history it was read from.
struct Reading {
  const Batch* batch = nullptr;
  const Team* team = nullptr;
  std::vector<const Sample*> samples;  ///< by rank of the team; nullptr: none came

  /// Every rank that is timed (all; of a transfer the receivers) has all its completion times.
  [[nodiscard]] bool complete() const;
};

/// Teams of a history by id.
using TeamIndex = std::unordered_map<std::uint32_t, const Team*>;
[[nodiscard]] TeamIndex teams_of(const History& history);

/// The readings of a step; none for a Form. Samples that do not fit (a batch or rank that is not the node's)
/// are left out: a node speaks for itself only.
[[nodiscard]] std::vector<Reading> readings(const TeamIndex& teams, const Done& done);

/// Two nodes of a transfer, the sender first.
struct Pair {
  std::uint32_t from = 0, to = 0;
  friend auto operator<=>(const Pair&, const Pair&) = default;
};
/// The pairs of a half-round, as they sent, each once however many rails; none of a step of the gate.
[[nodiscard]] std::vector<Pair> pairs_of(const Measure& measure, const TeamIndex& teams);

/// `done` timed at every one of `iterations`.
[[nodiscard]] bool complete(const Sample& sample, const Batch& batch);

/// no_bytes alone is evidence about the network; the other troubles are about the fabric process.
[[nodiscard]] bool is_evidence(Trouble trouble);

/// First outcome of a step with a trouble that is no evidence; nullptr when there is none.
[[nodiscard]] const NodeOutcome* broken(const Done& done);
/// Whether some node gave up waiting for bytes in this step.
[[nodiscard]] bool stalled(const Done& done);

/// The step as a Measure; nullptr for a Form.
[[nodiscard]] const Measure* measure_of(const Done& done);
[[nodiscard]] const Form* form_of(const Done& done);

}  // namespace netcheck::judge
