// The UCX fabric: one context and worker per lane, teams by worker addresses, batches by courses. In the
// fabric child alone, as the probe user.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/module.h"
#include "fabric/ucx/lane.h"
#include "fabric/ucx/rank_run.h"

namespace netcheck::fabric::ucx {

class UcxModule : public Module {
 public:
  UcxModule(const Hosting& hosting, std::string version)
      : sink_(hosting.sink),
        pulse_(hosting.pulse),
        begin_with_key_(hosting.begin_with_key),
        admit_keys_(hosting.admit_keys),
        version_(std::move(version)) {}
  void open(Options options) override;
  void invite(Team team, std::uint32_t self) override;
  void join(Join join) override;
  void run(Batch batch) override;
  /// Ends the team's batch, if one runs. Connections stay: the next team is between the same nodes, and to
  /// close one while the other side still waits on it would look like a failure there.
  void leave(std::uint32_t team) override;
  void abandon() noexcept override {}  // the host's probe kills the process instead

  bool progress() override;
  bool arm() override;
  [[nodiscard]] int event_descriptor() const override { return events_ready_; }
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Sample>> partial() const override;

 private:
  struct Member {
    Team team;
    std::uint32_t self = 0;
    std::vector<Bytes> addresses;  // by rank
  };
  struct Running {
    Batch batch;
    std::string algorithm;
    std::vector<std::unique_ptr<RankRun>> ranks;  // those of this node
    bool failed = false;
    Time exchanged{};  // since when only checks are left; zero before
  };

  [[nodiscard]] Result<void> open_lanes(const Options& options);
  [[nodiscard]] Result<Member> admit(Join join);
  [[nodiscard]] Result<void> check_batch(const Batch& batch) const;
  [[nodiscard]] Result<Running> start(const Batch& batch);
  [[nodiscard]] std::string transport_of(const Member& member) const;
  void refuse(std::uint32_t id, const Error& error);
  void give_up(Running& running, const Breakdown& breakdown);
  bool settle(Running& running);
  bool check_one(bool idle);
  bool deliver();

  Sink* sink_;
  Pulse* pulse_;
  std::function<Key()> begin_with_key_;
  std::function<void(const std::vector<Key>&)> admit_keys_;
  Key key_{};
  std::string version_;
  std::uint64_t max_bytes_ = 0;
  int events_ready_ = -1;  // epoll over the lanes
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<std::uint32_t, Member> teams_;
  std::list<Running> running_;
  std::deque<Event> events_;
};

}  // namespace netcheck::fabric::ucx
