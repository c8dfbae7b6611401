// The leader's flow, from the first hello to the verdict; read it from top to bottom. Called by the driver
// and the simulator; as the probe user.
#include "session/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "contract/overloaded.h"
#include "judge/line.h"
#include "judge/names.h"
#include "judge/script.h"
#include "judge/verdict.h"
#include "session/parts.h"
#include "session/patience.h"
#include "session/plan.h"

namespace netcheck::session {
namespace {

using judge::NodeOutcome;
using judge::Phase;

/// Who is still to answer, and until when.
struct Gather {
  std::set<std::uint32_t> awaited;
  Time deadline{};
};

/// The step under way: what was asked of whom, and what came back so far.
struct Doing {
  std::uint32_t number = 0;  ///< repeated by every answer
  judge::Step step;
  Time began{};
  std::map<std::uint32_t, std::vector<Batch>> batches;  ///< Measure: by node
  std::map<std::uint32_t, Cards> cards;                 ///< Form: by node
  std::map<std::uint32_t, NodeOutcome> outcomes;
  std::string transport;
};

/// Of nodes that gave no sign at all: what an administrator looks at first.
constexpr const char* kUnheard =
    "nothing was heard of them: is the plugin on there and free, do names resolve, do the ports reach?";

}  // namespace

struct Leader::State {
  enum class Stage { rendezvous, opening, inviting, connecting, measuring, dismissing, closed };

  Assignment assignment;
  Time start;
  Patience patience;
  Time end;  ///< Close is sent by then: what the most pressed node has left, less kClosing
  Stage stage = Stage::rendezvous;
  Gather gather;
  std::map<std::uint32_t, Present> present;
  std::map<std::uint32_t, fabric::Ready> ready;
  std::map<std::uint32_t, judge::NodeHardware> hardware;
  std::map<std::uint32_t, std::vector<Team>> invited;  ///< by node, of the last Form
  Teams teams;                                         ///< of the last Form
  Doing doing;
  Time script_began{};
  Report report;  ///< plan, history, phases and log grow in it
  Time phase_began;
  std::string last_heed;
  std::vector<LeaderAction> actions;

  State(Assignment given, Time now)
      : assignment(std::move(given)),
        start(now),
        patience(patience_with(assignment.policy.fabric)),
        end(assignment.deadline - 2 * kClosing),
        phase_began(now) {
    report.leader = true;
    report.plan = plan_of(assignment);
    report.reached = Phase::rendezvous;
    await(everyone(), assignment.rendezvous_deadline);
  }

  // --- rendezvous: every node says who it is ------------------------------------------------------------

  void hear(std::uint32_t node, Present said, Time now) {
    if (stage == Stage::dismissing) return dismiss(node);
    if (stage != Stage::rendezvous || present.contains(node)) return;
    end = std::min(end, now + said.remaining - kClosing);
    gather.deadline = std::min(gather.deadline, end);
    if (!assignment.not_measured.empty()) {
      present.emplace(node, std::move(said));
      return refuse(Phase::start, assignment.not_measured, now);
    }
    const auto unlike = difference(assignment, node, said);
    const std::string declined = std::move(said.declined);
    present.emplace(node, std::move(said));
    if (!declined.empty())
      return refuse(report.reached,
                    fmt::format("{} takes no part: {}", assignment.roster.nodes[node], declined), now);
    if (unlike) return refuse(report.reached, *unlike, now);
    if (assignment.roster.nodes.size() < 2)
      return refuse(Phase::start, "a job of one node has no network to measure", now);
    if (complete(node)) await_fabrics(now);
  }

  // --- open: every node's fabric is ready ---------------------------------------------------------------

  void await_fabrics(Time now) {
    enter(Phase::open, now);
    stage = Stage::opening;
    std::set<std::uint32_t> opening = everyone();
    std::erase_if(opening, [&](std::uint32_t node) { return ready.contains(node); });
    await(std::move(opening), now + patience.open + kAnswerGrace);
    if (gather.awaited.empty()) begin_script(now);
  }

  void hear(std::uint32_t node, Opened said, Time now) {
    if (stage > Stage::opening) return;
    ready.insert_or_assign(node, std::move(said.ready));
    if (said.hardware) hardware.insert_or_assign(node, std::move(*said.hardware));
    const auto& [known, known_ready] = *ready.begin();
    if (auto unlike = difference(assignment, node, ready.at(node), known, known_ready))
      return refuse(report.reached, *unlike, now);
    if (stage == Stage::opening && complete(node)) begin_script(now);
  }

  void hear(std::uint32_t node, const Broken& said, Time now) {
    if (stage > Stage::opening) return;
    NodeOutcome outcome{.node = node, .trouble = said.trouble, .detail = printable(said.detail)};
    report.history.done.push_back(
        {.step = judge::Form{.phase = Phase::open, .teams = {}}, .outcomes = {std::move(outcome)}});
    enter(Phase::open, now);
    close(now);
  }

