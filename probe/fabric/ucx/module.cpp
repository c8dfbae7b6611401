// What the fabric child asks, answered with UCX.
#include "fabric/ucx/module.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "fabric/ucx/card.h"
#include "fabric/ucx/tag.h"
#include "measure/schedule.h"

namespace netcheck::fabric::ucx {

namespace {

/// One message buffer where the site sets no cap: enough for any Ethernet, and for 400 Gb/s a 5 ms message.
constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{256} << 20U;
/// Results are checked when nothing moves, so that no other rail's times suffer; but not put off for ever.
constexpr Ns kCheckPatience = std::chrono::milliseconds(100);

/// About the far end or the path to it; anything else is about this node.
bool is_about_the_peer(ucs_status_t status) {
  switch (status) {
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_IO_ERROR:
      return true;
    default:
      return UCS_IS_LINK_ERROR(status) || UCS_IS_ENDPOINT_ERROR(status);
  }
}

std::vector<std::uint32_t> nodes_of(const Team& team) {
  std::vector<std::uint32_t> nodes;
  for (const auto& rank : team.ranks)
    if (std::find(nodes.begin(), nodes.end(), rank.node) == nodes.end()) nodes.push_back(rank.node);
  return nodes;
}

}  // namespace

// --- opening and teams ------------------------------------------------------------------------------------

void UcxModule::open(Options options) {
  if (auto opened = open_lanes(options); !opened) return refuse(0, opened.error());
  Ready ready{"ucx", version_, {}, max_bytes_};
  for (const auto& lane : lanes_)
    ready.lanes.push_back(lane->device());
  events_.emplace_back(std::move(ready));
}

Result<void> UcxModule::open_lanes(const Options& options) {
  if (!lanes_.empty()) return fail("open", "ucx", "it is open already");
  if (options.devices.empty()) return fail("open", "ucx", "no network device was given");
  if (begin_with_key_) key_ = begin_with_key_();
  max_bytes_ = options.max_bytes == 0 ? kDefaultMaxBytes : options.max_bytes;
  events_ready_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (events_ready_ < 0) return fail("open", "ucx", std::strerror(errno));
  for (const auto& device : options.devices) {
    auto lane = Lane::open(device);
    if (!lane) return tl::unexpected(lane.error());
    epoll_event event{};
    event.events = EPOLLIN;
    if (!(*lane)->down() &&
        ::epoll_ctl(events_ready_, EPOLL_CTL_ADD, (*lane)->event_descriptor(), &event) != 0)
      return fail("watch", device, std::strerror(errno));
    lanes_.push_back(std::move(*lane));
  }
  return {};
}

void UcxModule::invite(Team team, std::uint32_t self) {
  for (const auto& rank : team.ranks)
    if (rank.node == self && rank.lane >= lanes_.size())
      return refuse(team.id, {"invite",
                              fmt::format("team {}", team.id),
                              fmt::format("this node has no lane {}", rank.lane),
                              {}});
  Card card{version_, {}, key_};
  for (const auto& lane : lanes_)
    card.addresses.push_back(lane->address());
  events_.emplace_back(Invited{team.id, encode(card)});
}

void UcxModule::join(Join join) {
  const Time begin = std::chrono::steady_clock::now();
  const std::uint32_t id = join.team.id;
  auto member = admit(std::move(join));
  if (!member) return refuse(id, member.error());
  Joined joined{id, {}, transport_of(*member)};
  teams_.insert_or_assign(id, std::move(*member));
  joined.took = std::chrono::steady_clock::now() - begin;
  events_.emplace_back(std::move(joined));
}

Result<UcxModule::Member> UcxModule::admit(Join join) {
  const std::string subject = fmt::format("team {}", join.team.id);
  const auto nodes = nodes_of(join.team);
  if (join.team.id > kMaxTeam || join.team.ranks.size() > kMaxRanks)
    return fail("join", subject, fmt::format("ids go to {}, ranks to {}", kMaxTeam, kMaxRanks));
  if (join.cards.size() != nodes.size())
    return fail("join", subject, fmt::format("{} cards for {} nodes", join.cards.size(), nodes.size()));
  std::map<std::uint32_t, Card> cards;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string from = fmt::format("node {}", nodes[i]);
    auto card = decode_card(join.cards[i], from);
    if (!card) return tl::unexpected(card.error());
    if (!speak_together(card->version, version_))
      return fail("join", from, "UCX " + printable(card->version, 32) + " there and " + version_ + " here",
                  "install one version of UCX on all nodes");
    cards[nodes[i]] = std::move(*card);
  }
  std::vector<Key> keys;
  keys.reserve(cards.size());
  for (const auto& [node, card] : cards)
    keys.push_back(card.key);
  if (admit_keys_) admit_keys_(keys);
  Member member{std::move(join.team), join.self, {}};
  for (const auto& rank : member.team.ranks) {
    const auto& addresses = cards[rank.node].addresses;
    if (rank.lane >= addresses.size())
      return fail("join", subject, fmt::format("node {} has no lane {}", rank.node, rank.lane));
    if (rank.node == join.self && rank.lane >= lanes_.size())
      return fail("join", subject, fmt::format("this node has no lane {}", rank.lane));
    member.addresses.push_back(addresses[rank.lane]);
  }
  return member;
}

