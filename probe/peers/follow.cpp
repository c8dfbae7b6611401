// A follower's side of the rendezvous: it tries every port that its leader may listen on at once, and the
// first that proves to be the leader wins. Whoever else listens there, silent or not, costs nothing but a
// line in the log. As the probe user.
//
//   look up ── for each address and port: connect ── hello (sealed ahead) ── welcome ── opening (clerk) ──→
//   proven
//                                           └────────── failed: again, after a pause ──────────┘
//
// Each connection gets a hello of its own: munge opens a credential once per host, and a port may belong to
// another job's leader.
#include <fmt/core.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "peers/address.h"
#include "peers/channel.h"
#include "peers/complaints.h"
#include "peers/connection.h"
#include "peers/peers.h"

namespace netcheck::peers {
namespace {

using system::Loop;

/// A SYN that is lost once is sent again after 1 s by Linux; a fresh attempt is quicker.
constexpr Ns kConnectPatience = std::chrono::milliseconds(400);
/// After this long without a welcome it is told, while the wait goes on.
constexpr Ns kSilence = std::chrono::seconds(1);
/// A leader of a thousand nodes welcomes them within a second; one that needs four has died.
constexpr Ns kWelcomePatience = std::chrono::seconds(4);
/// Between attempts at one port: the leader's prolog may be seconds late, and each refusal is one packet.
constexpr Ns kFirstPause = std::chrono::milliseconds(20);
constexpr Ns kLongestPause = std::chrono::milliseconds(200);
/// Between attempts to look up the leader, or to seal a hello, that failed.
constexpr Ns kClerkPause = std::chrono::milliseconds(300);
/// A refused connection is told from then on: before, the leader is just not there yet.
constexpr Ns kQuiet = std::chrono::milliseconds(500);
/// Addresses of one leader that are tried.
constexpr std::size_t kMaxLeaderAddresses = 4;
constexpr std::size_t kLeaderFrame = kMaxFrame + Channel::kOverhead + Channel::kHeader;

class Following final : public Peers {
 public:
  Following(Loop& loop, Clerk& clerk, Roster roster, std::string address, std::vector<std::uint16_t> ports,
            bool allow_loopback, Time deadline, Sink sink);
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;
  ~Following() override;

  void send(std::uint32_t node, const Bytes& message) override;
  [[nodiscard]] bool flushed() const override;

 private:
  enum class Stage : std::uint8_t { idle, connecting, wanting, waiting, opening };
  /// One address and port.
  struct Trial {
    Address address;
    std::string endpoint;
    Stage stage = Stage::idle;
    std::uint64_t attempt = 0;  // tells a late answer of the clerk from this attempt's
    system::Descriptor socket;  // while connecting
    std::unique_ptr<Connection> connection;
    Nonce nonce{};
    Loop::Timer timer = 0;
    Ns pause = kFirstPause;
  };
  struct Sealed {
    std::string token;
    Nonce nonce{};
  };

  void look_up();
  void found(const Result<std::vector<std::string>>& addresses);
  void begin(const std::vector<std::string>& addresses);
  void connect(std::size_t index);
  void connected(std::size_t index);
  void refused(std::size_t index);
  void rest(std::size_t index);
  void seal();
  void sealed(const Nonce& nonce, Result<std::string> token);
  void say_hello(std::size_t index);
  void still_silent(std::size_t index);
  void heard(std::size_t index, const Bytes& frame);
  void opened(std::size_t index, const Result<Opened>& result);
  void win(std::size_t index, const SessionKey& key);
  void fail_trial(std::size_t index, const std::string& why, bool tell_other = false);
  void from_leader(const Bytes& frame);
  void gone(const std::string& why);
  void give_up();
  void close(Trial& trial);
  void set_timer(std::size_t index, Ns after, void (Following::*then)(std::size_t));
  void tell(const std::string& from, const std::string& why);
  [[nodiscard]] std::weak_ptr<bool> alive() const { return alive_; }

