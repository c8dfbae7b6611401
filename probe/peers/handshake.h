// What leader and follower say before the encrypted channel stands: plain greetings around sealed hellos and
// welcomes, and the checks that bind them to one run, one sender and one receiver. Pure: bytes in, bytes out.
// Used by lead.cpp and follow.cpp, as the probe user.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "contract/error.h"
#include "contract/job.h"
#include "contract/units.h"
#include "peers/credential.h"

namespace netcheck::peers {

/// 128 bits: two handshakes never meet by chance.
using Nonce = std::array<std::byte, 16>;

/// The secret that a welcome carries; wiped when it goes. 32 bytes: crypto_kdf_KEYBYTES.
class SessionKey {
 public:
  SessionKey() = default;
  SessionKey(const SessionKey&) = default;
  SessionKey& operator=(const SessionKey&) = default;
  ~SessionKey();
  std::array<std::byte, 32> bytes{};
};

[[nodiscard]] Nonce random_nonce();
[[nodiscard]] SessionKey random_session_key();

/// Inside the follower's credential.
struct Hello {
  JobRun run;
  std::uint32_t sender = 0, receiver = 0;  ///< indexes in NodeList order
  std::string sender_name, receiver_name;
  Nonce nonce{};
};

/// Inside the leader's credential.
struct Welcome {
  JobRun run;
  std::uint32_t sender = 0, receiver = 0;
  std::string sender_name, receiver_name;
  Nonce hello_nonce{};  ///< the hello's: this welcome answers that one and no other
  Nonce nonce{};
  SessionKey key;
};

/// The hello of `roster.self` to the leader.
[[nodiscard]] Hello make_hello(const Roster& roster, const Nonce& nonce);
/// The leader's answer to a hello that check_hello has accepted.
[[nodiscard]] Welcome make_welcome(const Roster& roster, const Hello& hello, const Nonce& nonce,
                                   const SessionKey& key);

[[nodiscard]] Bytes encode(const Hello& hello);
[[nodiscard]] Bytes encode(const Welcome& welcome);
[[nodiscard]] Result<Hello> decode_hello(const Bytes& payload);
[[nodiscard]] Result<Welcome> decode_welcome(const Bytes& payload);

/// On the leader: is it for this run, from a node of this job, to us? The reason names what does not fit.
[[nodiscard]] Result<void> check(const Hello& hello, const Roster& roster);
/// On a follower: the same for a welcome, which must answer `nonce`.
[[nodiscard]] Result<void> check(const Welcome& welcome, const Roster& roster, const Nonce& nonce);

/// A credential that has opened, all the way to something that may be believed: sealed by the account `own`,
/// well-formed, and passing check().
[[nodiscard]] Result<Hello> believe_hello(const Opened& opened, uid_t own, const Roster& roster);
[[nodiscard]] Result<Welcome> believe_welcome(const Opened& opened, uid_t own, const Roster& roster,
                                              const Nonce& nonce);

/// The one plain frame each way around a credential. Nothing in it is believed: `claim` and `text` are for
/// the log, `token` proves itself.
struct Greeting {
  enum class Kind : std::uint8_t { hello = 1, welcome = 2, refusal = 3 };
  Kind kind = Kind::hello;
  std::uint32_t claim = 0;  ///< the index that the sender says is its own
  std::string text;         ///< hello, welcome: the credential's token; refusal: why, for the other's log
};
[[nodiscard]] Bytes encode(const Greeting& greeting);
/// Error: not a greeting of this version.
[[nodiscard]] Result<Greeting> decode_greeting(const Bytes& frame);

/// Longest reason in a refusal; longer ones are cut.
inline constexpr std::size_t kMaxRefusal = 400;

}  // namespace netcheck::peers
