// Each node's part of a step, and what may be believed of an order or an answer about it. A node is told only
// of the teams it is in, so what it costs does not grow with the job. Pure; called by leader and follower.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session/messages.h"

namespace netcheck::session {

/// The distinct nodes of a team, in order of first appearance: the order of cards.
[[nodiscard]] std::vector<std::uint32_t> members_of(const Team& team);

using Teams = std::map<std::uint32_t, Team>;  ///< by id

/// node → the teams that it is in.
[[nodiscard]] std::map<std::uint32_t, std::vector<Team>> parts_of(const judge::Form& form);
/// node → the batches of its teams. A batch of an unknown team is left out.
[[nodiscard]] std::map<std::uint32_t, std::vector<Batch>> parts_of(const judge::Measure& measure,
                                                                   const Teams& teams);

// What does not fit, in words; nullopt: it fits. The other end may be buggy or hostile: whatever it names
// must exist.

/// An invitation, at node `self` of `nodes` with `lanes` lanes.
[[nodiscard]] std::optional<std::string> misfit(const Invite& invite, std::size_t nodes, std::uint32_t self,
                                                std::size_t lanes);
/// Cards for exactly the teams of the invitation, one for each member.
[[nodiscard]] std::optional<std::string> misfit(const Connect& connect, const Teams& teams);
/// Batches of these teams, one for each at most, none above `max_bytes`.
[[nodiscard]] std::optional<std::string> misfit(const Run& run, const Teams& teams, std::uint64_t max_bytes);
/// One card for each team that `node` was invited to.
[[nodiscard]] std::optional<std::string> misfit(const Cards& cards, const std::vector<Team>& invited);
/// `node` answers for itself, and only for batches and ranks that it was given.
[[nodiscard]] std::optional<std::string> misfit(const Answer& answer, std::uint32_t node,
                                                const std::vector<Batch>& batches, const Teams& teams);

}  // namespace netcheck::session