  Loop& loop_;
  Clerk& clerk_;
  Roster roster_;
  std::string name_;  // the leader's, to look up
  std::vector<std::uint16_t> ports_;
  bool allow_loopback_;
  Sink sink_;
  Time start_ = system::now();
  std::vector<Trial> trials_;
  std::optional<Sealed> stock_;  // a hello that no port has seen
  bool sealing_ = false;
  std::unique_ptr<Connection> leader_;
  std::unique_ptr<Channel> channel_;
  bool over_ = false;  // proven, or the deadline came
  Complaints complaints_;
  Loop::Timer deadline_ = 0;
  Loop::Timer clerk_timer_ = 0;
  Loop::Timer seal_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

Following::Following(Loop& loop, Clerk& clerk, Roster roster, std::string address,
                     std::vector<std::uint16_t> ports, bool allow_loopback, Time deadline, Sink sink)
    : loop_(loop),
      clerk_(clerk),
      roster_(std::move(roster)),
      name_(std::move(address)),
      ports_(std::move(ports)),
      allow_loopback_(allow_loopback || roster_.nodes.size() < 2),
      sink_(std::move(sink)) {
  deadline_ = loop_.at(deadline, [this] { give_up(); });
  look_up();
  seal();  // ready by the time that somebody listens
}

Following::~Following() {
  alive_.reset();
  for (Trial& trial : trials_)
    close(trial);
  for (const Loop::Timer timer : {deadline_, clerk_timer_, seal_timer_})
    loop_.cancel(timer);
}

void Following::tell(const std::string& from, const std::string& why) {
  std::string line = printable(why, 2 * kMaxRefusal);
  if (complaints_.worth_telling(from, line)) sink_(Dropped{from, std::move(line)});
}

void Following::look_up() {
  clerk_.look_up(name_, [this, alive = alive()](const Result<std::vector<std::string>>& addresses) {
    if (!alive.expired() && !over_) found(addresses);
  });
}

void Following::found(const Result<std::vector<std::string>>& addresses) {
  if (addresses) return begin(*addresses);
  clerk_timer_ = loop_.at(system::now() + kClerkPause, [this] { look_up(); });
  tell(roster_.nodes[0], describe(addresses.error()));
}

void Following::begin(const std::vector<std::string>& addresses) {
  std::string refused;
  for (const std::string& number : addresses) {
    const auto plain = parse_address(number, 0);
    if (!plain || trials_.size() >= kMaxLeaderAddresses * ports_.size()) continue;
    if (!allow_loopback_ && stays_on_node(*plain)) {
      refused += (refused.empty() ? "" : ", ") + number;
      continue;
    }
    for (const std::uint16_t port : ports_) {
      Trial trial;
      trial.address = *parse_address(number, port);
      trial.endpoint = endpoint_text(number, port);
      trials_.push_back(std::move(trial));
    }
  }
  for (std::size_t i = 0; i < trials_.size(); ++i)
    connect(i);
  if (!refused.empty()) {
    tell(roster_.nodes[0],
         fmt::format("its name {} resolves to loopback ({}): give it an address that other nodes "
                     "reach, in DNS, /etc/hosts or the site's address template",
                     printable(name_), refused));
  }
  if (trials_.empty() && refused.empty()) tell(roster_.nodes[0], "its name has no usable address");
}

void Following::set_timer(std::size_t index, Ns after, void (Following::*then)(std::size_t)) {
  Trial& trial = trials_[index];
  loop_.cancel(trial.timer);
  trial.timer = loop_.at(system::now() + after, [this, index, then] { (this->*then)(index); });
}

void Following::close(Trial& trial) {
  loop_.cancel(trial.timer);
  if (trial.socket) loop_.forget(trial.socket.get());
  trial.socket.reset();
  trial.connection.reset();
  trial.stage = Stage::idle;
  ++trial.attempt;
}

void Following::fail_trial(std::size_t index, const std::string& why, bool tell_other) {
  Trial& trial = trials_[index];
  if (tell_other && trial.connection) {
    trial.connection->send(encode(Greeting{Greeting::Kind::refusal, roster_.self, why}));
  }
  close(trial);
  rest(index);
  tell(trial.endpoint, why);
}

/// Until the next attempt.
void Following::rest(std::size_t index) {
  Trial& trial = trials_[index];
  // A quarter of jitter: a thousand followers of one late leader need not knock in step.
  const Ns jitter(randombytes_uniform(static_cast<std::uint32_t>(trial.pause.count() / 4)));
  set_timer(index, trial.pause + jitter, &Following::connect);
  trial.pause = std::min(trial.pause * 3 / 2, kLongestPause);
}

void Following::connect(std::size_t index) {
  Trial& trial = trials_[index];
  auto connecting = start_connecting(trial.address);
  if (!connecting.socket) return fail_trial(index, "connect: " + connecting.error);
  trial.stage = Stage::connecting;
  trial.socket = std::move(connecting.socket);
  loop_.watch(trial.socket.get(), Loop::kWrite, [this, index](std::uint8_t) { connected(index); });
  loop_.cancel(trial.timer);
  trial.timer = loop_.at(system::now() + kConnectPatience, [this, index] {
    fail_trial(index, fmt::format("no answer to a connection within {}", format_duration(kConnectPatience)));
  });
}

void Following::connected(std::size_t index) {
  Trial& trial = trials_[index];
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(trial.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == ECONNREFUSED) return refused(index);
  if (error != 0) return fail_trial(index, std::strerror(error));
  loop_.forget(trial.socket.get());
  loop_.cancel(trial.timer);
  trial.connection = std::make_unique<Connection>(loop_, std::move(trial.socket), kMaxHello);
  trial.connection->listen([this, index](const Bytes& frame) { heard(index, frame); },
                           [this, index](const std::string& why) { fail_trial(index, why); });
  trial.stage = Stage::wanting;
  if (stock_) return say_hello(index);
  seal();
}

/// Nobody listens: usual on the ports that the leader did not take, and on all of them until its prolog
/// begins.
void Following::refused(std::size_t index) {
  Trial& trial = trials_[index];
  close(trial);
  rest(index);
  if (system::now() < start_ + kQuiet) return;
  tell(host_of(trial.address),
       fmt::format("nobody listens yet on some or all of ports {} to {}", ports_.front(), ports_.back()));
}

void Following::seal() {
  if (sealing_ || over_) return;
  sealing_ = true;
  const Nonce nonce = random_nonce();
  clerk_.seal(encode(make_hello(roster_, nonce)), [this, nonce, alive = alive()](Result<std::string> token) {
    if (!alive.expired() && !over_) sealed(nonce, std::move(token));
  });
}

void Following::sealed(const Nonce& nonce, Result<std::string> token) {
  if (!token) {
    const std::string why = describe(token.error());
    seal_timer_ = loop_.at(system::now() + kClerkPause, [this] {
      sealing_ = false;
      seal();
    });
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (trials_[i].stage == Stage::wanting) fail_trial(i, why, true);
    }
    return tell(roster_.nodes[roster_.self], why);
  }
  sealing_ = false;
  stock_ = Sealed{std::move(*token), nonce};
  for (std::size_t i = 0; i < trials_.size() && stock_; ++i) {
    if (trials_[i].stage == Stage::wanting) say_hello(i);
  }
}

void Following::say_hello(std::size_t index) {
  Trial& trial = trials_[index];
  trial.nonce = stock_->nonce;
  trial.stage = Stage::waiting;
  trial.connection->send(encode(Greeting{Greeting::Kind::hello, roster_.self, std::move(stock_->token)}));
  stock_.reset();
  set_timer(index, kSilence, &Following::still_silent);
  seal();  // for the next port that answers
}

void Following::still_silent(std::size_t index) {
  Trial& trial = trials_[index];
  trial.timer = loop_.at(system::now() + kWelcomePatience - kSilence, [this, index] {
    fail_trial(index, fmt::format("it accepted the connection and did not prove itself within {}",
                                  format_duration(kWelcomePatience)));
  });
  tell(trial.endpoint,
       fmt::format("it accepted the connection and has said nothing for {}", format_duration(kSilence)));
}

void Following::heard(std::size_t index, const Bytes& frame) {
  Trial& trial = trials_[index];
  if (trial.stage != Stage::waiting && trial.stage != Stage::wanting) {
    return fail_trial(index, "it spoke out of turn");
  }
  auto greeting = decode_greeting(frame);
  if (!greeting) return fail_trial(index, greeting.error().reason);
  if (greeting->kind == Greeting::Kind::refusal) return fail_trial(index, "it refuses: " + greeting->text);
  if (greeting->kind != Greeting::Kind::welcome || trial.stage != Stage::waiting) {
    return fail_trial(index, "it sent something else than a welcome");
  }
  trial.stage = Stage::opening;
  loop_.cancel(trial.timer);  // the clerk's patience holds now
  clerk_.open(std::move(greeting->text),
              [this, index, attempt = trial.attempt, alive = alive()](const Result<Opened>& result) {
                if (!alive.expired() && !over_ && trials_[index].attempt == attempt) opened(index, result);
              });
}

void Following::opened(std::size_t index, const Result<Opened>& result) {
  if (!result) return fail_trial(index, describe(result.error()), true);
  const auto welcome = believe_welcome(*result, ::geteuid(), roster_, trials_[index].nonce);
  if (!welcome) return fail_trial(index, describe(welcome.error()), true);
  win(index, welcome->key);
}

void Following::win(std::size_t index, const SessionKey& key) {
  over_ = true;
  leader_ = std::move(trials_[index].connection);
  for (Trial& trial : trials_)
    close(trial);
  for (const Loop::Timer timer : {deadline_, clerk_timer_, seal_timer_})
    loop_.cancel(timer);
  channel_ = std::make_unique<Channel>(key, Channel::End::follower);
  leader_->allow(kLeaderFrame);
  leader_->listen([this](const Bytes& frame) { from_leader(frame); },
                  [this](const std::string& why) { gone(why); });
  leader_->send(channel_->seal({}));  // empty: proves that we read the welcome
  sink_(Proven{0, local_address_of(leader_->fd())});
}

void Following::from_leader(const Bytes& frame) {
  if (!channel_) return;
  auto message = channel_->open(frame);
  if (!message) return gone("a forged or damaged frame");
  if (!message->empty()) sink_(Heard{0, std::move(*message)});
}

void Following::gone(const std::string& why) {
  if (!leader_) return;
  leader_.reset();
  channel_.reset();
  sink_(Gone{0, why});
}

void Following::give_up() {
  over_ = true;
  for (Trial& trial : trials_)
    close(trial);
  loop_.cancel(clerk_timer_);
  loop_.cancel(seal_timer_);
  const std::string where =
      ports_.empty() ? "" : fmt::format(" on ports {} to {}", ports_.front(), ports_.back());
  tell(roster_.nodes[0], fmt::format("no leader proved itself at {}{} in time", printable(name_), where));
}

void Following::send(std::uint32_t node, const Bytes& message) {
  if (node != 0 || !leader_) return;
  if (message.size() > kMaxFrame) {
    loop_.post([this, size = message.size(), alive = alive()] {
      if (!alive.expired()) gone(fmt::format("a message of {} bytes is too large to send", size));
    });
    return;
  }
  leader_->send(channel_->seal(message));
}

bool Following::flushed() const {
  return !leader_ || leader_->queued() == 0;
}

}  // namespace

std::unique_ptr<Peers> follow(Loop& loop, Clerk& clerk, Roster roster, std::string address,
                              std::vector<std::uint16_t> ports, bool allow_loopback, Time deadline,
                              Sink sink) {
  if (sodium_init() < 0) return nullptr;
  return std::make_unique<Following>(loop, clerk, std::move(roster), std::move(address), std::move(ports),
                                     allow_loopback, deadline, std::move(sink));
}

}  // namespace netcheck::peers
