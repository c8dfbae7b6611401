// Frames over TCP. See connection.h.
#include "peers/connection.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "peers/peers.h"

namespace netcheck::peers {
namespace {

constexpr std::size_t kPrefix = 4;  // bytes of the length
constexpr std::size_t kReadAtOnce = std::size_t{64}
                                    << 10U;  // per turn of the loop: fair to a thousand others
/// A peer that lets four of the largest frames pile up does not read.
constexpr std::size_t kMaxQueued = 4 * kMaxFrame;
/// Bytes thrown away at the end, so that closing does not answer them with a reset that would overtake our
/// own last frame. More than any peer sends unasked.
constexpr std::size_t kDrain = std::size_t{256} << 10U;

Bytes with_prefix(const Bytes& frame) {
  Bytes out(kPrefix + frame.size());
  for (std::size_t i = 0; i < kPrefix; ++i) {
    out[i] = static_cast<std::byte>((frame.size() >> (8 * i)) & 0xffU);
  }
  std::copy(frame.begin(), frame.end(), out.begin() + kPrefix);
  return out;
}

}  // namespace

struct Connection::State : std::enable_shared_from_this<Connection::State> {
  system::Loop* loop = nullptr;
  system::Descriptor socket;
  std::size_t max_frame = 0;
  OnFrame on_frame;
  OnClose on_close;
  Bytes incoming;
  std::deque<Bytes> outgoing;
  std::size_t written = 0;  // of outgoing.front()
  std::size_t queued = 0;
  bool open = true;
  bool closing = false;  // its owner will be told, from the loop

  void watch();
  void readable();
  void deliver();
  void write();
  void close(const std::string& why);
  void close_soon(std::string why);
  void read_rest(const std::string& why);
  void shut();
};

void Connection::State::watch() {
  if (!open) return;
  std::uint8_t interest = system::Loop::kRead;
  if (!outgoing.empty()) interest |= system::Loop::kWrite;
  loop->watch(socket.get(), interest, [self = shared_from_this()](std::uint8_t ready) {
    if (self->open && (ready & system::Loop::kWrite) != 0 && !self->outgoing.empty()) {
      self->write();
      if (self->outgoing.empty()) self->watch();
    }
    if (self->open && (ready & system::Loop::kRead) != 0) self->readable();
  });
}

void Connection::State::readable() {
  std::array<std::byte, kReadAtOnce> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t got = ::recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got == 0) {
    close(incoming.empty() ? "it closed the connection" : "it closed the connection within a frame");
    return;
  }
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) close(std::strerror(errno));
    return;
  }
  incoming.insert(incoming.end(), chunk.begin(), chunk.begin() + got);
  deliver();
}

void Connection::State::deliver() {
  std::size_t begin = 0;
  while (open && incoming.size() - begin >= kPrefix) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kPrefix; ++i) {
      length |= std::to_integer<std::size_t>(incoming[begin + i]) << (8 * i);
    }
    if (length > max_frame) {
      close(fmt::format("it announced a frame of {} bytes, at most {} are allowed", length, max_frame));
      return;
    }
    if (incoming.size() - begin - kPrefix < length) break;
    const auto first = incoming.begin() + static_cast<std::ptrdiff_t>(begin + kPrefix);
    Bytes frame(first, first + static_cast<std::ptrdiff_t>(length));
    begin += kPrefix + length;
    const auto call = on_frame;  // a copy: the callback may set another
    if (call) call(std::move(frame));
  }
  if (open) incoming.erase(incoming.begin(), incoming.begin() + static_cast<std::ptrdiff_t>(begin));
}

void Connection::State::write() {
  while (!outgoing.empty()) {
    const Bytes& front = outgoing.front();
    const ssize_t put =
        ::send(socket.get(), front.data() + written, front.size() - written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) {
      if (errno != EAGAIN && errno != EINTR) close_soon(std::strerror(errno));
      return;
    }
    written += static_cast<std::size_t>(put);
    queued -= static_cast<std::size_t>(put);
    if (written < front.size()) return;
    outgoing.pop_front();
    written = 0;
  }
}

void Connection::State::shut() {
  if (!open) return;
  open = false;
  loop->forget(socket.get());
  ::shutdown(socket.get(), SHUT_WR);
  std::array<std::byte, kReadAtOnce> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): thrown away
  for (std::size_t drained = 0; drained < kDrain;) {
    const ssize_t got = ::recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    drained += static_cast<std::size_t>(got);
  }
  socket.reset();
}

void Connection::State::close(const std::string& why) {
  if (!open) return;
  const auto self = shared_from_this();  // on_close may destroy the owner
  const auto call = std::exchange(on_close, nullptr);
  on_frame = nullptr;
  shut();
  if (call) call(why);
}

void Connection::State::close_soon(std::string why) {
  if (std::exchange(closing, true)) return;
  outgoing.clear();
  queued = 0;
  loop->post([self = shared_from_this(), why = std::move(why)] { self->read_rest(why); });
}

/// Writing failed, but what the other side said before it went (a verdict, say) still counts.
void Connection::State::read_rest(const std::string& why) {
  for (std::size_t had = incoming.size() + 1; open && incoming.size() != had;) {
    had = incoming.size();
    readable();
  }
  close(why);
}

Connection::Connection(system::Loop& loop, system::Descriptor socket, std::size_t max_frame)
    : state_(std::make_shared<State>()) {
  state_->loop = &loop;
  state_->socket = std::move(socket);
  state_->max_frame = max_frame;
  state_->watch();
}

Connection::~Connection() {
  if (!state_) return;
  state_->on_frame = nullptr;
  state_->on_close = nullptr;
  state_->shut();
}

Connection& Connection::operator=(Connection&& other) noexcept {
  if (this != &other) {
    const Connection old(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

void Connection::listen(OnFrame on_frame, OnClose on_close) {
  state_->on_frame = std::move(on_frame);
  state_->on_close = std::move(on_close);
}

void Connection::allow(std::size_t max_frame) {
  state_->max_frame = max_frame;
}

void Connection::send(const Bytes& frame) {
  if (!state_->open || state_->closing) return;
  if (state_->queued + frame.size() > kMaxQueued) {
    state_->close_soon("it does not read what it is sent");
    return;
  }
  const bool idle = state_->outgoing.empty();
  state_->outgoing.push_back(with_prefix(frame));
  state_->queued += state_->outgoing.back().size();
  if (!idle) return;
  state_->write();
  if (!state_->outgoing.empty()) state_->watch();
}

std::size_t Connection::queued() const {
  return state_->queued;
}

int Connection::fd() const {
  return state_->socket.get();
}

}  // namespace netcheck::peers
