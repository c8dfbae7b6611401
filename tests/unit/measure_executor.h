// The plainest executor of schedules: buffers in memory, all ranks in step. For the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "measure/pattern.h"
#include "measure/schedule.h"

namespace netcheck::testing_measure {

using Buffers = std::vector<std::vector<std::byte>>;  // by rank

inline std::vector<std::vector<Round>> rounds_of_all(const Batch& batch, std::uint32_t ranks) {
  std::vector<std::vector<Round>> by_rank;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (batch.op == Op::transfer) {
      by_rank.push_back(transfer_rounds(batch.edges, rank, batch.bytes));
      continue;
    }
    auto rounds = schedule(batch.op, batch.algorithm, ranks, rank, batch.root, batch.bytes, batch.type);
    EXPECT_TRUE(rounds) << describe(rounds.error());
    by_rank.push_back(rounds.value_or(std::vector<Round>{}));
  }
  return by_rank;
}

/// Runs all rounds in step. Fails the test when a send finds no receive.
inline void execute(const std::vector<std::vector<Round>>& by_rank, Type type, Buffers& work,
                    Buffers& landing) {
  ASSERT_TRUE(matches(by_rank));
  for (std::size_t round = 0; !by_rank.empty() && round < by_rank[0].size(); ++round) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::byte>> under_way;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      for (const auto& send : by_rank[rank].at(round).sends) {
        const auto* from = work[rank].data() + send.piece.offset;
        ASSERT_LE(send.piece.offset + send.piece.length, work[rank].size());
        under_way[{rank, send.to}].assign(from, from + send.piece.length);
      }
    }
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      for (const auto& receive : by_rank[rank].at(round).receives) {
        const auto& message = under_way.at({receive.from, rank});
        auto& into = receive.store == Store::land ? landing[rank] : work[rank];
        ASSERT_LE(receive.piece.offset + message.size(), into.size());
        const std::span target(into.data() + receive.piece.offset, message.size());
        if (receive.store == Store::add)
          add_elements(type, message, target);
        else
          std::memcpy(target.data(), message.data(), message.size());
      }
    }
  }
}

}  // namespace netcheck::testing_measure
