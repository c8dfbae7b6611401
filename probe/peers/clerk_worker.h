// The clerk's child: reads one request, does what blocks, writes one answer, until its socket closes. Forked
// by clerk.cpp without exec, as the probe user; holds no descriptor but its socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "peers/credential.h"

namespace netcheck::peers {

using MakeCredential = std::function<Result<std::unique_ptr<Credential>>()>;

struct ClerkRequest {
  enum class Kind : std::uint8_t { look_up = 1, seal = 2, open = 3 };
  Kind kind = Kind::look_up;
  Bytes body;  ///< the name, the payload, the token
};

struct ClerkAnswer {
  std::vector<std::string> addresses;  ///< of look_up
  Bytes body;                          ///< of seal: the token; of open: the payload
  uid_t uid = 0;                       ///< of open
};

/// Longest request or answer: a hello's frame and what surrounds it, several times over.
inline constexpr std::size_t kMaxClerkFrame = 256u << 10;

[[nodiscard]] Bytes encode(const ClerkRequest& request);
[[nodiscard]] Result<ClerkRequest> decode_request(const Bytes& frame);
[[nodiscard]] Bytes encode(const Result<ClerkAnswer>& answer);
/// What the child said: an answer, or the Error that it met.
[[nodiscard]] Result<ClerkAnswer> decode_answer(const Bytes& frame);

/// In the child: closes everything but `socket`, dies with `parent`, serves, exits. Never returns.
[[noreturn]] void serve_clerk(int socket, pid_t parent, const MakeCredential& make_credential) noexcept;

}  // namespace netcheck::peers
