// The leader's side of the rendezvous: strangers come in as guests, prove themselves and become members, or
// are dropped and named. As the probe user, on a listener that the supervisor bound.
//
//   guest: hello ── opening (clerk) ── sealing (clerk) ── proof ──→ member
//
// One proof per node and check. A second hello of a node that has proved itself is refused, also after its
// connection has closed: its follower ends with its connection and never comes back, so it is a copy's. Until
// then several guests may claim to be one node; the first that proves it is. Copies of a hello get no further
// than a welcome that they cannot open.
#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "peers/address.h"
#include "peers/channel.h"
#include "peers/complaints.h"
#include "peers/connection.h"
#include "peers/peers.h"

namespace netcheck::peers {
namespace {

using system::Loop;

/// For a hello after the connection stands: followers have theirs ready, so one round trip and a busy node.
constexpr Ns kHelloPatience = std::chrono::seconds(1);
/// For the proof after the welcome: the follower's munged opens it, among others on a busy node.
constexpr Ns kProofPatience = std::chrono::seconds(3);
/// After accept failed for want of descriptors: long enough not to spin, short enough not to be missed.
constexpr Ns kAcceptPause = std::chrono::milliseconds(50);
constexpr int kAcceptsPerTurn = 64;  // fair to those already in
constexpr std::size_t kMinStrangers = 64;
/// A member's frame: the largest message and what the channel adds.
constexpr std::size_t kMemberFrame = kMaxFrame + Channel::kOverhead + Channel::kHeader;
/// Descriptors beside the connections: clerk, fabric child, epoll, files.
constexpr rlim_t kOtherDescriptors = 256;

class Leading final : public Peers {
 public:
  Leading(Loop& loop, Clerk& clerk, Roster roster, system::Descriptor listener, Sink sink);
  Leading(const Leading&) = delete;
  Leading& operator=(const Leading&) = delete;
  ~Leading() override;

  void send(std::uint32_t node, const Bytes& message) override;
  [[nodiscard]] bool flushed() const override;

 private:
  enum class Stage : std::uint8_t { hello, opening, sealing, proof };
  struct Guest {
    std::uint64_t id = 0;
    std::unique_ptr<Connection> connection;  // null: it has closed, the clerk's answer is still awaited
    std::string host;
    std::string from;  // host, and who it says it is
    Stage stage = Stage::hello;
    Loop::Timer timer = 0;
    std::uint32_t node = 0;  // from sealing on
    std::unique_ptr<Channel> channel;
  };
  struct Member {
    std::unique_ptr<Connection> connection;
    std::unique_ptr<Channel> channel;
  };

  void listen();
  void accept();
  void pause_accepting();
  void admit(system::Descriptor socket, const std::string& host);
  [[nodiscard]] bool make_room();
  void heard(std::uint64_t id, const Bytes& frame);
  void greeted(Guest& guest, const Bytes& frame);
  void opened(std::uint64_t id, const Result<Opened>& result);
  void sealed(std::uint64_t id, const SessionKey& key, const Result<std::string>& token);
  void proof(Guest& guest, const Bytes& frame);
  void become_member(Guest& guest, const Bytes& message);
  void from_member(std::uint32_t node, const Bytes& frame);
  void gone(std::uint32_t node, const std::string& why);
  Guest* find(std::uint64_t id);
  void set_timer(Guest& guest, Ns patience, const char* why);
  void drop(std::uint64_t id, const std::string& why);
  void refuse(std::uint64_t id, const std::string& why);
  void forget(std::uint64_t id);

