#include "system/frames.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>

namespace netcheck::system {

namespace {

constexpr std::size_t kPrefix = 4;                           // bytes of the length
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10U;  // the default socket buffer holds three of these
constexpr std::size_t kQueuedFrames = 4;                     // frames of the largest size that may wait

Bytes with_prefix(const Bytes& frame) {
  Bytes out(kPrefix + frame.size());
  for (std::size_t i = 0; i < kPrefix; ++i)
    out[i] = static_cast<std::byte>(frame.size() >> (8 * i) & 0xffU);
  std::copy(frame.begin(), frame.end(), out.begin() + kPrefix);
  return out;
}

std::size_t prefix_of(const Bytes& buffer) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kPrefix; ++i)
    length |= std::to_integer<std::size_t>(buffer[i]) << (8 * i);
  return length;
}

}  // namespace

struct FrameSocket::State : std::enable_shared_from_this<FrameSocket::State> {
  Loop* loop = nullptr;
  Descriptor socket;
  std::size_t max_frame = 0;
  OnFrame on_frame;
  OnClose on_close;
  Bytes incoming;
  std::deque<Bytes> outgoing;
  std::size_t written = 0;  // of outgoing.front()
  std::size_t queued = 0;
  bool open = true;

  void watch();
  void readable();
  void deliver();
  void writable();
  void close(const std::string& why);
  void shut();
};

void FrameSocket::State::watch() {
  if (!open) return;
  const std::uint8_t interest = outgoing.empty() ? static_cast<std::uint8_t>(Loop::kRead)
                                                 : static_cast<std::uint8_t>(Loop::kRead | Loop::kWrite);
  loop->watch(socket.get(), interest, [self = shared_from_this()](std::uint8_t ready) {
    if ((ready & Loop::kWrite) != 0) self->writable();
    if (self->open && (ready & Loop::kRead) != 0) self->readable();
  });
}

void FrameSocket::State::readable() {
  std::array<std::byte, kReadAtOnce> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by recv
  const ssize_t got = ::recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got == 0) return close(incoming.empty() ? "" : "ended in the middle of a frame");
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) close(std::strerror(errno));
    return;
  }
  incoming.insert(incoming.end(), chunk.begin(), chunk.begin() + got);
  deliver();
}

void FrameSocket::State::deliver() {
  std::size_t begin = 0;
  while (open && incoming.size() - begin >= kPrefix) {
    const Bytes prefix(incoming.begin() + static_cast<std::ptrdiff_t>(begin),
                       incoming.begin() + static_cast<std::ptrdiff_t>(begin + kPrefix));
    const std::size_t length = prefix_of(prefix);
    if (length > max_frame) return close("a frame of " + std::to_string(length) + " bytes is too large");
    if (incoming.size() - begin - kPrefix < length) break;
    const auto first = incoming.begin() + static_cast<std::ptrdiff_t>(begin + kPrefix);
    Bytes frame(first, first + static_cast<std::ptrdiff_t>(length));
    begin += kPrefix + length;
    on_frame(std::move(frame));
  }
  incoming.erase(incoming.begin(), incoming.begin() + static_cast<std::ptrdiff_t>(begin));
}

void FrameSocket::State::writable() {
  while (!outgoing.empty()) {
    const Bytes& front = outgoing.front();
    const ssize_t put =
        ::send(socket.get(), front.data() + written, front.size() - written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EAGAIN || errno == EINTR) break;
      return close(std::strerror(errno));
    }
    written += static_cast<std::size_t>(put);
    queued -= static_cast<std::size_t>(put);
    if (written < front.size()) break;
    outgoing.pop_front();
    written = 0;
  }
  watch();
}

void FrameSocket::State::shut() {
  if (!open) return;
  open = false;
  loop->forget(socket.get());
  socket.reset();
}

void FrameSocket::State::close(const std::string& why) {
  if (!open) return;
  const auto self = shared_from_this();  // on_close may destroy the owner
  shut();
  if (on_close) on_close(why);
}

FrameSocket::FrameSocket(Loop& loop, Descriptor socket, std::size_t max_frame, OnFrame on_frame,
                         OnClose on_close)
    : state_(std::make_shared<State>()) {
  state_->loop = &loop;
  state_->socket = std::move(socket);
  state_->max_frame = max_frame;
  state_->on_frame = std::move(on_frame);
  state_->on_close = std::move(on_close);
  state_->watch();
}

FrameSocket::~FrameSocket() {
  state_->on_close = nullptr;
  state_->shut();
}

void FrameSocket::send(const Bytes& frame) {
  if (!state_->open) return;
  const bool too_much =
      frame.size() > state_->max_frame || state_->queued + frame.size() > kQueuedFrames * state_->max_frame;
  if (too_much) {
    // Posted: the sender may be in the middle of something.
    state_->loop->post([state = state_] { state->close("the other side does not read"); });
    return;
  }
  state_->outgoing.push_back(with_prefix(frame));
  state_->queued += state_->outgoing.back().size();
  if (state_->outgoing.size() == 1) state_->watch();
}

std::size_t FrameSocket::queued() const {
  return state_->queued;
}

Result<std::pair<Descriptor, Descriptor>> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return fail("open", "a socket pair", std::strerror(errno));
  return std::make_pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

}  // namespace netcheck::system
