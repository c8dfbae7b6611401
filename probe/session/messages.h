// What leader and follower say to each other once they have proved themselves. CBOR frames; strict readers.
// Every answer repeats the step it answers, so that a late one is known as such. Used by both machines and by
// the driver; as the probe user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contract/inventory.h"
#include "contract/job.h"
#include "fabric/fabric.h"
#include "judge/history.h"

namespace netcheck::session {

/// What one member node publishes of itself for one team (fabric::Invited).
struct TeamCard {
  std::uint32_t team = 0;
  Bytes card;
  friend bool operator==(const TeamCard&, const TeamCard&) = default;
};
/// The cards of all members of one team, in the order that fabric::Join wants.
struct TeamCards {
  std::uint32_t team = 0;
  std::vector<Bytes> cards;
  friend bool operator==(const TeamCards&, const TeamCards&) = default;
};

// --- follower → leader ------------------------------------------------------------------------------------

/// First, before anything can hang: who this is, and the settings that all nodes must share.
struct Present {
  Inventory inventory;
  std::string agreement;           ///< Assignment::agreement
  std::vector<std::string> terms;  ///< the same as "key=value", to name a difference
  Ns remaining{};                  ///< until this node gives up on the check; its clock is not the leader's
  std::string declined;            ///< Assignment::declined
};
/// The fabric is open.
struct Opened {
  fabric::Ready ready;
  Ns took{};
  std::optional<judge::NodeHardware> hardware;  ///< nullopt: it could not look
};
/// The fabric would not open.
struct Broken {
  judge::Trouble trouble = judge::Trouble::refused;
  std::string detail;
};
/// To Invite: one card per team.
struct Cards {
  std::uint32_t step = 0;
  std::vector<TeamCard> cards;
};
/// Longest text of what a team's bytes go over: a word for each device of a large node.
inline constexpr std::size_t kMaxTransport = 512;
/// To Connect and to Run, and to an Invite that ended in trouble: this node's part is over.
struct Answer {
  std::uint32_t step = 0;
  judge::NodeOutcome outcome;
  std::string transport;  ///< of a join
};

// --- leader → follower ------------------------------------------------------------------------------------

/// The teams that this node is in; those of the Invite before are over.
struct Invite {
  std::uint32_t step = 0;
  std::vector<Team> teams;
  Ns allowance{};  ///< from receipt: what is not done by then is given up on
};
struct Connect {
  std::uint32_t step = 0;
  std::vector<TeamCards> teams;  ///< those of the Invite
  Ns allowance{};
};
struct Run {
  std::uint32_t step = 0;
  std::vector<Batch> batches;  ///< one per team at most
  Ns allowance{};
};
/// The end: the verdict's name and the line for the record and the notice.
struct Close {
  std::string verdict;
  std::string line;
};

using Message = std::variant<Present, Opened, Broken, Cards, Answer, Invite, Connect, Run, Close>;

/// "present", "run", … as in logs.
[[nodiscard]] std::string_view name(const Message& message);

[[nodiscard]] Bytes encode(const Message& message);
/// Checked for types and sizes here; against roster and teams by the machines (parts.h).
[[nodiscard]] Result<Message> decode(const Bytes& frame, std::string_view from);

}  // namespace netcheck::session
