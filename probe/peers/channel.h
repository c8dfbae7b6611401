// The encrypted channel after the handshake: libsodium's secretstream (XChaCha20-Poly1305), one stream each
// way, keys derived from the session key. Authentic, in order, nothing left out: a frame that was changed,
// repeated, dropped or moved does not open. No I/O. Used by lead.cpp and follow.cpp, as the probe user.
#pragma once

#include <sodium.h>

#include <optional>

#include "contract/units.h"
#include "peers/handshake.h"

namespace netcheck::peers {

class Channel {
 public:
  enum class End : std::uint8_t { leader, follower };

  Channel(const SessionKey& key, End end);
  Channel(Channel&&) = default;
  Channel& operator=(Channel&&) = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// The next frame to send. The first one carries the stream's header in front.
  [[nodiscard]] Bytes seal(const Bytes& message);
  /// The next frame that came in. nullopt: forged or damaged; the channel is of no use from then on.
  [[nodiscard]] std::optional<Bytes> open(const Bytes& frame);

  /// What seal adds to a message: the tag byte and MAC, and once the header.
  static constexpr std::size_t kOverhead = crypto_secretstream_xchacha20poly1305_ABYTES;
  static constexpr std::size_t kHeader = crypto_secretstream_xchacha20poly1305_HEADERBYTES;

 private:
  crypto_secretstream_xchacha20poly1305_state sending_{};
  crypto_secretstream_xchacha20poly1305_state receiving_{};
  std::array<unsigned char, kHeader> header_{};
  std::array<unsigned char, crypto_secretstream_xchacha20poly1305_KEYBYTES> receive_key_{};
  bool header_sent_ = false;
  bool header_seen_ = false;
  bool broken_ = false;
};

}  // namespace netcheck::peers
