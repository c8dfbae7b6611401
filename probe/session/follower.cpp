// The follower's flow; read it from top to bottom. Called by the driver and the simulator; as the probe user.
#include "session/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "contract/overloaded.h"
#include "judge/line.h"
#include "judge/names.h"
#include "judge/verdict.h"
#include "session/parts.h"
#include "session/patience.h"
#include "session/plan.h"

namespace netcheck::session {
namespace {

using judge::NodeOutcome;
using judge::Phase;
using judge::Trouble;

/// What the fabric was asked to do, and what has come back so far.
struct Task {
  std::uint32_t step = 0;
  std::set<std::uint32_t> pending;  ///< teams or batches; 0 for open
  Time began{}, deadline{};
  bool given_up = false;
  NodeOutcome outcome;
  std::string transport;
  std::vector<TeamCard> cards;
};

/// "IB/mlx5_0,P2P/CUMEM", as many of its words as there is room for.
std::string whole_words(const std::string& transport) {
  std::string text = printable(transport, transport.size());
  if (text.size() <= kMaxTransport) return text;
  const auto comma = text.rfind(',', kMaxTransport);
  return text.substr(0, comma == std::string::npos ? kMaxTransport : comma);
}

}  // namespace

struct Follower::State {
  enum class Stage { seeking, idle, opening, inviting, joining, running, closed };

  Assignment assignment;
  Time start;
  Time end;  ///< it gives up on the check then
  std::string leader;
  std::uint32_t self;
  Patience patience;
  Stage stage = Stage::seeking;
  std::optional<fabric::Options> options;
  std::optional<fabric::Ready> ready;  ///< while the fabric is open
  bool opened_once = false;
  Time hardware_until{};  ///< Opened waits so long for what there is to say of the hardware
  bool hardware_seen = false, waits_for_hardware = false;
  Task task;
  std::optional<Invite> queued;  ///< came while the fabric was opening again
  Time queued_at{};
  Teams teams;    ///< invited to, in the fabric as it is now
  Report report;  ///< plan, history, phases and log grow in it
  Time phase_began;
  std::string last_heed;
  std::vector<FollowerAction> actions;

  State(Assignment given, Inventory inventory, Time now)
      : assignment(std::move(given)),
        start(now),
        end(assignment.deadline - kClosing),
        leader(assignment.roster.nodes.front()),
        self(assignment.roster.self),
        patience(patience_with(assignment.policy.fabric)),
        phase_began(now) {
    report.plan = plan_of(assignment);
    report.reached = Phase::rendezvous;
    report.inventory = std::move(inventory);
  }

  // --- rendezvous -----------------------------------------------------------------------------------------

  void on(const LeaderFound&, Time now) {
    if (stage != Stage::seeking) return;
    stage = Stage::idle;
    say(Present{.inventory = report.inventory,
                .agreement = assignment.agreement,
                .terms = agreement_terms(assignment.policy),
                .remaining = end - now,
                .declined = assignment.declined});
  }

  // --- open -----------------------------------------------------------------------------------------------

  void on(const LanesChosen& chosen, Time now) {
    if (stage != Stage::idle || options || !assignment.declined.empty()) return;
    if (!chosen.options) return say(Broken{Trouble::refused, describe(chosen.options.error())});
    options = *chosen.options;
    hardware_until = chosen.hardware_until;
    enter(Phase::open, now);
    open(now);
  }

  void open(Time now) {
    // In any case early enough for the leader to hear that it did not.
    const Time deadline = std::min(now + patience.open, end - kClosing - kAnswerGrace);
    begin(Stage::opening, {.pending = {0}, .began = now, .deadline = std::max(now, deadline)});
    actions.emplace_back(OpenFabric{*options});
  }

  void on(fabric::Ready&& opened, Time now) {
    if (!settles(Stage::opening, 0)) return;
    ready = std::move(opened);
    finish_task(now);
  }

  // --- form: invite and join -----------------------------------------------------------------------------

  void obey(Invite&& order, Time now) {
    if (stage == Stage::opening && opened_once) {
      queued = std::move(order);
      queued_at = now;
      return;
    }
    if (stage != Stage::idle || !opened_once) return distrust("an invitation out of turn", now);
    invite(std::move(order), now, now);
  }

  void invite(Invite&& order, Time received, Time now) {
    if (auto why = misfit(order, assignment.roster.nodes.size(), self, lanes())) return distrust(*why, now);
    enter(Phase::connect, now);
    if (ready) {
      for (const auto& [id, team] : teams)
        actions.emplace_back(LeaveFabric{id});
    }
    teams.clear();
    Task next{.step = order.step, .began = received, .deadline = received + order.allowance};
    for (const Team& team : order.teams) {
      next.pending.insert(team.id);
      teams.emplace(team.id, team);
    }
    if (!ready) {  // it would not open again
      next.outcome.trouble = task.outcome.trouble;
      next.outcome.detail = task.outcome.detail;
      next.pending.clear();
    }
    begin(Stage::inviting, std::move(next));
    if (!ready) return finish_task(now);
    for (Team& team : order.teams)
      actions.emplace_back(InviteFabric{std::move(team)});
  }

