// The executor: runs one rank's rounds of one batch over UCX, warm-up, barrier and timed operations, without
// ever waiting. Used by RankRun.
//
// A course is a sequence of steps: each operation's rounds, the barrier's rounds between warm-up and timing,
// the end's rounds.
// A step ends when its sends and receives are complete; then the next begins. Receives are posted some steps
// ahead, so that what arrives early goes straight to its place and never fills UCX's memory.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/pulse.h"
#include "fabric/ucx/lane.h"
#include "fabric/ucx/tag.h"
#include "measure/schedule.h"

namespace netcheck::fabric::ucx {

struct Plan {
  std::uint32_t team = 0, batch = 0, rank = 0;
  Type type = Type::f32;
  std::vector<Round> rounds;   ///< of one operation
  std::vector<Round> barrier;  ///< between warm-up and timing: only who sends to whom counts
  std::vector<Round> end;      ///< after the last operation, likewise: who only sends waits here
  std::uint32_t warmup = 0, iterations = 0;
  /// A rank that only sends could run ahead without end, and its data pile up at the receiver: receivers then
  /// return a credit for each operation, and senders stay two ahead at most.
  bool credits = false;
};

/// A course that failed: what UCX said and about whom.
struct Breakdown {
  ucs_status_t status = UCS_OK;
  std::optional<std::uint32_t> node;  ///< the peer's, where it is about one
  std::string detail;
};

/// What kept a course from moving as fast as its way allows.
struct Hindrance {
  Ns kept{};      ///< so long this process was kept from running
  Octets others;  ///< what others moved over the same device
};

class Course : public Poster {
 public:
  using Reach = std::function<Peer&(std::uint32_t rank)>;
  /// What a course runs on: the rail, the process, the way to the other ranks.
  struct Ground {
    Lane& lane;
    Pulse& pulse;
    Reach reach;
  };
  struct Memory {
    std::span<std::byte> work, landing;
  };
  Course(const Ground& ground, Plan plan, Memory memory);

  /// Moves on as far as it goes. True when anything moved.
  bool step();
  /// Every operation complete, nothing under way.
  [[nodiscard]] bool over() const { return !breakdown_ && current_ == total() && under_way_ == 0; }
  [[nodiscard]] const std::optional<Breakdown>& breakdown() const { return breakdown_; }
  /// No send or receive under way: the memory may go.
  [[nodiscard]] bool quiet() const { return under_way_ == 0; }
  /// Takes back the receives. Sends end when UCX lets go of them.
  void cancel();
  /// The connection to `peer` broke.
  void broke(const Peer& peer);
  /// Operations completed, warm-up included.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  /// Stops once `count` operations are complete, until release(): for a look at the result in between.
  void hold_at(std::uint64_t count) { hold_at_ = count; }
  void release() { hold_at_.reset(); }
  [[nodiscard]] bool held() const { return hold_at_ && operations_ == *hold_at_; }

  [[nodiscard]] const std::vector<Ns>& done() const { return done_; }
  [[nodiscard]] std::uint64_t received() const { return received_; }
  /// Between barrier and last operation; before that is over, since the course began.
  [[nodiscard]] Hindrance hindrance() const;
  /// From the start of the course to its end.
  [[nodiscard]] Hindrance hindrance_in_all() const;

  void completed(Post& post, ucs_status_t status, std::size_t bytes) override;

 private:
  struct Step {
    std::size_t sends = 0, receives = 0;  // under way
    bool sent = false;
    std::vector<std::pair<Piece, std::byte*>> arrived;  // to be added: where to, and where it lies
  };

  /// Sums since the process began.
  struct Tally {
    Ns kept{};
    Load load;
    std::optional<Arrivals> arrived = {};  ///< at its start and end alone: it takes long to find out
  };

  [[nodiscard]] Tally tally() const { return {pulse_.kept(), lane_.load()}; }
  [[nodiscard]] Tally whole_tally() const;
  [[nodiscard]] Hindrance since(const Tally& before) const;
  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] std::uint64_t barrier_begin() const { return plan_.warmup * plan_.rounds.size(); }
  [[nodiscard]] std::uint64_t end_begin() const { return total() - plan_.end.size(); }
  [[nodiscard]] bool in_barrier(std::uint64_t step) const;
  [[nodiscard]] bool in_end(std::uint64_t step) const { return step >= end_begin(); }
  /// No data, but tokens: only who sends to whom counts.
  [[nodiscard]] bool of_tokens(std::uint64_t step) const { return in_barrier(step) || in_end(step); }
  [[nodiscard]] const std::vector<Round>& rounds_of(std::uint64_t step) const;
  [[nodiscard]] std::size_t round_index(std::uint64_t step) const;
  [[nodiscard]] const Round& round(std::uint64_t step) const;
  [[nodiscard]] bool may_receive_ahead(std::uint64_t step) const;
  void connect();
  void post_receives();
  void post_receives_of(std::uint64_t step);
  void post_sends_of(std::uint64_t step);
  void add_arrived(Step& step) const;
  void finish_step();
  void finish_operation();
  void pass_barrier();
  [[nodiscard]] bool waits_at_end() const;
  [[nodiscard]] bool may_begin();
  void expect_credits(std::uint64_t operation);
  void give_credits(std::uint64_t operation);

  void send(Kind kind, std::uint32_t to, std::span<std::byte> bytes, std::uint64_t step);
  void receive(Kind kind, std::uint32_t from, std::span<std::byte> bytes, std::uint64_t step,
               std::int64_t target = -1);
  Post& take_post(Kind kind, std::span<std::byte> bytes, std::uint64_t step);
  void fail(ucs_status_t status, const Peer* peer);

  Lane& lane_;
  Pulse& pulse_;
  Plan plan_;
  Memory memory_;
  Reach reach_;
  bool adds_ = false;
  std::vector<std::byte> staging_;  // two slots: what is to be added arrives here
  std::size_t slot_ = 0;            // bytes of one
  std::vector<std::uint32_t> senders_,
      receivers_;  // with credits: who sends to this rank, and to whom it does
  std::map<std::uint64_t, std::size_t> credits_due_;  // by operation

  std::uint64_t current_ = 0, operations_ = 0;
  std::optional<std::uint64_t> hold_at_;
  std::deque<Step> steps_;  // from current_ on: those whose receives are posted
  std::deque<Post> posts_;
  std::vector<Post*> free_;
  std::map<std::uint32_t, Peer*> partners_;  // by rank: who is sent to or received from
  std::size_t under_way_ = 0, receives_posted_ = 0;
  bool began_ = false;  // the operation that begins at current_ has its credits asked for
  Time started_{};
  Tally at_start_, at_barrier_;
  std::optional<Tally> at_end_;
  std::vector<Ns> done_;
  std::uint64_t received_ = 0;
  std::optional<Breakdown> breakdown_;
};

}  // namespace netcheck::fabric::ucx