std::string UcxModule::transport_of(const Member& member) const {
  std::string text;
  for (const auto& rank : member.team.ranks)
    if (rank.node == member.self) text += (text.empty() ? "" : ",") + lanes_[rank.lane]->transport();
  return text;
}

void UcxModule::leave(std::uint32_t team) {
  teams_.erase(team);
  for (auto& running : running_)
    if (running.batch.team == team && !running.failed)
      give_up(running, Breakdown{UCS_ERR_CANCELED, std::nullopt, "the team was left"});
}

// --- batches ----------------------------------------------------------------------------------------------

void UcxModule::run(Batch batch) {
  auto running = start(batch);
  if (!running) return refuse(batch.id, running.error());
  running_.push_back(std::move(*running));
}

Result<void> UcxModule::check_batch(const Batch& batch) const {
  const auto refuse_because = [&batch](std::string why) {
    return fail("run", fmt::format("batch {}", batch.id), std::move(why));
  };
  const auto member = teams_.find(batch.team);
  if (member == teams_.end()) return refuse_because(fmt::format("team {} was not joined", batch.team));
  const auto ranks = member->second.team.ranks.size();
  if (batch.id > kMaxBatch) return refuse_because(fmt::format("ids go to {}", kMaxBatch));
  if (batch.bytes == 0 || batch.iterations == 0) return refuse_because("nothing to do");
  if (batch.bytes > max_bytes_)
    return refuse_because(fmt::format("{} bytes are above the cap of {}", batch.bytes, max_bytes_));
  if (batch.root >= ranks) return refuse_because(fmt::format("root {} of {} ranks", batch.root, ranks));
  for (const auto& edge : batch.edges)
    if (edge.from >= ranks || edge.to >= ranks || edge.from == edge.to)
      return refuse_because(fmt::format("edge {} to {} of {} ranks", edge.from, edge.to, ranks));
  for (const auto& other : running_)
    if (other.batch.team == batch.team && !other.failed)
      return refuse_because(fmt::format("batch {} of its team still runs", other.batch.id));
  return {};
}

Result<UcxModule::Running> UcxModule::start(const Batch& batch) {
  if (auto sound = check_batch(batch); !sound) return tl::unexpected(sound.error());
  const Member& member = teams_.at(batch.team);
  Running running{batch, batch.algorithm, {}, false, {}};
  if (running.algorithm.empty()) running.algorithm = default_algorithm(batch.op);
  const auto ranks = static_cast<std::uint32_t>(member.team.ranks.size());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Rank& place = member.team.ranks[rank];
    if (place.node != member.self) continue;
    Lane& lane = *lanes_[place.lane];
    const auto reach = [&lane, addresses = member.addresses, team = member.team](std::uint32_t to) -> Peer& {
      return lane.reach(addresses.at(to), team.ranks.at(to).node);
    };
    auto run = RankRun::start({lane, *pulse_, reach}, batch, ranks, rank);
    if (!run) return tl::unexpected(run.error());
    running.ranks.push_back(std::move(*run));
  }
  if (running.ranks.empty())
    return fail("run", fmt::format("batch {}", batch.id), "this node is no member of its team");
  return running;
}

void UcxModule::refuse(std::uint32_t id, const Error& error) {
  events_.emplace_back(Failed{id, judge::Trouble::refused, describe(error), {}});
}

