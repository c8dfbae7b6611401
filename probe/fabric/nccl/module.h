// The NCCL fabric: all of the job's GPUs on this node in one process, communicators that never block, batches
// by courses. In the fabric child alone, as the probe user.
//
// NCCL is the library that hangs: in its init where a rank is missing, in an operation where one went away,
// even in its abort. So whatever waits is asked, never waited for; and what will not end is left to the
// probe, which kills this process (abandon).
#pragma once

#include <deque>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/module.h"
#include "fabric/nccl/communicator.h"
#include "fabric/nccl/course.h"
#include "fabric/nccl/opening.h"
#include "system/descriptor.h"

namespace netcheck::fabric::nccl {

class NcclModule : public Module {
 public:
  explicit NcclModule(const Hosting& hosting);
  void open(Options options) override;
  void invite(Team team, std::uint32_t self) override;
  void join(Join join) override;
  void run(Batch batch) override;
  /// A communicator stays: to end one takes its other ranks, which may have gone. Where a batch of the team
  /// still runs, or it is being formed, its GPUs are in it for ever: then nothing more is taken on, and a
  /// fresh child is needed.
  void leave(std::uint32_t team) override;
  void abandon() noexcept override {}  // the host's probe kills the process instead

  bool progress() override;
  bool arm() override;
  [[nodiscard]] int event_descriptor() const override { return timer_.get(); }
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Sample>> partial() const override;

 private:
  struct Joining {
    Team team;
    std::unique_ptr<Forming> forming;
    Time since{};
    std::size_t log_before = 0;
  };
  struct Member {
    Team team;
    std::vector<Seat> seats;
  };
  struct Running {
    Batch batch;
    std::vector<std::unique_ptr<RankRun>> ranks;
    std::vector<std::unique_ptr<Course>> courses;
    bool checking = false;
  };

  [[nodiscard]] Result<void> begin_open(const Options& options);
  [[nodiscard]] Result<Bytes> card_for(const Team& team, std::uint32_t self) const;
  [[nodiscard]] Result<NcclId> admit(const Join& join) const;
  [[nodiscard]] Result<std::vector<Seat>> seats_of(const Team& team, std::uint32_t self) const;
  [[nodiscard]] Result<void> check_batch(const Batch& batch) const;
  [[nodiscard]] Result<Running> start(const Batch& batch);
  [[nodiscard]] std::vector<Sample> samples_of(const Running& running) const;
  void refuse(std::uint32_t id, const Error& error);
  void refuse(std::uint32_t id, Breakdown breakdown);
  bool settle_open();
  bool settle(Joining& joining);
  bool settle(Running& running);
  [[nodiscard]] tl::expected<bool, Breakdown> check_results(Running& running);
  bool deliver();

  Sink* sink_;
  Pulse* pulse_;
  std::function<void(const std::vector<Address>&)> admit_;
  system::Descriptor timer_;
  Log log_;
  Settings settings_;
  std::future<Result<Opened>> opening_;
  std::optional<Opened> opened_;
  std::string spoilt_;  // why nothing more can be done here; empty while it can
  std::list<Joining> joining_;
  std::vector<std::unique_ptr<Forming>> unformed_;  // for ever: NCCL may still write to them
  std::map<std::uint32_t, Member> teams_;
  std::list<Running> running_;
  std::deque<fabric::Event> events_;
};

}  // namespace netcheck::fabric::nccl
