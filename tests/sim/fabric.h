// A Fabric whose child process is modelled: it takes its time, and hangs, dies or refuses where the scenario
// says so.
#pragma once

#include <array>
#include <vector>

#include "clock.h"
#include "dataplane.h"
#include "dice.h"
#include "fabric/fabric.h"
#include "scenario.h"

namespace netcheck::sim {

class SimFabric : public fabric::Fabric {
 public:
  SimFabric(Clock& clock, DataPlane& data, const Scenario& scenario, Dice& dice, std::uint32_t node,
            fabric::Sink sink)
      : clock_(clock), data_(data), scenario_(scenario), dice_(dice), node_(node), sink_(std::move(sink)) {}

  void open(fabric::Options options) override;
  void invite(Team team, std::uint32_t self) override;
  void join(fabric::Join join) override;
  void run(Batch batch) override;
  void leave(std::uint32_t team) override;
  void abandon() noexcept override;

 private:
  enum class Call : std::uint8_t { open, invite, join, run };
  enum class Child : std::uint8_t { none, lives, hangs, dead };
  struct Pending {
    Call call = Call::open;
    std::uint32_t id = 0;
    friend bool operator==(const Pending&, const Pending&) = default;
  };

  /// Notes the request. False when the child will not do it: it hangs, is dead, or refuses.
  [[nodiscard]] bool accept(Pending request);
  [[nodiscard]] bool befalls(Call call, Kind hang, Kind die, Kind refuse);
  void answer(Pending request, Ns delay, fabric::Event event);
  void fail(const Pending& request, judge::Trouble trouble, const char* detail);
  void hang();
  void die();

  Clock& clock_;
  DataPlane& data_;
  const Scenario& scenario_;
  Dice& dice_;
  std::uint32_t node_;
  fabric::Sink sink_;
  Child child_ = Child::none;
  std::uint64_t generation_ = 0;  ///< of the child: an old one's answers are lost
  std::vector<Pending> pending_;
  std::map<std::uint32_t, Team> teams_;
  std::array<std::uint32_t, 4> calls_{};
};

}  // namespace netcheck::sim
