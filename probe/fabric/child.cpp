// A Fabric in a process of its own: keeps count of what was asked, answers each request exactly once, also
// when the child cannot any more. As the probe user, in the probe.
#include "fabric/child.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>

#include "fabric/codec.h"
#include "fabric/host_process.h"

namespace netcheck::fabric {

namespace {

/// SIGKILL ends a process within milliseconds, or tens where gigabytes must be freed; after this it is in the
/// kernel's hands.
constexpr Ns kKillGrace = std::chrono::milliseconds(500);
/// For all children together, in the destructor.
constexpr Ns kLastWait = std::chrono::milliseconds(200);

/// What a pending request is answered by; an Event carries only a number.
enum class Asked : std::uint8_t { open, invite, join, run };
struct Pending {
  Asked asked = Asked::open;
  std::uint32_t id = 0;
  friend bool operator==(const Pending&, const Pending&) = default;
};

struct Ending {
  system::Process process;
  Time since{};
};

}  // namespace

struct ChildFabric::State {
  State(system::Loop& its_loop, ChildCommand its_command, Sink its_sink)
      : loop(its_loop), command(std::move(its_command)), sink(std::move(its_sink)) {}

  system::Loop& loop;
  ChildCommand command;
  Sink sink;
  std::unique_ptr<HostProcess> child;
  std::string no_child = "the fabric was not opened";    // why there is none
  std::vector<Pending> pending;                          // in the order of asking
  std::map<std::uint32_t, std::vector<Sample>> partial;  // by batch, of running ones
  std::list<Ending> ending;
  std::shared_ptr<bool> here = std::make_shared<bool>(true);  // gone when this object is

