// What the fabric child asks, answered with NCCL.
#include "fabric/nccl/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fabric/nccl/card.h"
#include "fabric/nccl/transports.h"
#include "measure/collective.h"

namespace netcheck::fabric::nccl {

namespace {

/// Between two looks at what cannot call: 32 steps are ahead of a batch, and an init takes a second.
constexpr Ns kLookAgain = std::chrono::microseconds(200);
constexpr Ns kLookAgainLater = std::chrono::milliseconds(1);
/// A team's nodes are told to join within some milliseconds of each other; who is told first connects to the
/// node with the unique id, which may not know of it yet.
constexpr Ns kPatience = std::chrono::seconds(2);

std::vector<std::uint32_t> nodes_of(const Team& team) {
  std::vector<std::uint32_t> nodes;
  for (const auto& rank : team.ranks)
    if (std::find(nodes.begin(), nodes.end(), rank.node) == nodes.end()) nodes.push_back(rank.node);
  return nodes;
}

std::string subject_of(const Team& team) {
  return fmt::format("team {}", team.id);
}

}  // namespace

NcclModule::NcclModule(const Hosting& hosting)
    : sink_(hosting.sink), pulse_(hosting.pulse), admit_(hosting.admit) {
  if (hosting.be_patient) hosting.be_patient(kPatience);
}

// --- opening and teams ------------------------------------------------------------------------------------

void NcclModule::open(Options options) {
  if (auto begun = begin_open(options); !begun) refuse(0, begun.error());
}

Result<void> NcclModule::begin_open(const Options& options) {
  if (opened_ || opening_.valid()) return fail("open", "nccl", "it is open already");
  if (options.devices.empty()) return fail("open", "nccl", "no GPU was given");
  auto settings = read_settings(options.settings);
  if (!settings) return tl::unexpected(settings.error());
  if (!timer_) timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_) return fail("open", "nccl", std::strerror(errno));
  settings_ = std::move(*settings);
  // Before any other thread is there: the environment is not for two at once.
  log_.start();
  for (const auto& [name, value] : settings_.environment)
    ::setenv(name.c_str(), value.c_str(), 1);
  opening_ =
      std::async(std::launch::async, [options, settings = settings_] { return open_all(options, settings); });
  return {};
}

bool NcclModule::settle_open() {
  if (!opening_.valid() || opening_.wait_for(Ns::zero()) != std::future_status::ready) return false;
  auto opened = opening_.get();
  if (!opened) {
    refuse(0, opened.error());
    return true;
  }
  opened_ = std::move(*opened);
  std::vector<std::string> lanes;
  for (const auto& gpu : opened_->gpus)
    lanes.push_back(gpu->device());
  events_.emplace_back(
      Ready{"nccl", opened_->nccl->version(), std::move(lanes), opened_->max_bytes, opened_->terms});
  return true;
}

void NcclModule::invite(Team team, std::uint32_t self) {
  auto card = card_for(team, self);
  if (!card) return refuse(team.id, card.error());
  events_.emplace_back(Invited{team.id, std::move(*card)});
}

Result<Bytes> NcclModule::card_for(const Team& team, std::uint32_t self) const {
  if (!opened_) return fail("invite", subject_of(team), "the fabric is not open");
  if (auto seats = seats_of(team, self); !seats) return tl::unexpected(seats.error());
  Card card{opened_->nccl->version(), {}, own_addresses()};
  if (team.ranks.front().node == self) {
    auto id = opened_->nccl->unique_id();
    if (!id) return tl::unexpected(id.error());
    const Bootstrap bootstrap = bootstrap_of(*id);
    if (bootstrap.loopback && nodes_of(team).size() > 1)
      return fail(
          "invite", subject_of(team),
          fmt::format("NCCL would be looked for at {}, where no other node finds it", bootstrap.address),
          "set NCCL_SOCKET_IFNAME to an interface that leads to the other nodes");
    card.id = *id;
  }
  return encode(card);
}