/// Answers, and keeps the memory until UCX lets go of it.
void UcxModule::give_up(Running& running, const Breakdown& breakdown) {
  running.failed = true;
  Failed failed{running.batch.id, judge::Trouble::refused, breakdown.detail, {}};
  if (is_about_the_peer(breakdown.status)) failed.trouble = judge::Trouble::no_bytes;
  if (breakdown.node) failed.detail = fmt::format("node {}: {}", *breakdown.node, breakdown.detail);
  for (const auto& run : running.ranks) {
    failed.partial.push_back(run->sample());
    run->cancel();
  }
  events_.emplace_back(std::move(failed));
}

// --- moving -----------------------------------------------------------------------------------------------

bool UcxModule::progress() {
  bool moved = false;
  for (const auto& lane : lanes_) {
    moved = lane->progress() || moved;
    for (const Peer* peer : lane->take_broken()) {
      moved = true;
      for (auto& running : running_)
        for (const auto& run : running.ranks)
          run->broke(*peer);
    }
  }
  for (auto& running : running_)
    for (const auto& run : running.ranks)
      moved = run->step() || moved;
  for (auto& running : running_)
    moved = settle(running) || moved;
  std::erase_if(running_, [](const Running& running) {
    const auto quiet = [](const auto& run) { return run->quiet(); };
    return running.failed && std::all_of(running.ranks.begin(), running.ranks.end(), quiet);
  });
  moved = deliver() || moved;
  return check_one(!moved) || moved;
}

/// Whether a batch has failed or ended.
bool UcxModule::settle(Running& running) {
  if (running.failed || running.exchanged != Time{}) return false;
  for (const auto& run : running.ranks)
    if (const auto* breakdown = run->breakdown()) {
      give_up(running, *breakdown);
      return true;
    }
  const auto exchanged = [](const auto& run) { return run->exchanged(); };
  if (!std::all_of(running.ranks.begin(), running.ranks.end(), exchanged)) return false;
  running.exchanged = std::chrono::steady_clock::now();
  return true;
}

/// Checks one rank's result, or answers for a batch whose results are all checked.
bool UcxModule::check_one(bool idle) {
  for (auto running = running_.begin(); running != running_.end(); ++running) {
    if (running->failed || running->exchanged == Time{}) continue;
    if (!idle && std::chrono::steady_clock::now() - running->exchanged < kCheckPatience) continue;
    for (const auto& run : running->ranks)
      if (!run->checked()) {
        run->check();
        return true;
      }
    Measured measured{running->batch.id, running->algorithm, {}};
    for (const auto& run : running->ranks)
      measured.local.push_back(run->sample());
    running_.erase(running);
    events_.emplace_back(std::move(measured));
    return true;
  }
  return false;
}

bool UcxModule::deliver() {
  if (events_.empty()) return false;
  const Event event = std::move(events_.front());
  events_.pop_front();
  (*sink_)(event);
  return true;
}

bool UcxModule::arm() {
  return events_.empty() &&
         std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->arm(); });
}

std::vector<std::pair<std::uint32_t, Sample>> UcxModule::partial() const {
  std::vector<std::pair<std::uint32_t, Sample>> samples;
  for (const auto& running : running_)
    if (!running.failed)
      for (const auto& run : running.ranks)
        samples.emplace_back(running.batch.id, run->sample());
  return samples;
}

}  // namespace netcheck::fabric::ucx

namespace {

using netcheck::fabric::kModuleAbi;

void tell(char* why, std::size_t why_size, std::string_view text) noexcept {
  if (why_size == 0) return;
  const std::size_t length = std::min(text.size(), why_size - 1);
  std::memcpy(why, text.data(), length);
  why[length] = '\0';
}

}  // namespace

extern "C" [[gnu::visibility("default")]] netcheck::fabric::Module* netcheck_fabric_module(
    int abi, const netcheck::fabric::Hosting* hosting, char* why, std::size_t why_size) noexcept {
  try {
    if (abi != kModuleAbi) {
      tell(why, why_size, fmt::format("built for interface {}, this netcheck has {}", kModuleAbi, abi));
      return nullptr;
    }
    auto version = netcheck::fabric::ucx::library_version();
    if (version) return new netcheck::fabric::ucx::UcxModule(*hosting, std::move(*version));
    tell(why, why_size, describe(version.error()));
  } catch (const std::exception& error) {
    tell(why, why_size, error.what());
  } catch (...) {
    tell(why, why_size, "an exception of an unknown kind");
  }
  return nullptr;
}