  void on(fabric::Invited&& invited, Time now) {
    if (!settles(Stage::inviting, invited.team)) return;
    task.cards.push_back({invited.team, std::move(invited.card)});
    if (task.pending.empty()) finish_task(now);
  }

  void obey(Connect&& order, Time now) {
    if (stage != Stage::idle || !ready) return distrust("cards out of turn", now);
    if (auto why = misfit(order, teams)) return distrust(*why, now);
    Task next{.step = order.step, .began = now, .deadline = now + order.allowance};
    for (const TeamCards& team : order.teams)
      next.pending.insert(team.team);
    begin(Stage::joining, std::move(next));
    for (TeamCards& team : order.teams)
      actions.emplace_back(JoinFabric{{teams.at(team.team), std::move(team.cards), self}});
  }

  void on(fabric::Joined&& joined, Time now) {
    if (!settles(Stage::joining, joined.team)) return;
    if (task.transport.empty()) task.transport = whole_words(joined.transport);
    for (const auto& [part, took] : joined.spent)
      task.outcome.spent[part] = std::max(task.outcome.spent[part], took);
    if (task.pending.empty()) finish_task(now);
  }

  // --- measure: run ---------------------------------------------------------------------------------------

  void obey(Run&& order, Time now) {
    if (stage != Stage::idle || !ready) return distrust("a run out of turn", now);
    if (auto why = misfit(order, teams, ready->max_bytes)) return distrust(*why, now);
    enter(order.batches.front().op == Op::transfer ? Phase::blame : Phase::gate, now);
    Task next{.step = order.step, .began = now, .deadline = now + order.allowance};
    for (const Batch& batch : order.batches)
      next.pending.insert(batch.id);
    begin(Stage::running, std::move(next));
    for (Batch& batch : order.batches)
      actions.emplace_back(RunFabric{std::move(batch)});
  }

  void on(fabric::Measured&& measured, Time now) {
    if (!settles(Stage::running, measured.batch)) return;
    keep(measured.batch, std::move(measured.local));
    if (task.pending.empty()) finish_task(now);
  }

  // --- trouble --------------------------------------------------------------------------------------------

  void on(fabric::Failed&& failed, Time now) {
    if (!working() || task.pending.erase(failed.id) == 0) return;
    if (stage == Stage::running) keep(failed.id, std::move(failed.partial));
    note_trouble(failed.trouble, failed.detail);
    if (task.pending.empty()) finish_task(now);
  }

  /// The allowance is used up: first abandon, which is answered by Failed; if not even that comes, go on
  /// alone.
  void give_up(Time now) {
    if (!std::exchange(task.given_up, true)) {
      task.deadline = now + kAbandonGrace;
      actions.emplace_back(AbandonFabric{});
      return;
    }
    task.pending.clear();
    note_trouble(Trouble::child_silent, "the fabric did not even answer when it was abandoned");
    finish_task(now);
  }

  /// The worst trouble counts: whatever is no evidence about the network outranks what is. The network has no
  /// part in opening and inviting, and not in every fabric's joining is it for sure.
  void note_trouble(Trouble trouble, const std::string& detail) {
    const bool local = stage == Stage::opening || stage == Stage::inviting;
    const bool tells = !local && (stage != Stage::joining || patience.joining_tells);
    if (trouble == Trouble::no_bytes && !tells)
      trouble = patience.joining_tells ? Trouble::child_silent : Trouble::late;
    if (task.outcome.trouble && *task.outcome.trouble >= trouble) return;
    task.outcome.trouble = trouble;
    task.outcome.detail = printable(detail);
  }

  // --- the end of a task: the answer, and a fresh fabric where there was trouble -------------------------

  void finish_task(Time now) {
    const Stage was = std::exchange(stage, Stage::idle);
    task.outcome.node = self;
    task.outcome.took = now - task.began;
    const bool trouble = task.outcome.trouble.has_value();
    if (trouble) close_fabric();
    if (was == Stage::opening) return opened(now);
    if (was == Stage::inviting && !trouble) {
      std::ranges::sort(task.cards, {}, &TeamCard::team);
      return say(Cards{.step = task.step, .cards = task.cards});
    }
    say(Answer{.step = task.step, .outcome = task.outcome, .transport = task.transport});
    if (trouble) open(now);
  }

  void on(const HardwareSeen& seen, Time now) {
    hardware_seen = true;
    report.hardware = seen.hardware;
    if (!seen.hardware) note(report, "the hardware was not looked at: " + seen.why_not);
    if (waits_for_hardware) opened(now);
  }