void NcclModule::join(Join join) {
  const std::uint32_t id = join.team.id;
  const std::size_t log_before = log_.size();
  const Time since = std::chrono::steady_clock::now();
  auto unique = admit(join);
  if (!unique) return refuse(id, unique.error());
  auto seats = seats_of(join.team, join.self);
  if (!seats) return refuse(id, seats.error());
  const auto ranks = static_cast<std::uint32_t>(join.team.ranks.size());
  auto forming = Forming::start(*opened_->nccl, {*unique, ranks, std::move(*seats)});
  if (!forming) return refuse(id, {judge::Trouble::refused, std::move(forming.error().detail)});
  joining_.push_back({std::move(join.team), std::move(*forming), since, log_before});
}

/// What must agree is compared here: two versions of NCCL, or a node without the id, would wait for each
/// other for ever.
Result<NcclId> NcclModule::admit(const Join& join) const {
  const std::string subject = subject_of(join.team);
  const auto nodes = nodes_of(join.team);
  if (!opened_) return fail("join", subject, "the fabric is not open");
  if (!spoilt_.empty()) return fail("join", subject, spoilt_);
  if (join.cards.size() != nodes.size() || nodes.empty())
    return fail("join", subject, fmt::format("{} cards for {} nodes", join.cards.size(), nodes.size()));
  std::optional<NcclId> id;
  std::vector<Address> sources;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string from = fmt::format("node {}", nodes[i]);
    auto card = decode_card(join.cards[i], from);
    if (!card) return tl::unexpected(card.error());
    if (card->version != opened_->nccl->version())
      return fail("join", from,
                  "NCCL " + printable(card->version, 32) + " there and " + opened_->nccl->version() + " here",
                  "install one version of NCCL on all nodes");
    if (i == 0) id = card->id;
    sources.insert(sources.end(), card->sources.begin(), card->sources.end());
  }
  if (!id) return fail("join", subject, "its first node gave no unique id");
  if (admit_) admit_(sources);  // this node's own, too: NCCL speaks to itself over sockets
  return *id;
}

Result<std::vector<Seat>> NcclModule::seats_of(const Team& team, std::uint32_t self) const {
  std::vector<Seat> seats;
  for (std::uint32_t rank = 0; rank < team.ranks.size(); ++rank) {
    const Rank& place = team.ranks[rank];
    if (place.node != self) continue;
    if (place.lane >= opened_->gpus.size())
      return fail("form", subject_of(team), fmt::format("this node has no lane {}", place.lane));
    seats.push_back({rank, opened_->gpus[place.lane].get(), nullptr, nullptr});
  }
  if (seats.empty()) return fail("form", subject_of(team), "this node is no member of it");
  return seats;
}

bool NcclModule::settle(Joining& joining) {
  auto formed = joining.forming->step();
  if (!formed) {
    // Of no init that fails does a process get over; and it says nothing about how fast the network is.
    spoilt_ = fmt::format("team {} could not be formed: a fresh child is needed", joining.team.id);
    refuse(joining.team.id, {judge::Trouble::refused, std::move(formed.error().detail)});
    unformed_.push_back(std::move(joining.forming));
    return true;
  }
  if (!*formed) return false;
  const std::uint32_t id = joining.team.id;
  const std::string log = log_.read();
  events_.emplace_back(Joined{id, std::chrono::steady_clock::now() - joining.since,
                              fmt::format("{}", fmt::join(transports_in(log, joining.log_before), ",")),
                              init_parts_in(log, joining.log_before)});
  teams_.insert_or_assign(id, Member{std::move(joining.team), joining.forming->seats()});
  return true;
}