  void deliver(Event event);
  void ask(Pending what, const Request& request);
  void replied(Reply reply);
  void answered(Event event);
  bool settle(Event& event);
  void died(const std::string& how);
  void fail_all(judge::Trouble trouble, const std::string& detail, Ns silence = Ns::zero());
  void give_up();
  void reap(system::Process process);
  void reaped(pid_t pid);
};

/// From the loop, never from the caller's stack: the receiver may call back into this object, or destroy it.
void ChildFabric::State::deliver(Event event) {
  loop.post([this, still = std::weak_ptr<bool>(here), event = std::move(event)]() mutable {
    if (still.expired()) return;
    const Sink receiver = sink;
    receiver(std::move(event));
  });
}

void ChildFabric::State::ask(Pending what, const Request& request) {
  if (!child) return deliver(Failed{what.id, judge::Trouble::child_died, no_child, {}});
  if (child->ended()) return deliver(Failed{what.id, judge::Trouble::child_died, *child->ended(), {}});
  if (pending.empty()) child->expect_signs();
  pending.push_back(what);
  child->send(request);
}

void ChildFabric::State::replied(Reply reply) {
  auto* alive = std::get_if<Alive>(&reply);
  if (alive == nullptr) return answered(std::move(std::get<Event>(reply)));
  partial.clear();
  for (auto& [batch, sample] : alive->partial)
    partial[batch].push_back(std::move(sample));
}

/// An answer to nothing that was asked is dropped: each request has exactly one.
void ChildFabric::State::answered(Event event) {
  if (settle(event)) deliver(std::move(event));
}

bool ChildFabric::State::settle(Event& event) {
  const auto first = [this](auto fits) {
    const auto found = std::find_if(pending.begin(), pending.end(), fits);
    if (found == pending.end()) return false;
    if (found->asked == Asked::run) partial.erase(found->id);
    pending.erase(found);
    return true;
  };
  const auto exactly = [&first](Asked asked, std::uint32_t id) {
    return first([what = Pending{asked, id}](const Pending& one) { return one == what; });
  };
  if (std::holds_alternative<Ready>(event)) return exactly(Asked::open, 0);
  if (const auto* invited = std::get_if<Invited>(&event)) return exactly(Asked::invite, invited->team);
  if (const auto* joined = std::get_if<Joined>(&event)) return exactly(Asked::join, joined->team);
  if (const auto* measured = std::get_if<Measured>(&event)) return exactly(Asked::run, measured->batch);
  // A failure does not say what failed: the oldest request of that number.
  const auto id = std::get<Failed>(event).id;
  return first([id](const Pending& one) { return one.id == id; });
}

void ChildFabric::State::died(const std::string& how) {
  fail_all(judge::Trouble::child_died, how);
}

/// `silence`: since the last sign of life, in which nobody knows whether the child ran. Counted as not.
void ChildFabric::State::fail_all(judge::Trouble trouble, const std::string& detail, Ns silence) {
  const Ns overdue = std::max(Ns::zero(), silence - kSignOfLife);
  for (const auto& one : pending) {
    Failed failed{one.id, trouble, detail, {}};
    if (one.asked == Asked::run) failed.partial = std::move(partial[one.id]);
    for (auto& sample : failed.partial)
      sample.kept += overdue;
    deliver(std::move(failed));
  }
  pending.clear();
  partial.clear();
}

void ChildFabric::State::give_up() {
  if (!child) return;
  if (!child->ended()) {
    const Ns silence = system::now() - child->last_sign();
    const bool lives = child->lives();
    fail_all(lives ? judge::Trouble::no_bytes : judge::Trouble::child_silent,
             lives ? "given up while it was still waiting"
                   : "no sign of life for " +
                         format_duration(std::chrono::floor<std::chrono::milliseconds>(silence)),
             silence);
  }
  no_child = "the fabric was given up";
  reap(child->kill());
  child.reset();
}

/// Waits in the background until a killed child has ended.
void ChildFabric::State::reap(system::Process process) {
  if (process.pid() <= 0 || process.poll()) return;
  ending.push_back({std::move(process), system::now()});
  const auto& last = ending.back().process;
  if (last.pidfd() >= 0)
    loop.watch(last.pidfd(), system::Loop::kRead, [this, pid = last.pid()](std::uint8_t) { reaped(pid); });
}

void ChildFabric::State::reaped(pid_t pid) {
  const auto found = std::find_if(ending.begin(), ending.end(),
                                  [pid](const Ending& one) { return one.process.pid() == pid; });
  if (found == ending.end() || !found->process.poll()) return;
  loop.forget(found->process.pidfd());
  ending.erase(found);
}

ChildFabric::ChildFabric(system::Loop& loop, ChildCommand command, Sink sink)
    : state_(std::make_unique<State>(loop, std::move(command), std::move(sink))) {}

ChildFabric::~ChildFabric() {
  state_->here.reset();
  if (state_->child) state_->reap(state_->child->kill());
  state_->child.reset();
  const Time deadline = system::now() + kLastWait;
  for (auto& one : state_->ending) {
    if (one.process.pidfd() >= 0) state_->loop.forget(one.process.pidfd());
    static_cast<void>(one.process.wait(deadline));
  }
}

void ChildFabric::open(Options options) {
  abandon();
  auto started = HostProcess::start(
      state_->loop, state_->command,
      [state = state_.get()](Reply reply) { state->replied(std::move(reply)); },
      [state = state_.get()](const std::string& how) { state->died(how); });
  if (!started) return state_->deliver(Failed{0, judge::Trouble::refused, describe(started.error()), {}});
  state_->child = std::move(*started);
  state_->ask({Asked::open, 0}, Open{std::move(options)});
}

void ChildFabric::invite(Team team, std::uint32_t self) {
  const Pending what{Asked::invite, team.id};
  state_->ask(what, Invite{std::move(team), self});
}

void ChildFabric::join(Join join) {
  const Pending what{Asked::join, join.team.id};
  state_->ask(what, std::move(join));
}

void ChildFabric::run(Batch batch) {
  const Pending what{Asked::run, batch.id};
  state_->ask(what, Run{std::move(batch)});
}

void ChildFabric::leave(std::uint32_t team) {
  if (state_->child && !state_->child->ended()) state_->child->send(Leave{team});
}

void ChildFabric::abandon() noexcept {
  try {
    state_->give_up();
  } catch (...) {  // out of memory: the kill itself must not be lost
    if (state_->child) static_cast<void>(state_->child->kill());
  }
}

std::vector<Stuck> ChildFabric::stuck() const {
  std::vector<Stuck> found;
  for (const auto& one : state_->ending)
    if (system::now() - one.since >= kKillGrace && system::start_time_of(one.process.pid()))
      found.push_back({one.process.pid(), one.process.start_time()});
  return found;
}

}  // namespace netcheck::fabric
