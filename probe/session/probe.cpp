// The driver: one loop that carries events to the machines and their actions out. Everything a machine could
// wait for is in the loop; the machines' own deadlines end it. As the probe user.
#include "session/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "contract/overloaded.h"
#include "fabric/child.h"
#include "judge/names.h"
#include "peers/peers.h"
#include "session/follower.h"
#include "session/handover.h"
#include "session/leader.h"
#include "session/look.h"
#include "session/plan.h"
#include "system/loop.h"
#include "system/process.h"
#include "topology/inventory.h"

namespace netcheck::session {
namespace {

/// A credential takes a millisecond, a look-up tens; a munged or resolver that needs a second is stuck.
constexpr Ns kClerkPatience = std::chrono::seconds(1);
/// From this many nodes on the leader has two clerks: munge uses both cores of a small machine then.
constexpr std::size_t kManyNodes = 32;
/// For the look at the hardware, from the start on: 30 ms on an idle node, some hundred on one that is
/// starting a job. Of a short check an eighth: a node whose kernel takes longer does without.
constexpr Ns kLookPatience = std::chrono::seconds(1);
constexpr int kLookPart = 8;

void tell(std::string_view text) {
  fmt::print(stderr, "netcheck: {}\n", printable(text));
}

peers::CredentialKind credential_kind(const Policy& policy) {
  return {
      .by_key = policy.credential == "key", .key_file = policy.key_file, .munge_socket = policy.munge_socket};
}

ExitCode exit_code_of(const Report& report) {
  if (report.claimed == "pass") return ExitCode::pass;
  return report.claimed == "fail" ? ExitCode::fail : ExitCode::inconclusive;
}

/// SIGTERM as a descriptor.
system::Descriptor termination() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return system::Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

class Driver {
 public:
  Driver(const std::string& program, Assignment assignment, system::Descriptor listener, Time start);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Until a machine has finished and its last words are on their way; never beyond the assignment's
  /// deadline.
  [[nodiscard]] Report run();
  /// On node 0: until the followers have read how it ended and left, kClosing at most.
  void take_leave();

 private:
  [[nodiscard]] bool leads() const { return assignment_.roster.self == 0; }
  [[nodiscard]] bool over_gpus() const { return assignment_.policy.fabric == "nccl"; }

  // In: what the world tells becomes an event, queued, so that no machine is entered twice.
  void on_peers(peers::Event event);
  void proven(const peers::Proven& proven);
  void happened(fabric::Event event);
  void looked();
  void heard(const peers::Heard& heard);
  void gone(std::uint32_t node, std::string why);
  void interrupt(const std::string& why);
  template <typename Event>
  void queue(Event event);
  void handle_events();
  void set_timer();

  /// Told on stderr, so that the supervisor can name it when this process dies.
  void reach(judge::Phase phase);

  // Out: what a machine wants is done.
  void carry_out(LeaderAction action);
  void carry_out(FollowerAction action);