void NcclModule::leave(std::uint32_t team) {
  teams_.erase(team);
  const auto is_it = [team](const Joining& joining) { return joining.team.id == team; };
  if (const auto joining = std::find_if(joining_.begin(), joining_.end(), is_it); joining != joining_.end()) {
    spoilt_ = fmt::format("team {} was left unformed: a fresh child is needed", team);
    refuse(team, {judge::Trouble::refused, "the team was left"});
    unformed_.push_back(std::move(joining->forming));
    joining_.erase(joining);
  }
  for (auto running = running_.begin(); running != running_.end(); ++running) {
    if (running->batch.team != team) continue;
    spoilt_ =
        fmt::format("batch {} was left unfinished on these GPUs: a fresh child is needed", running->batch.id);
    events_.emplace_back(
        Failed{running->batch.id, judge::Trouble::refused, "the team was left", samples_of(*running)});
    running_.erase(running);
    return;
  }
}

// --- batches ----------------------------------------------------------------------------------------------

void NcclModule::run(Batch batch) {
  auto running = start(batch);
  if (!running) return refuse(batch.id, running.error());
  running_.push_back(std::move(*running));
}

Result<void> NcclModule::check_batch(const Batch& batch) const {
  const auto refuse_because = [&batch](std::string why) {
    return fail("run", fmt::format("batch {}", batch.id), std::move(why));
  };
  if (!opened_) return refuse_because("the fabric is not open");
  if (!spoilt_.empty()) return refuse_because(spoilt_);
  const auto member = teams_.find(batch.team);
  if (member == teams_.end()) return refuse_because(fmt::format("team {} was not joined", batch.team));
  const auto ranks = member->second.team.ranks.size();
  if (batch.bytes == 0 || batch.iterations == 0) return refuse_because("nothing to do");
  if (batch.bytes > opened_->max_bytes)
    return refuse_because(fmt::format("{} bytes are above the cap of {}", batch.bytes, opened_->max_bytes));
  const std::uint64_t grain = size_of(batch.type) * (moves_blocks(batch.op) ? ranks : 1);
  if (batch.bytes % grain != 0)
    return refuse_because(fmt::format("{} bytes are no multiple of {}", batch.bytes, grain));
  if (batch.root >= ranks) return refuse_because(fmt::format("root {} of {} ranks", batch.root, ranks));
  for (const auto& edge : batch.edges)
    if (edge.from >= ranks || edge.to >= ranks || edge.from == edge.to)
      return refuse_because(fmt::format("edge {} to {} of {} ranks", edge.from, edge.to, ranks));
  if (!batch.algorithm.empty() && batch.algorithm != settings_.algorithm)
    return refuse_because(fmt::format("'{}' was asked for, and '{}' is in force (NCCL_ALGO)",
                                      printable(batch.algorithm, 32), printable(settings_.algorithm, 32)));
  for (const auto& other : running_)
    if (other.batch.team == batch.team)
      return refuse_because(fmt::format("batch {} of its team still runs", other.batch.id));
  return {};
}

Result<NcclModule::Running> NcclModule::start(const Batch& batch) {
  if (auto sound = check_batch(batch); !sound) return tl::unexpected(sound.error());
  const Member& member = teams_.at(batch.team);
  Running running{batch, {}, {}, false};
  std::vector<RankRun*> together;
  for (const Seat& seat : member.seats) {
    auto run =
        RankRun::start(*opened_->nccl, seat, batch, static_cast<std::uint32_t>(member.team.ranks.size()));
    if (!run) return tl::unexpected(run.error());
    running.ranks.push_back(std::move(*run));
    together.push_back(running.ranks.back().get());
  }
  const auto add = [&](std::vector<RankRun*> runs) {
    running.courses.push_back(std::make_unique<Course>(*opened_->nccl, *pulse_, batch, std::move(runs)));
  };
  if (batch.op != Op::transfer)
    add(std::move(together));
  else
    for (auto* run : together)
      add({run});
  return running;
}

