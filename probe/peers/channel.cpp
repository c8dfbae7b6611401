// Secretstream both ways. See channel.h.
#include "peers/channel.h"

#include <algorithm>
#include <array>

namespace netcheck::peers {
namespace {

// Contexts and numbers of crypto_kdf: one subkey per direction, so that a frame cannot be thrown back.
constexpr const char* kContext = "netcheck";  // crypto_kdf_CONTEXTBYTES = 8
constexpr std::uint64_t kLeaderToFollower = 1;
constexpr std::uint64_t kFollowerToLeader = 2;

using StreamKey = std::array<unsigned char, crypto_secretstream_xchacha20poly1305_KEYBYTES>;

void derive(StreamKey& key, const SessionKey& session, std::uint64_t direction) {
  static_assert(sizeof session.bytes == crypto_kdf_KEYBYTES);
  crypto_kdf_derive_from_key(key.data(), key.size(), direction, kContext,
                             reinterpret_cast<const unsigned char*>(session.bytes.data()));
}

const unsigned char* raw(const Bytes& bytes, std::size_t offset = 0) {
  return reinterpret_cast<const unsigned char*>(bytes.data()) + offset;
}

}  // namespace

Channel::Channel(const SessionKey& key, End end) {
  const bool leads = end == End::leader;
  StreamKey send_key{};
  derive(send_key, key, leads ? kLeaderToFollower : kFollowerToLeader);
  derive(receive_key_, key, leads ? kFollowerToLeader : kLeaderToFollower);
  crypto_secretstream_xchacha20poly1305_init_push(&sending_, header_.data(), send_key.data());
  sodium_memzero(send_key.data(), send_key.size());
}

Channel::~Channel() {
  sodium_memzero(&sending_, sizeof sending_);
  sodium_memzero(&receiving_, sizeof receiving_);
  sodium_memzero(receive_key_.data(), receive_key_.size());
}

Bytes Channel::seal(const Bytes& message) {
  const std::size_t ahead = header_sent_ ? 0 : kHeader;
  Bytes frame(ahead + message.size() + kOverhead);
  if (!header_sent_) {
    std::transform(header_.begin(), header_.end(), frame.begin(),
                   [](unsigned char c) { return std::byte{c}; });
    header_sent_ = true;
  }
  crypto_secretstream_xchacha20poly1305_push(
      &sending_, reinterpret_cast<unsigned char*>(frame.data()) + ahead, nullptr, raw(message),
      message.size(), nullptr, 0, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
  return frame;
}

std::optional<Bytes> Channel::open(const Bytes& frame) {
  if (broken_) return std::nullopt;
  broken_ = true;  // until this frame has opened
  const std::size_t ahead = header_seen_ ? 0 : kHeader;
  if (frame.size() < ahead + kOverhead) return std::nullopt;
  if (!header_seen_) {
    if (crypto_secretstream_xchacha20poly1305_init_pull(&receiving_, raw(frame), receive_key_.data()) != 0) {
      return std::nullopt;
    }
    header_seen_ = true;
  }
  Bytes message(frame.size() - ahead - kOverhead);
  unsigned char tag = 0;
  if (crypto_secretstream_xchacha20poly1305_pull(
          &receiving_, reinterpret_cast<unsigned char*>(message.data()), nullptr, &tag, raw(frame, ahead),
          frame.size() - ahead, nullptr, 0) != 0) {
    return std::nullopt;
  }
  broken_ = false;
  return message;
}

}  // namespace netcheck::peers