  system::Loop loop_;
  Assignment assignment_;
  system::Descriptor termination_;
  std::unique_ptr<peers::Clerk> clerk_;
  std::unique_ptr<peers::Peers> peers_;
  fabric::ChildFabric fabric_;
  topology::Wanted wanted_;
  Inventory inventory_;
  std::optional<Leader> leader_;  ///< on node 0
  Follower follower_;
  // The hardware: what was seen, and on which lanes the check is; what there is to say of it needs both.
  Time look_until_{};
  std::optional<Look> look_;
  std::optional<Result<Seen>> seen_;
  std::optional<std::vector<std::string>> lanes_;
  std::deque<std::variant<LeaderEvent, FollowerEvent>> events_;
  bool handling_posted_ = false;
  system::Loop::Timer timer_ = 0;
  std::set<std::uint32_t> connected_;
  unsigned told_ = 0;
  judge::Phase reached_ = judge::Phase::start;
  std::optional<Report> report_;
};

// --- setting up -------------------------------------------------------------------------------------------

Driver::Driver(const std::string& program, Assignment assignment, system::Descriptor listener, Time start)
    : assignment_(std::move(assignment)),
      termination_(termination()),
      // First: it forks, and this process is still small.
      clerk_(peers::forked_clerk(
          loop_, [kind = credential_kind(assignment_.policy)] { return peers::make_credential(kind); },
          kClerkPatience,
          assignment_.roster.self == 0 && assignment_.roster.nodes.size() >= kManyNodes ? 2 : 1)),
      fabric_(loop_, {program, assignment_.policy.module_directory, assignment_.policy.fabric},
              [this](fabric::Event event) { happened(std::move(event)); }),
      wanted_{assignment_.policy.devices, assignment_.policy.exclude},
      inventory_(topology::take_inventory(assignment_.roster.nodes[assignment_.roster.self], wanted_)),
      follower_(assignment_, inventory_, start),
      look_until_(start + std::min(kLookPatience, (assignment_.deadline - start) / kLookPart)) {
  if (assignment_.declined.empty() && assignment_.not_measured.empty())
    look_.emplace(loop_, program, assignment_.policy, look_until_, [this](Result<Seen> seen) {
      seen_ = std::move(seen);
      looked();
    });
  const Policy& policy = assignment_.policy;
  const Roster& roster = assignment_.roster;
  const auto sink = [this](peers::Event event) { on_peers(std::move(event)); };
  if (leads()) {
    leader_.emplace(assignment_, start);
    if (listener) peers_ = peers::lead(loop_, *clerk_, roster, std::move(listener), sink);
    queue(FollowerEvent(LeaderFound{}));
  } else {
    peers_ = peers::follow(loop_, *clerk_, roster, address_of(policy, roster.nodes.front()),
                           peers::ports_of(roster.run.job, policy.first_port, policy.last_port), false,
                           assignment_.rendezvous_deadline, sink);
  }
  if (!peers_) interrupt(leads() ? "the supervisor gave no listener" : "the leader cannot be followed");
  if (termination_)
    loop_.watch(termination_.get(), system::Loop::kRead, [this](std::uint8_t) {
      loop_.forget(termination_.get());  // once is enough, and it stays readable
      interrupt("the check was ended from outside (SIGTERM)");
    });
}

Driver::~Driver() {
  if (termination_) loop_.forget(termination_.get());
}

// --- running ----------------------------------------------------------------------------------------------

Report Driver::run() {
  reach(judge::Phase::rendezvous);
  set_timer();
  if (!loop_.run_until(assignment_.deadline - kClosing / 2)) {
    interrupt("the deadline came");
    handle_events();
  }
  fabric_.abandon();
  const Time until = std::min(assignment_.deadline - kClosing / 2, system::now() + kClosing);
  while (peers_ && !peers_->flushed() && system::now() < until)
    loop_.turn(until);
  for (const fabric::Stuck& stuck : fabric_.stuck())
    note(*report_, fmt::format("fabric process {} cannot be ended", stuck.pid));
  return std::move(*report_);
}

/// A leader that went first could take its last words with it: a socket closed with unread data is reset.
void Driver::take_leave() {
  const Time until = std::min(assignment_.deadline, system::now() + kClosing);
  while (leads() && !connected_.empty() && system::now() < until)
    loop_.turn(until);
}

template <typename Event>
void Driver::queue(Event event) {
  events_.emplace_back(std::move(event));
  if (std::exchange(handling_posted_, true)) return;
  loop_.post([this] { handle_events(); });
}

void Driver::handle_events() {
  handling_posted_ = false;
  while (!events_.empty() && !report_) {
    auto event = std::move(events_.front());
    events_.pop_front();
    std::visit(Overloaded{[this](LeaderEvent& to_leader) {
                            if (!leader_) return;
                            for (LeaderAction& action : leader_->on(std::move(to_leader), system::now()))
                              carry_out(std::move(action));
                          },
                          [this](FollowerEvent& to_follower) {
                            for (FollowerAction& action : follower_.on(std::move(to_follower), system::now()))
                              carry_out(std::move(action));
                          }},
               event);
  }
  if (report_) return loop_.stop();
  set_timer();
}

void Driver::set_timer() {
  loop_.cancel(timer_);
  const Time wake = leader_ ? std::min(leader_->wake(), follower_.wake()) : follower_.wake();
  timer_ = loop_.at(wake, [this] {
    if (leader_) queue(LeaderEvent(Tick{}));
    queue(FollowerEvent(Tick{}));
  });
}

// --- in ---------------------------------------------------------------------------------------------------

void Driver::on_peers(peers::Event event) {
  std::visit(Overloaded{[this](const peers::Proven& arrived) { proven(arrived); },
                        [this](const peers::Heard& message) { heard(message); },
                        [this](peers::Gone& left) { gone(left.node, std::move(left.why)); },
                        [this](const peers::Dropped& dropped) {
                          const std::string text = fmt::format("{}: {}", dropped.from, dropped.why);
                          if (told_++ < kMaxLogLines) tell(text);
                          if (leads()) return queue(LeaderEvent(Heed{text}));
                          queue(FollowerEvent(Heed{text}));
                        }},
             event);
}

/// The first channel tells which interface leads to the other nodes: now the fabric can be opened. NCCL finds
/// its own.
void Driver::proven(const peers::Proven& proven) {
  const bool first = connected_.empty();
  connected_.insert(proven.node);
  if (!first) return;
  if (!leads()) queue(FollowerEvent(LeaderFound{}));
  const Time hardware_until = look_ ? look_until_ : Time{};
  if (over_gpus()) return queue(FollowerEvent(LanesChosen{gpu_options(assignment_), hardware_until}));
  auto lanes = topology::choose_lanes(inventory_, wanted_, proven.local_address);
  if (lanes) lanes_ = *lanes;
  queue(FollowerEvent(LanesChosen{std::move(lanes).map([this](std::vector<std::string> devices) {
                                    return fabric::Options{.devices = std::move(devices),
                                                           .max_bytes = assignment_.policy.memory};
                                  }),
                                  hardware_until}));
  looked();
}

/// Which GPUs the lanes are only the open fabric can tell.
void Driver::happened(fabric::Event event) {
  const auto* ready = std::get_if<fabric::Ready>(&event);
  const bool news = over_gpus() && ready != nullptr && !lanes_;
  if (news) lanes_ = ready->lanes;
  queue(FollowerEvent(std::move(event)));
  if (news) looked();
}

void Driver::looked() {
  if (!seen_ || !lanes_) return;
  const Policy& policy = assignment_.policy;
  if (*seen_)
    return queue(FollowerEvent(HardwareSeen{
        judge::hardware_of((*seen_)->machine, *lanes_, {policy.gpus, policy.ports}, (*seen_)->contradicted),
        {}}));
  queue(FollowerEvent(HardwareSeen{std::nullopt, describe(seen_->error())}));
}

void Driver::heard(const peers::Heard& heard) {
  auto message = decode(heard.message, assignment_.roster.nodes[heard.node]);
  if (!message) return gone(heard.node, describe(message.error()));
  if (leads()) return queue(LeaderEvent(FromNode{heard.node, std::move(*message)}));
  queue(FollowerEvent(FromLeader{std::move(*message)}));
}

void Driver::gone(std::uint32_t node, std::string why) {
  connected_.erase(node);
  if (leads()) return queue(LeaderEvent(NodeGone{node, std::move(why)}));
  queue(FollowerEvent(LeaderGone{std::move(why)}));
}

void Driver::interrupt(const std::string& why) {
  if (leader_) return queue(LeaderEvent(Interrupted{why}));
  queue(FollowerEvent(Interrupted{why}));
}

void Driver::reach(judge::Phase phase) {
  if (std::exchange(reached_, phase) != phase) tell(fmt::format("phase {}", judge::name(phase)));
}

// --- out --------------------------------------------------------------------------------------------------

void Driver::carry_out(LeaderAction action) {
  std::visit(Overloaded{[this](ToNode& to) {
                          if (to.node == 0) return queue(FollowerEvent(FromLeader{std::move(to.message)}));
                          if (peers_) peers_->send(to.node, encode(to.message));
                        },
                        [this](Finish& finish) { report_ = std::move(finish.report); }},
             action);
}

void Driver::carry_out(FollowerAction action) {
  std::visit(Overloaded{[this](ToLeader& to) {
                          if (leads()) return queue(LeaderEvent(FromNode{0, std::move(to.message)}));
                          peers_->send(0, encode(to.message));
                        },
                        [this](OpenFabric& order) {
                          reach(judge::Phase::open);
                          fabric_.open(std::move(order.options));
                        },
                        [this](InviteFabric& order) {
                          reach(judge::Phase::connect);
                          fabric_.invite(std::move(order.team), assignment_.roster.self);
                        },
                        [this](JoinFabric& order) { fabric_.join(std::move(order.join)); },
                        [this](RunFabric& order) {
                          reach(order.batch.op == Op::transfer ? judge::Phase::blame : judge::Phase::gate);
                          fabric_.run(std::move(order.batch));
                        },
                        [this](LeaveFabric& order) { fabric_.leave(order.team); },
                        [this](AbandonFabric&) { fabric_.abandon(); },
                        [this](Finish& finish) {
                          if (!leads()) report_ = std::move(finish.report);
                        }},
             action);
}

}  // namespace

int probe(const std::string& program, ProbeFiles files) {
  const Time start = system::now();
  system::become_undumpable();
  std::signal(SIGPIPE, SIG_IGN);
  system::Descriptor pipe(files.report), listener;
  for (const int fd : {files.assignment, files.report})
    static_cast<void>(::fcntl(fd, F_SETFD, FD_CLOEXEC));
  const auto assignment = read_assignment(system::Descriptor(files.assignment));
  if (!assignment) {
    tell(describe(assignment.error()));
    return static_cast<int>(ExitCode::inconclusive);
  }
  // A follower has no listener: that number may be anything there.
  if (assignment->roster.self == 0 && ::fcntl(files.listener, F_SETFD, FD_CLOEXEC) == 0)
    listener.reset(files.listener);
  Driver driver(program, *assignment, std::move(listener), start);
  Report report = driver.run();
  const ExitCode code = exit_code_of(report);
  const auto written = write_report(std::move(pipe), std::move(report), assignment->deadline);
  if (!written) tell(describe(written.error()));
  driver.take_leave();
  return static_cast<int>(code);
}

}  // namespace netcheck::session