  // --- the script: what judge::next asks for, until it says Stop ----------------------------------------

  void begin_script(Time now) {
    script_began = now;
    report.plan = plan_of(assignment, present, ready, hardware, end - now - kAnswerGrace);
    proceed(now);
  }

  void proceed(Time now) {
    doing = {.number = doing.number + 1,
             .step = judge::next(report.plan, report.history, now - script_began),
             .began = now};
    std::visit(Overloaded{[&](const judge::Form& form) { invite(form, now); },
                          [&](const judge::Measure& measure) { run(measure, now); },
                          [&](const judge::Stop&) { close(now); }},
               doing.step);
  }

  // form: Invite → Cards, Connect → Answers

  void invite(const judge::Form& form, Time now) {
    enter(form.phase, now);
    stage = Stage::inviting;
    teams.clear();
    for (const Team& team : form.teams)
      teams.emplace(team.id, team);
    invited = parts_of(form);
    const Ns allowance = within_end(patience.invite, now);
    for (const auto& [node, theirs] : invited)
      send(node, Invite{.step = doing.number, .teams = theirs, .allowance = allowance});
    await(nodes_of(invited), now + allowance + kAnswerGrace);
    if (gather.awaited.empty()) conclude(now);
  }

  void hear(std::uint32_t node, Cards said, Time now) {
    if (stage != Stage::inviting || !answers(node, said.step)) return;
    if (auto why = misfit(said, invited.at(node))) return lose(node, *why, now);
    doing.cards.insert_or_assign(node, std::move(said));
    if (complete(node)) connect(now);
  }

  void connect(Time now) {
    if (!doing.outcomes.empty()) return conclude(now);  // somebody could not: no team is whole
    stage = Stage::connecting;
    const Ns allowance = within_end(patience.join, now);
    for (const auto& [node, theirs] : invited) {
      Connect order{.step = doing.number, .teams = {}, .allowance = allowance};
      for (const Team& team : theirs)
        order.teams.push_back(cards_of(team));
      send(node, std::move(order));
    }
    await(nodes_of(invited), now + allowance + kAnswerGrace);
  }

  [[nodiscard]] TeamCards cards_of(const Team& team) const {
    TeamCards all{.team = team.id, .cards = {}};
    for (const std::uint32_t member : members_of(team)) {
      const auto& theirs = doing.cards.at(member).cards;
      all.cards.push_back(std::ranges::find(theirs, team.id, &TeamCard::team)->card);
    }
    return all;
  }

  // measure: Run → Answers

  void run(const judge::Measure& measure, Time now) {
    enter(measure.phase, now);
    stage = Stage::measuring;
    doing.batches = parts_of(measure, teams);
    for (const auto& [node, theirs] : doing.batches)
      send(node, Run{.step = doing.number, .batches = theirs, .allowance = measure.allowance});
    await(nodes_of(doing.batches), now + measure.allowance + kAnswerGrace);
    if (gather.awaited.empty()) conclude(now);
  }

  void hear(std::uint32_t node, Answer said, Time now) {
    if (stage < Stage::inviting || stage > Stage::measuring || !answers(node, said.step)) return;
    if (auto why = misfit(said, node, doing.batches[node], teams)) return lose(node, *why, now);
    if (stage == Stage::inviting && !said.outcome.trouble) return lose(node, "it sent no cards", now);
    said.outcome.detail = printable(said.outcome.detail);
    const std::string transport = printable(said.transport, kMaxTransport);
    if (doing.transport.empty()) doing.transport = transport;
    if (transport != doing.transport) said.outcome.transport = transport;
    doing.outcomes.insert_or_assign(node, std::move(said.outcome));
    if (!complete(node)) return;
    if (stage == Stage::inviting) return connect(now);
    conclude(now);
  }

  /// The step under way is history.
  void conclude(Time now) {
    judge::Done done{
        .step = doing.step, .outcomes = {}, .transport = doing.transport, .took = now - doing.began};
    for (const auto& [node, cards] : doing.cards)
      doing.outcomes.emplace(node, NodeOutcome{.node = node});
    for (auto& [node, outcome] : doing.outcomes)
      done.outcomes.push_back(std::move(outcome));
    report.history.done.push_back(std::move(done));
    proceed(now);
  }

  // --- what may come between ----------------------------------------------------------------------------

  void tick(Time now) {
    if (now < wake()) return;
    if (stage == Stage::dismissing) return finish();
    const std::string unheard = last_heed.empty() ? kUnheard : last_heed;
    const std::string why = stage == Stage::rendezvous ? unheard : "no answer in time";
    for (const std::uint32_t node : gather.awaited)
      report.history.missing.push_back({.node = node, .phase = report.reached, .detail = why});
    close(now);
  }

  void lose(std::uint32_t node, const std::string& why, Time now) {
    if (stage == Stage::dismissing) return;
    report.history.missing.push_back({.node = node, .phase = report.reached, .detail = printable(why)});
    close(now);
  }

