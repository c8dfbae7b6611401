// Credentials by munge. Blocks (munged may be stopped): runs in the clerk. As the probe user, whose effective
// uid is the only one that can open what it seals.
#include <fmt/core.h>
#include <munge.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "peers/credential.h"
#include "system/descriptor.h"

namespace netcheck::peers {
namespace {

/// A check lasts seconds; a minute forgives clocks that differ a little and starves a hoarder of credentials.
constexpr int kLifeSeconds = 60;
/// Where Debian's and the upstream libmunge look unless told otherwise (0.5.15).
constexpr const char* kDefaultSocket = "/run/munge/munge.socket.2";

struct Context {
  munge_ctx_t handle = ::munge_ctx_create();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (handle != nullptr) ::munge_ctx_destroy(handle);
  }
};

std::string clocks(munge_ctx_t context) {
  std::time_t sealed = 0, opened = 0;
  if (::munge_ctx_get(context, MUNGE_OPT_ENCODE_TIME, &sealed) != EMUNGE_SUCCESS ||
      ::munge_ctx_get(context, MUNGE_OPT_DECODE_TIME, &opened) != EMUNGE_SUCCESS) {
    return {};
  }
  const auto age = static_cast<long>(opened - sealed);
  return age >= 0 ? fmt::format("it was sealed {} s before this node's time", age)
                  : fmt::format("it was sealed {} s after this node's time", -age);
}

/// munge's code in words that name the cause and the cure. `attempted`: "open" or "seal".
Error explain(munge_err_t code, munge_ctx_t context, const std::string& attempted,
              const std::string& socket) {
  const Error base{attempted, "a munge credential", {}, {}};
  const auto with = [&base](std::string reason, std::string remedy) {
    Error error = base;
    error.reason = std::move(reason);
    error.remedy = std::move(remedy);
    return error;
  };
  switch (code) {
    case EMUNGE_CRED_EXPIRED:
      return with(fmt::format("the nodes' clocks differ, or it is older than its life of {} s: {}",
                              kLifeSeconds, clocks(context)),
                  "compare the two nodes' clocks (NTP)");
    case EMUNGE_CRED_REWOUND:
      return with("the nodes' clocks differ: " + clocks(context), "compare the two nodes' clocks (NTP)");
    case EMUNGE_CRED_REPLAYED:
      return with("it has been opened before: somebody sent a copy", "");
    case EMUNGE_CRED_UNAUTHORIZED:
      return with(fmt::format("it is sealed for another account than this one (uid {})", ::geteuid()),
                  "the probe's account needs the same uid on every node");
    case EMUNGE_CRED_INVALID:
    case EMUNGE_BAD_CRED:
    case EMUNGE_BAD_VERSION:
    case EMUNGE_BAD_CIPHER:
    case EMUNGE_BAD_MAC:
    case EMUNGE_BAD_ZIP:
    case EMUNGE_BAD_REALM:
      return with(fmt::format("the two nodes have different munge keys, or it is forged ({})",
                              printable(::munge_strerror(code))),
                  "compare /etc/munge/munge.key on both nodes");
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT: {
      const char* detail = context != nullptr ? ::munge_ctx_strerror(context) : nullptr;
      return with(fmt::format("munged does not answer on this node at {}: {}", socket,
                              printable(detail != nullptr ? detail : ::munge_strerror(code))),
                  "start munged on this node");
    }
    default: {
      const char* detail = context != nullptr ? ::munge_ctx_strerror(context) : nullptr;
      return with(printable(detail != nullptr ? detail : ::munge_strerror(code)), "");
    }
  }
}

class Munge final : public Credential {
 public:
  explicit Munge(std::string socket)
      : given_(!socket.empty()), socket_(given_ ? std::move(socket) : kDefaultSocket) {}