  Loop& loop_;
  Clerk& clerk_;
  Roster roster_;
  system::Descriptor listener_;
  Sink sink_;
  std::size_t max_guests_;
  std::uint64_t next_guest_ = 1;
  std::map<std::uint64_t, Guest> guests_;  // oldest first
  std::vector<Member> members_;
  std::vector<bool> proved_;  // ever
  Complaints complaints_;
  Loop::Timer pause_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// A thousand followers are a thousand descriptors; many systems start a process with 1,024.
void raise_descriptor_limit(std::size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(connections + kOtherDescriptors, limit.rlim_max);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // without it accept says so in its time
}

Leading::Leading(Loop& loop, Clerk& clerk, Roster roster, system::Descriptor listener, Sink sink)
    : loop_(loop),
      clerk_(clerk),
      roster_(std::move(roster)),
      listener_(std::move(listener)),
      sink_(std::move(sink)),
      max_guests_(std::max(kMinStrangers, 2 * roster_.nodes.size())),
      members_(roster_.nodes.size()),
      proved_(roster_.nodes.size(), false) {
  raise_descriptor_limit(max_guests_ + roster_.nodes.size());
  const int flags = ::fcntl(listener_.get(), F_GETFL);
  ::fcntl(listener_.get(), F_SETFL, flags | O_NONBLOCK);
  listen();
}

Leading::~Leading() {
  alive_.reset();
  loop_.cancel(pause_);
  for (auto& [id, guest] : guests_)
    loop_.cancel(guest.timer);
  if (listener_) loop_.forget(listener_.get());
}

void Leading::listen() {
  loop_.watch(listener_.get(), Loop::kRead, [this](std::uint8_t) { accept(); });
}

void Leading::pause_accepting() {
  loop_.forget(listener_.get());
  loop_.cancel(pause_);
  pause_ = loop_.at(system::now() + kAcceptPause, [this] { listen(); });
}

void Leading::accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Address peer;
    peer.size = sizeof peer.storage;
    auto* raw = reinterpret_cast<sockaddr*>(&peer.storage);
    system::Descriptor socket(::accept4(listener_.get(), raw, &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      set_peer_options(socket.get());
      admit(std::move(socket), host_of(peer));
      continue;
    }
    if (errno == EAGAIN) return;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    const std::string why = std::strerror(errno);
    if (!make_room() && complaints_.worth_telling("", why)) {
      sink_(Dropped{roster_.nodes[roster_.self], "cannot accept connections: " + why});
    }
    pause_accepting();
    return;
  }
}

void Leading::admit(system::Descriptor socket, const std::string& host) {
  if (guests_.size() >= max_guests_ && !make_room()) return;  // closes it
  const std::uint64_t id = next_guest_++;
  Guest& guest = guests_[id];
  guest.id = id;
  guest.host = host;
  guest.from = host;
  guest.connection = std::make_unique<Connection>(loop_, std::move(socket), kMaxHello);
  guest.connection->listen([this, id](const Bytes& frame) { heard(id, frame); },
                           [this, id](const std::string& why) { drop(id, why); });
  set_timer(guest, kHelloPatience, "it connected and did not say who it is");
}

/// Too many strangers: the one that has kept us waiting longest goes, unless the clerk is at work for it.
bool Leading::make_room() {
  for (const Stage stage : {Stage::hello, Stage::proof}) {
    for (auto& [id, guest] : guests_) {
      if (guest.stage != stage) continue;
      drop(id, "too many unproven connections, and it was the slowest");
      return true;
    }
  }
  return false;
}

Leading::Guest* Leading::find(std::uint64_t id) {
  const auto found = guests_.find(id);
  return found == guests_.end() ? nullptr : &found->second;
}

void Leading::set_timer(Guest& guest, Ns patience, const char* why) {
  loop_.cancel(guest.timer);
  guest.timer = loop_.at(system::now() + patience, [this, id = guest.id, why] { drop(id, why); });
}

void Leading::forget(std::uint64_t id) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  loop_.cancel(found->second.timer);
  guests_.erase(found);
}

void Leading::drop(std::uint64_t id, const std::string& why) {
  Guest* guest = find(id);
  if (guest == nullptr) return;
  const Dropped event{guest->from, printable(why, 2 * kMaxRefusal)};
  const bool tell = guest->connection != nullptr && complaints_.worth_telling(guest->host, event.why);
  if (guest->stage == Stage::opening || guest->stage == Stage::sealing) {
    // It keeps its place until the clerk has answered: else closing early would let a stranger pile up work.
    guest->connection.reset();
  } else {
    forget(id);
  }
  if (tell) sink_(event);
}

/// Drops a guest whose clerk work is over, and tells it why, for its own log.
void Leading::refuse(std::uint64_t id, const std::string& why) {
  Guest* guest = find(id);
  if (guest == nullptr) return;
  if (guest->connection) {
    const std::string text = roster_.nodes[roster_.self] + ": " + why;  // "this node" is ours, not theirs
    guest->connection->send(encode(Greeting{Greeting::Kind::refusal, roster_.self, text}));
  }
  guest->stage = Stage::hello;
  drop(id, why);
}

void Leading::heard(std::uint64_t id, const Bytes& frame) {
  Guest* guest = find(id);
  if (guest == nullptr) return;
  switch (guest->stage) {
    case Stage::hello:
      greeted(*guest, frame);
      return;
    case Stage::proof:
      proof(*guest, frame);
      return;
    default:
      drop(id, "it spoke before it was answered");
  }
}

void Leading::greeted(Guest& guest, const Bytes& frame) {
  const std::uint64_t id = guest.id;
  auto greeting = decode_greeting(frame);
  if (!greeting) {
    drop(id, greeting.error().reason);
    return;
  }
  if (greeting->claim < roster_.nodes.size()) {
    guest.from = fmt::format("{} (says it is {})", guest.host, roster_.nodes[greeting->claim]);
  }
  if (greeting->kind != Greeting::Kind::hello) {
    drop(id, greeting->kind == Greeting::Kind::refusal ? "it cannot join: " + greeting->text
                                                       : "it sent a welcome where a hello belongs");
    return;
  }
  guest.stage = Stage::opening;
  loop_.cancel(guest.timer);
  clerk_.open(std::move(greeting->text),
              [this, id, alive = std::weak_ptr<bool>(alive_)](const Result<Opened>& result) {
                if (!alive.expired()) opened(id, result);
              });
}

void Leading::opened(std::uint64_t id, const Result<Opened>& result) {
  Guest* guest = find(id);
  if (guest == nullptr) return;
  if (!guest->connection) return forget(id);
  if (!result) return refuse(id, describe(result.error()));
  const auto hello = believe_hello(*result, ::geteuid(), roster_);
  if (!hello) return refuse(id, describe(hello.error()));
  guest->node = hello->sender;
  guest->from = fmt::format("{} ({})", roster_.nodes[guest->node], guest->host);
  if (proved_[guest->node]) return refuse(id, "this node has proved itself before: one proof per check");
  guest->stage = Stage::sealing;
  const SessionKey key = random_session_key();
  Bytes welcome = encode(make_welcome(roster_, *hello, random_nonce(), key));
  clerk_.seal(std::move(welcome),
              [this, id, key, alive = std::weak_ptr<bool>(alive_)](const Result<std::string>& token) {
                if (!alive.expired()) sealed(id, key, token);
              });
}

void Leading::sealed(std::uint64_t id, const SessionKey& key, const Result<std::string>& token) {
  Guest* guest = find(id);
  if (guest == nullptr) return;
  if (!guest->connection) return forget(id);
  if (!token) return refuse(id, describe(token.error()));
  guest->channel = std::make_unique<Channel>(key, Channel::End::leader);
  guest->stage = Stage::proof;
  set_timer(*guest, kProofPatience, "it was welcomed and did not prove that it could read the welcome");
  guest->connection->send(encode(Greeting{Greeting::Kind::welcome, roster_.self, *token}));
}

void Leading::proof(Guest& guest, const Bytes& frame) {
  if (const auto message = guest.channel->open(frame)) return become_member(guest, *message);
  const auto greeting = decode_greeting(frame);
  const bool says_why = greeting && greeting->kind == Greeting::Kind::refusal;
  drop(guest.id,
       says_why ? "it cannot join: " + greeting->text : "a forged or damaged frame where its proof belongs");
}

void Leading::become_member(Guest& guest, const Bytes& message) {
  const std::uint32_t node = guest.node;
  if (proved_[node]) return refuse(guest.id, "this node has proved itself before: one proof per check");
  proved_[node] = true;
  Member& member = members_[node];
  member.connection = std::move(guest.connection);
  member.channel = std::move(guest.channel);
  forget(guest.id);
  member.connection->allow(kMemberFrame);
  member.connection->listen([this, node](const Bytes& frame) { from_member(node, frame); },
                            [this, node](const std::string& why) { gone(node, why); });
  sink_(Proven{node, local_address_of(member.connection->fd())});
  if (!message.empty()) sink_(Heard{node, message});
}

void Leading::from_member(std::uint32_t node, const Bytes& frame) {
  Member& member = members_[node];
  if (!member.channel) return;
  auto message = member.channel->open(frame);
  if (!message) return gone(node, "a forged or damaged frame");
  if (!message->empty()) sink_(Heard{node, std::move(*message)});
}

void Leading::gone(std::uint32_t node, const std::string& why) {
  if (!members_[node].connection) return;
  members_[node] = {};
  sink_(Gone{node, why});
}

void Leading::send(std::uint32_t node, const Bytes& message) {
  if (node >= members_.size() || !members_[node].connection) return;
  if (message.size() > kMaxFrame) {
    loop_.post([this, node, size = message.size(), alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) gone(node, fmt::format("a message of {} bytes is too large to send", size));
    });
    return;
  }
  members_[node].connection->send(members_[node].channel->seal(message));
}

bool Leading::flushed() const {
  return std::ranges::all_of(
      members_, [](const Member& member) { return !member.connection || member.connection->queued() == 0; });
}

}  // namespace

std::unique_ptr<Peers> lead(Loop& loop, Clerk& clerk, Roster roster, system::Descriptor listener, Sink sink) {
  if (sodium_init() < 0) return nullptr;
  return std::make_unique<Leading>(loop, clerk, std::move(roster), std::move(listener), std::move(sink));
}

}  // namespace netcheck::peers