std::vector<Sample> NcclModule::samples_of(const Running& running) const {
  std::vector<Sample> samples;
  for (const auto& run : running.ranks) {
    samples.push_back(run->sample());
    for (const auto& course : running.courses)
      if (std::find(course->runs().begin(), course->runs().end(), run.get()) != course->runs().end())
        samples.back().kept = course->kept();
  }
  return samples;
}

void NcclModule::refuse(std::uint32_t id, const Error& error) {
  refuse(id, Breakdown{judge::Trouble::refused, describe(error)});
}

void NcclModule::refuse(std::uint32_t id, Breakdown breakdown) {
  events_.emplace_back(Failed{id, breakdown.trouble, std::move(breakdown.detail), {}});
}

// --- moving -----------------------------------------------------------------------------------------------

bool NcclModule::progress() {
  std::uint64_t expirations = 0;
  static_cast<void>(!::read(timer_.get(), &expirations, sizeof expirations));
  bool moved = settle_open();
  const auto drop_settled = [this, &moved](auto& list) {
    for (auto one = list.begin(); one != list.end();) {
      const bool settled = settle(*one);
      moved = settled || moved;
      one = settled ? list.erase(one) : std::next(one);
    }
  };
  drop_settled(joining_);
  for (auto& running : running_)
    for (const auto& course : running.courses)
      moved = course->step() || moved;
  drop_settled(running_);
  return deliver() || moved;
}

/// Whether a batch has failed, or ended and been checked. One that failed still has its hands on the GPUs:
/// the next would wait behind it for ever.
bool NcclModule::settle(Running& running) {
  std::optional<Breakdown> broken;
  bool over = true;
  for (const auto& course : running.courses) {
    if (course->breakdown() && !broken) broken = course->breakdown();
    over = over && course->over();
  }
  if (!broken && !over) return false;
  if (!broken) {
    auto checked = check_results(running);
    if (!checked)
      broken = std::move(checked.error());
    else if (!*checked)
      return false;
  }
  if (broken) {
    spoilt_ = fmt::format("batch {} broke: a fresh child is needed", running.batch.id);
    events_.emplace_back(Failed{running.batch.id, broken->trouble, broken->detail, samples_of(running)});
    return true;
  }
  for (const auto& run : running.ranks)
    run->release();
  events_.emplace_back(Measured{running.batch.id, settings_.algorithm, samples_of(running)});
  return true;
}

/// When nothing moves any more, so that no other rail's times suffer.
tl::expected<bool, Breakdown> NcclModule::check_results(Running& running) {
  const auto refused = [](const Error& error) {
    return tl::unexpected(Breakdown{judge::Trouble::refused, describe(error)});
  };
  bool all = true;
  for (const auto& run : running.ranks) {
    if (!running.checking && running.batch.verify)
      if (auto begun = run->check(); !begun) return refused(begun.error());
    auto checked = run->checked();
    if (!checked) return refused(checked.error());
    all = all && *checked;
  }
  running.checking = true;
  return all;
}

bool NcclModule::deliver() {
  if (events_.empty()) return false;
  const fabric::Event event = std::move(events_.front());
  events_.pop_front();
  (*sink_)(event);
  return true;
}

/// Nothing here can wake us: while anything is under way we look again in a moment, or at once where a GPU
/// would be left waiting.
bool NcclModule::arm() {
  if (!events_.empty()) return false;
  if (!opening_.valid() && joining_.empty() && running_.empty()) return true;
  for (const auto& running : running_)
    for (const auto& course : running.courses)
      if (course->hungry()) return false;
  itimerspec when{};
  when.it_value.tv_nsec = (running_.empty() ? kLookAgainLater : kLookAgain).count();
  return ::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0;
}

std::vector<std::pair<std::uint32_t, Sample>> NcclModule::partial() const {
  std::vector<std::pair<std::uint32_t, Sample>> samples;
  for (const auto& running : running_)
    for (auto& sample : samples_of(running))
      samples.emplace_back(running.batch.id, std::move(sample));
  return samples;
}

}  // namespace netcheck::fabric::nccl
