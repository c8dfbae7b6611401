// The gate as far as it has come: sizes measured, whether the size has stopped growing, what the figure is.
// Pure. The script asks it what to do next, the verdict what the figure is worth: both read the same.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "judge/figures.h"

namespace netcheck::judge {

enum class GateState : std::uint8_t {
  forming,     ///< the next thing is to form (or re-form) the teams of `which`
  connecting,  ///< teams are formed, nothing has run on them
  growing,     ///< first partition: another, larger size fits
  crossing,    ///< second partition connected: one batch at the size found
  ended,       ///< every partition has its figure
  stalled,     ///< somebody waited for bytes in vain: find out where
  broken       ///< a step did not bring what it must, for no fault of the network
};

/// A partition measured once more, after rounds that isolated nobody.
struct Again {
  std::vector<GateSize> sizes;  ///< those that ended
  bool vain = false;            ///< one did not
};

struct Gate {
  GateState state = GateState::forming;
  int which = 0;                               ///< partition that is or was under way last
  std::vector<GateSize> sizes;                 ///< first partition, in order
  std::optional<GateSize> second;              ///< second partition at the size found
  std::optional<Ns> connected;                 ///< time of one operation of the connect batch just done
  std::map<int, Again> again;                  ///< by partition
  Ns spent{};                                  ///< steps of connect and gate before the rounds
  Ns spent_again{};                            ///< its batches after them
  [[nodiscard]] const GateSize* best() const;  ///< of `sizes`: nullptr when none
  /// A partition's figure before the rounds. nullptr: none.
  [[nodiscard]] const GateSize* first(int partition) const;
  /// A partition's figure: what was found, or what was found again, whichever is better. nullptr: none.
  [[nodiscard]] const GateSize* figure(int partition) const;
};

[[nodiscard]] Gate read_gate(const Plan& plan, const History& history);

/// Figures of the gate so far; nullopt when none completed.
[[nodiscard]] std::optional<Figures> figures_of(const Plan& plan, const History& history);

/// The next batch of the gate: size before the operation's own rounding, and iterations. nullopt: no further
/// size fits the slice or the memory, or the gain has become small.
struct NextSize {
  std::uint64_t bytes = 0;
  std::uint32_t iterations = 0;
  Ns predicted{};  ///< the whole batch, warm-up included
};
[[nodiscard]] std::optional<NextSize> next_size(const Plan& plan, const Gate& gate);

/// The second partition's batch: the size found. nullopt when the first found none.
[[nodiscard]] std::optional<NextSize> crossing_size(const Plan& plan, const Gate& gate);

/// A gate that failed and whose rounds isolated nobody is measured once more, as one slow moment is no slow
/// network: the partition to measure, that which is joined first; nullopt: none is below what is asked, or
/// one is so for the second time.
[[nodiscard]] std::optional<int> doubtful(const Plan& plan, const Gate& gate);
/// The batch for it: the size found, once. Where time alone had ended the growth it goes on, for as long as
/// the gate may take. nullopt: nothing more to learn, or no time for it.
[[nodiscard]] std::optional<NextSize> size_again(const Plan& plan, const Gate& gate, int partition);
/// Below what is asked, also when measured again, whatever the processes were kept from running, and no
/// larger size would change that or fits the gate's time.
[[nodiscard]] bool failed_twice(const Plan& plan, const Gate& gate);

/// Size of a batch that only connects.
[[nodiscard]] std::uint64_t connect_bytes(const Plan& plan);

/// Time that the gate may take in all: the slice, but never more than half of the budget.
[[nodiscard]] Ns gate_time(const Plan& plan);

/// Largest message: the plan's, or 64 MiB where nobody said.
[[nodiscard]] std::uint64_t byte_cap(const Plan& plan);

}  // namespace netcheck::judge