  void opened(Time now) {
    waits_for_hardware = !opened_once && ready && !hardware_seen && now < hardware_until;
    if (waits_for_hardware) return;
    if (!std::exchange(opened_once, true)) {
      if (ready) return say(Opened{.ready = *ready, .took = task.outcome.took, .hardware = report.hardware});
      return say(Broken{.trouble = *task.outcome.trouble, .detail = task.outcome.detail});
    }
    if (auto order = std::exchange(queued, std::nullopt)) invite(std::move(*order), queued_at, now);
  }

  void close_fabric() {
    if (!task.given_up) actions.emplace_back(AbandonFabric{});
    ready.reset();
    teams.clear();
  }

  // --- the end of the check -------------------------------------------------------------------------------

  void obey(Close&& order, Time now) {
    report.claimed = printable(order.verdict, 32);
    report.line = printable(order.line, 1'024);
    finish(now);
  }

  /// Without the leader's word: this node could not measure.
  void finish_alone(const std::string& why, bool leader_missing, Time now) {
    judge::Inconclusive verdict;
    verdict.phase = report.reached;
    if (leader_missing) verdict.missing = {leader};
    verdict.reason = printable(why, 512);
    report.reason = verdict.reason;
    report.claimed = judge::name(judge::Verdict(verdict));
    report.line = judge::line(verdict, report.plan, now - start);
    finish(now);
  }

  void finish(Time now) {
    stage = Stage::closed;
    report.phases[std::string(judge::name(report.reached))] += now - phase_began;
    actions.emplace_back(Finish{std::move(report)});
  }

  void distrust(const std::string& why, Time now) {
    finish_alone(fmt::format("the leader {} makes no sense: {}", leader, why), false, now);
  }

  void on(const LeaderGone& gone, Time now) {
    finish_alone(fmt::format("the leader {} fell silent: {}", leader, gone.why), true, now);
  }

  void on(const Interrupted& interrupted, Time now) { finish_alone(interrupted.why, false, now); }

  void on(const Heed& heed, Time) {
    note(report, heed.text);
    last_heed = printable(heed.text);
  }

  void on(const Tick&, Time now) {
    if (now >= end) return finish_alone(fmt::format("the leader {} fell silent", leader), true, now);
    if (now < wake()) return;
    if (working()) return give_up(now);
    if (waits_for_hardware) return opened(now);
    finish_alone(
        fmt::format("the leader {} was not found{}{}", leader, last_heed.empty() ? "" : ": ", last_heed),
        true, now);
  }

  [[nodiscard]] Time wake() const {
    if (stage == Stage::seeking) return std::min(assignment.rendezvous_deadline, end);
    if (stage == Stage::idle && waits_for_hardware) return std::min(hardware_until, end);
    return working() ? std::min(task.deadline, end) : end;
  }

  // --- small words ----------------------------------------------------------------------------------------

  void say(Message message) { actions.emplace_back(ToLeader{std::move(message)}); }

  [[nodiscard]] bool working() const { return stage >= Stage::opening && stage <= Stage::running; }
  [[nodiscard]] std::size_t lanes() const {
    return ready ? ready->lanes.size() : options ? options->devices.size() : 0;
  }

  void begin(Stage next, Task what) {
    stage = next;
    task = std::move(what);
  }

  /// Whether this was waited for; what comes after its time is not.
  [[nodiscard]] bool settles(Stage expected, std::uint32_t id) {
    return stage == expected && task.pending.erase(id) != 0;
  }

  void keep(std::uint32_t batch, std::vector<Sample>&& samples) {
    for (Sample& sample : samples) {
      task.outcome.samples.push_back(std::move(sample));
      task.outcome.batch.push_back(batch);
    }
  }

  void enter(Phase phase, Time now) {
    report.phases[std::string(judge::name(report.reached))] += now - std::exchange(phase_began, now);
    report.reached = phase;
  }
};

Follower::Follower(Assignment assignment, Inventory inventory, Time start)
    : state_(std::make_unique<State>(std::move(assignment), std::move(inventory), start)) {}
Follower::Follower(Follower&&) noexcept = default;
Follower::~Follower() = default;

std::vector<FollowerAction> Follower::on(FollowerEvent event, Time now) {
  State& state = *state_;
  if (state.stage == State::Stage::closed) return {};
  const auto obey = Overloaded{[&](Invite& order) { state.obey(std::move(order), now); },
                               [&](Connect& order) { state.obey(std::move(order), now); },
                               [&](Run& order) { state.obey(std::move(order), now); },
                               [&](Close& order) { state.obey(std::move(order), now); },
                               [&](auto&) { state.distrust("it answers instead of leading", now); }};
  std::visit(Overloaded{[&](FromLeader& from) { std::visit(obey, from.message); },
                        [&](fabric::Event& happened) {
                          std::visit([&](auto& what) { state.on(std::move(what), now); }, happened);
                        },
                        [&](auto& other) { state.on(other, now); }},
             event);
  return std::exchange(state.actions, {});
}

Time Follower::wake() const {
  return state_->wake();
}

}  // namespace netcheck::session
