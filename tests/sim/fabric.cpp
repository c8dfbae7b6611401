// The modelled fabric child.
#include "fabric.h"

#include <algorithm>
#include <string>

namespace netcheck::sim {

using std::chrono::milliseconds;

void SimFabric::open(fabric::Options options) {
  abandon();
  child_ = Child::lives;
  if (!accept({Call::open, 0})) return;
  fabric::Ready ready{.module = "sim",
                      .version = "1",
                      .lanes = options.devices,
                      .max_bytes = scenario_.over_lanes ? 1u << 30 : 64u << 20};
  // Contexts on GPUs, then.
  const Ns longest = scenario_.over_lanes ? milliseconds(900) : milliseconds(200);
  answer({Call::open, 0}, dice_.time(milliseconds(30), longest), std::move(ready));
}

void SimFabric::invite(Team team, std::uint32_t self) {
  const Pending request{Call::invite, team.id};
  teams_[team.id] = team;
  if (!accept(request)) return;
  fabric::Invited invited{.team = team.id, .card = Bytes(8, std::byte{static_cast<unsigned char>(self)})};
  answer(request, dice_.time(milliseconds(1), milliseconds(5)), std::move(invited));
}

void SimFabric::join(fabric::Join join) {
  const Pending request{Call::join, join.team.id};
  if (!accept(request)) return;
  const Ns took = dice_.time(milliseconds(1), scenario_.over_lanes ? milliseconds(400) : milliseconds(20));
  fabric::Joined joined{.team = join.team.id, .took = took, .transport = "sim/eth0"};
  if (!scenario_.over_lanes) return answer(request, took, std::move(joined));
  data_.meet(node_, join.team, [this, request, took, joined, mine = generation_] {
    if (mine == generation_) answer(request, took, joined);
  });
}

void SimFabric::run(Batch batch) {
  const Pending request{Call::run, batch.id};
  if (!accept(request)) return;
  if (!teams_.contains(batch.team)) return fail(request, judge::Trouble::refused, "no such team");
  data_.begin(node_, teams_.at(batch.team), batch, [this, request](std::vector<Sample> samples) {
    answer(request, Ns{0},
           fabric::Measured{.batch = request.id, .algorithm = "ring", .local = std::move(samples)});
  });
}

void SimFabric::leave(std::uint32_t team) {
  teams_.erase(team);
}

void SimFabric::abandon() noexcept {
  ++generation_;
  const bool hung = child_ == Child::hangs;
  for (const Pending& request : std::vector<Pending>(pending_))
    fail(request, hung ? judge::Trouble::child_silent : judge::Trouble::no_bytes,
         hung ? "no sign of life" : "given up while it was still waiting");
  data_.withdraw(node_);
  teams_.clear();
  child_ = Child::none;
}

bool SimFabric::accept(Pending request) {
  pending_.push_back(request);
  switch (request.call) {
    case Call::open:
      if (befalls(Call::open, Kind::hang_open, Kind::die_open, Kind::refuse_open)) return false;
      break;
    case Call::invite:
      if (befalls(Call::invite, Kind::hang_invite, Kind::none, Kind::none)) return false;
      break;
    case Call::join:
      if (befalls(Call::join, Kind::hang_join, Kind::die_join, Kind::refuse_join)) return false;
      break;
    case Call::run:
      if (befalls(Call::run, Kind::hang_run, Kind::none, Kind::none)) return false;
      if (befalls(Call::run, Kind::none, Kind::die_run, Kind::none)) return true;
      break;
  }
  if (child_ == Child::lives) return true;
  if (child_ != Child::hangs) fail(request, judge::Trouble::child_died, "it is not there");
  return false;
}

bool SimFabric::befalls(Call call, Kind hanging, Kind dying, Kind refusing) {
  const Fault& fault = scenario_.fault;
  if (fault.node != node_ || fault.kind == Kind::none) return false;
  if (fault.kind != hanging && fault.kind != dying && fault.kind != refusing) return false;
  if (++calls_.at(static_cast<std::size_t>(call)) != fault.call) return false;
  if (fault.kind == hanging) hang();
  if (fault.kind == dying) {
    clock_.after(dice_.time(milliseconds(0), milliseconds(50)), [this, mine = generation_] {
      if (mine == generation_) die();
    });
  }
  if (fault.kind == refusing) fail(pending_.back(), judge::Trouble::refused, "Permission denied");
  return true;
}

void SimFabric::answer(Pending request, Ns delay, fabric::Event event) {
  clock_.after(delay, [this, request, mine = generation_, event = std::move(event)]() mutable {
    if (mine != generation_ || child_ != Child::lives || std::erase(pending_, request) == 0) return;
    sink_(std::move(event));
  });
}

void SimFabric::fail(const Pending& request, judge::Trouble trouble, const char* detail) {
  std::erase(pending_, request);
  fabric::Failed failed{.id = request.id, .trouble = trouble, .detail = detail, .partial = {}};
  if (request.call == Call::run) failed.partial = data_.withdraw(node_, request.id);
  clock_.after(Ns{0}, [this, failed = std::move(failed)]() mutable { sink_(std::move(failed)); });
}

void SimFabric::hang() {
  child_ = Child::hangs;
  data_.withdraw(node_);
}

void SimFabric::die() {
  child_ = Child::dead;
  for (const Pending& request : std::vector<Pending>(pending_))
    fail(request, judge::Trouble::child_died, "signal 11 (Segmentation fault)");
  data_.withdraw(node_);
}

}  // namespace netcheck::sim