  void refuse(Phase phase, const std::string& why, Time now) {
    report.history.refusal = judge::Refusal{phase, printable(why, 512)};
    close(now);
  }

  void interrupt(const std::string& why, Time now) {
    if (stage != Stage::dismissing) refuse(report.reached, why, now);
    if (stage == Stage::dismissing) finish();
  }

  void heed(const std::string& text) {
    note(report, text);
    last_heed = printable(text);
  }

  // --- close: the verdict, to everyone --------------------------------------------------------------------

  void close(Time now) {
    report.phases[std::string(judge::name(report.reached))] += now - phase_began;
    if (present.contains(0)) report.inventory = present.at(0).inventory;
    if (hardware.contains(0)) report.hardware = hardware.at(0);
    const judge::Verdict verdict = judge::decide(report.plan, report.history);
    report.claimed = judge::name(verdict);
    report.line = judge::line(verdict, report.plan, now - start);
    if (const auto* inconclusive = std::get_if<judge::Inconclusive>(&verdict))
      report.reason = inconclusive->reason;
    const bool all_met = stage != Stage::rendezvous || now >= gather.deadline;
    stage = Stage::dismissing;
    for (const std::uint32_t node : all_met ? everyone() : nodes_of(present)) {
      send(node, Close{.verdict = report.claimed, .line = report.line});
      gather.awaited.erase(node);
    }
    if (gather.awaited.empty()) finish();
  }

  /// Who comes to a rendezvous that is already decided is told so, rather than left to wonder where the
  /// leader is.
  void dismiss(std::uint32_t node) {
    send(node, Close{.verdict = report.claimed, .line = report.line});
    if (complete(node)) finish();
  }

  void finish() {
    if (std::exchange(stage, Stage::closed) == Stage::closed) return;
    actions.emplace_back(Finish{std::move(report)});
  }

  // --- small words ----------------------------------------------------------------------------------------

  [[nodiscard]] std::set<std::uint32_t> everyone() const {
    std::set<std::uint32_t> nodes;
    for (std::uint32_t node = 0; node < assignment.roster.nodes.size(); ++node)
      nodes.insert(node);
    return nodes;
  }

  template <typename Parts>
  [[nodiscard]] static std::set<std::uint32_t> nodes_of(const Parts& parts) {
    std::set<std::uint32_t> nodes;
    for (const auto& part : parts)
      nodes.insert(part.first);
    return nodes;
  }

  void send(std::uint32_t node, Message message) { actions.emplace_back(ToNode{node, std::move(message)}); }

  void await(std::set<std::uint32_t> nodes, Time deadline) {
    gather = {.awaited = std::move(nodes), .deadline = std::min(deadline, end)};
  }

  /// `node` has answered; true when it was the last one.
  [[nodiscard]] bool complete(std::uint32_t node) {
    gather.awaited.erase(node);
    return gather.awaited.empty();
  }

  /// Whether an answer is one that is waited for; late ones and doubles are not.
  [[nodiscard]] bool answers(std::uint32_t node, std::uint32_t step) const {
    return step == doing.number && gather.awaited.contains(node);
  }

  /// An allowance that leaves time for the answers.
  [[nodiscard]] Ns within_end(Ns allowance, Time now) const {
    return std::clamp(end - now - kAnswerGrace, Ns{0}, allowance);
  }

  void enter(Phase phase, Time now) {
    report.phases[std::string(judge::name(report.reached))] += now - std::exchange(phase_began, now);
    report.reached = phase;
  }

  [[nodiscard]] Time wake() const { return std::min(gather.deadline, end); }
};

Leader::Leader(Assignment assignment, Time start)
    : state_(std::make_unique<State>(std::move(assignment), start)) {}
Leader::Leader(Leader&&) noexcept = default;
Leader::~Leader() = default;

std::vector<LeaderAction> Leader::on(LeaderEvent event, Time now) {
  State& state = *state_;
  if (state.stage == State::Stage::closed) return {};
  std::visit(Overloaded{[&](FromNode& from) {
                          if (from.node >= state.assignment.roster.nodes.size()) return;
                          std::visit(
                              Overloaded{[&](Present& said) { state.hear(from.node, std::move(said), now); },
                                         [&](Opened& said) { state.hear(from.node, std::move(said), now); },
                                         [&](Broken& said) { state.hear(from.node, said, now); },
                                         [&](Cards& said) { state.hear(from.node, std::move(said), now); },
                                         [&](Answer& said) { state.hear(from.node, std::move(said), now); },
                                         [&](auto&) { state.lose(from.node, "it gives orders", now); }},
                              from.message);
                        },
                        [&](NodeGone& gone) { state.lose(gone.node, gone.why, now); },
                        [&](Heed& heed) { state.heed(heed.text); },
                        [&](Interrupted& interrupted) { state.interrupt(interrupted.why, now); },
                        [&](Tick&) { state.tick(now); }},
             event);
  return std::exchange(state.actions, {});
}

Time Leader::wake() const {
  return state_->wake();
}

}  // namespace netcheck::session
