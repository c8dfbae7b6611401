// The script's second half: rounds of one-way matchings that tell which node, rail, direction or link is
// slow. Pure. Used by the script alone.
#pragma once

#include <optional>

#include "judge/gate.h"
#include "judge/script.h"

namespace netcheck::judge {

/// Why there are rounds at all: how many of them, and how long a round may be.
enum class Need : std::uint8_t {
  compare,  ///< the gate passed, or nothing is asked of it: two short rounds, to warn of a slow node
  blame,    ///< the gate is too slow
  find      ///< bytes did not arrive: short waits, as dead paths end none of them
};

/// The next step of the rounds; Stop when there is nothing left that could tell more, or no time.
[[nodiscard]] Step next_round(const Plan& plan, const History& history, const Gate& gate, Need need, Ns left);

/// Teams that are joined now; nullptr when a step since has spoilt them.
[[nodiscard]] const Form* joined(const History& history);
/// The same ranks in the same teams, whatever their ids.
[[nodiscard]] bool same_teams(const Form& form, const std::vector<Team>& teams);

/// Largest team id and batch id of the history, plus one: ids are unique within a check.
[[nodiscard]] std::uint32_t free_team_id(const History& history);
[[nodiscard]] std::uint32_t free_batch_id(const History& history);

/// `wanted`, cut to what is left after the answers; nullopt below `least`.
[[nodiscard]] std::optional<Ns> allow(Ns wanted, Ns least, Ns left);

}  // namespace netcheck::judge
