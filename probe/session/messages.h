// What leader and follower say to each other once they have proved themselves. CBOR frames; strict readers.
// Every answer repeats the step it answers, so that a late one is known as such.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "contract/inventory.h"
#include "fabric/fabric.h"
#include "judge/history.h"

namespace netcheck::session {

// follower → leader
struct Present {
  Inventory inventory;
  std::string agreement;
  std::vector<std::string> terms;
};  ///< first: before anything can hang
struct Opened {
  fabric::Ready ready;
  Ns took{};
};
struct Card {
  std::uint32_t step = 0;
  Bytes card;
  std::uint32_t team = 0;
};
struct Answer {
  std::uint32_t step = 0;
  judge::NodeOutcome outcome;
  std::string transport;
};  ///< of join and of run; complete for this node
struct Broken {
  judge::Trouble trouble = judge::Trouble::refused;
  std::string detail;
};  ///< the fabric would not open

// leader → follower
struct Invite {
  std::uint32_t step = 0;
  std::vector<Team> teams;
};  ///< the teams that this node is in
struct Connect {
  std::uint32_t step = 0;
  std::vector<fabric::Join> joins;
  Ns allowance{};
};
struct Run {
  std::uint32_t step = 0;
  std::vector<Batch> batches;
  Ns allowance{};
};
struct Close {
  std::string verdict;
  std::string line;
};  ///< "pass", "fail", "inconclusive"; the line for the record and notice

using Message = std::variant<Present, Opened, Card, Answer, Broken, Invite, Connect, Run, Close>;

[[nodiscard]] Bytes encode(const Message& message);
[[nodiscard]] Result<Message> decode(const Bytes& frame, std::string_view from);

}  // namespace netcheck::session