  Result<std::string> seal(const Bytes& payload) override {
    if (auto there = reach(); !there) return tl::unexpected(there.error());
    const Context context;
    if (auto ready = prepare(context.handle, "seal"); !ready) return tl::unexpected(ready.error());
    if (::munge_ctx_set(context.handle, MUNGE_OPT_TTL, kLifeSeconds) != EMUNGE_SUCCESS ||
        ::munge_ctx_set(context.handle, MUNGE_OPT_UID_RESTRICTION, ::geteuid()) != EMUNGE_SUCCESS) {
      return tl::unexpected(explain(EMUNGE_SNAFU, context.handle, "seal", socket_));
    }
    char* token = nullptr;
    const munge_err_t code =
        ::munge_encode(&token, context.handle, payload.data(), static_cast<int>(payload.size()));
    const std::unique_ptr<char, decltype(&std::free)> owner(token, &std::free);
    if (code != EMUNGE_SUCCESS) return failed(explain(code, context.handle, "seal", socket_));
    return std::string(token);
  }

  Result<Opened> open(const std::string& token) override {
    if (auto there = reach(); !there) return tl::unexpected(there.error());
    const Context context;
    if (auto ready = prepare(context.handle, "open"); !ready) return tl::unexpected(ready.error());
    void* payload = nullptr;
    int size = 0;
    Opened opened;
    gid_t gid = 0;
    const munge_err_t code =
        ::munge_decode(token.c_str(), context.handle, &payload, &size, &opened.uid, &gid);
    // Allocated for some failures too (expired, replayed): a payload that nobody vouches for is not looked
    // at.
    const std::unique_ptr<void, decltype(&std::free)> owner(payload, &std::free);
    if (code == EMUNGE_SUCCESS && size > 0) {
      const auto* first = static_cast<const std::byte*>(payload);
      opened.payload.assign(first, first + size);
    }
    if (payload != nullptr && size > 0) sodium_memzero(payload, static_cast<std::size_t>(size));
    if (code != EMUNGE_SUCCESS) return failed(explain(code, context.handle, "open", socket_));
    return opened;
  }

 private:
  [[nodiscard]] Result<void> prepare(munge_ctx_t context, const std::string& attempted) const {
    if (context == nullptr) return tl::unexpected(explain(EMUNGE_NO_MEMORY, nullptr, attempted, socket_));
    if (!given_) return {};
    const munge_err_t code = ::munge_ctx_set(context, MUNGE_OPT_SOCKET, socket_.c_str());
    if (code != EMUNGE_SUCCESS) return tl::unexpected(explain(code, context, attempted, socket_));
    return {};
  }

  /// Is anybody there? Asked first, and again after a failure: on a socket that a dead munged left behind,
  /// libmunge tries ten times over 2.25 s (measured, 0.5.15), longer than a rendezvous can wait for the
  /// words. Asked with a datagram socket, which a living stream listener refuses by its type (EPROTOTYPE)
  /// without hearing of it: a connection that says nothing would be a line in munged's log.
  [[nodiscard]] Result<void> reach() {
    if (reached_) return {};
    const auto absent = [this](const char* why) {
      return fail("reach", "munged", fmt::format("it is not running on this node ({}: {})", socket_, why),
                  "start munged on this node");
    };
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_.size() >= sizeof address.sun_path) return absent("the path is too long for a socket");
    std::memcpy(address.sun_path, socket_.c_str(), socket_.size());
    const system::Descriptor asking(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!asking) return absent(std::strerror(errno));
    const auto* raw = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(asking.get(), raw, sizeof address) != 0 && errno != EPROTOTYPE) {
      return absent(std::strerror(errno));
    }
    reached_ = true;
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> failed(Error error) {
    reached_ = false;
    return tl::unexpected(std::move(error));
  }

  bool given_;
  std::string socket_;
  bool reached_ = false;
};

}  // namespace

std::unique_ptr<Credential> munge_credential(const std::string& socket) {
  return std::make_unique<Munge>(socket);
}

}  // namespace netcheck::peers
