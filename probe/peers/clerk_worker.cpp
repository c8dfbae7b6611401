// What blocks, done where it can be killed. See clerk_worker.h.
#include "peers/clerk_worker.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "contract/wire.h"
#include "system/process.h"

namespace netcheck::peers {
namespace {

constexpr std::size_t kMaxAddresses = 16;  // of one name; a node has a handful
constexpr std::size_t kMaxErrorText = 1024;

Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

std::string text_of(const Bytes& bytes) {
  std::string text(bytes.size(), '\0');
  std::transform(bytes.begin(), bytes.end(), text.begin(), [](std::byte b) { return static_cast<char>(b); });
  return text;
}

std::optional<std::string> number_of(const addrinfo& entry) {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(entry.ai_addr, entry.ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) !=
      0) {
    return std::nullopt;
  }
  return std::string(host.data());
}

Result<ClerkAnswer> look_up(const std::string& name) {
  addrinfo hints{};  // no AI_ADDRCONFIG: it hides addresses where only some interfaces are up yet
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (rc != 0) {
    return fail("look up", printable(name), rc == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(rc),
                "it needs an address in /etc/hosts, DNS or the site's map");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  ClerkAnswer answer;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != family || answer.addresses.size() == kMaxAddresses) continue;
      const auto number = number_of(*entry);
      if (number && std::ranges::find(answer.addresses, *number) == answer.addresses.end()) {
        answer.addresses.push_back(*number);
      }
    }
  }
  if (answer.addresses.empty()) return fail("look up", printable(name), "it has no IPv4 or IPv6 address");
  return answer;
}

Result<ClerkAnswer> serve(const ClerkRequest& request, Result<std::unique_ptr<Credential>>& credential) {
  if (request.kind == ClerkRequest::Kind::look_up) return look_up(text_of(request.body));
  if (!credential) return tl::unexpected(credential.error());
  ClerkAnswer answer;
  if (request.kind == ClerkRequest::Kind::seal) {
    auto token = (*credential)->seal(request.body);
    if (!token) return tl::unexpected(token.error());
    answer.body = bytes_of(*token);
    return answer;
  }
  auto opened = (*credential)->open(text_of(request.body));
  if (!opened) return tl::unexpected(opened.error());
  answer.body = std::move(opened->payload);
  answer.uid = opened->uid;
  return answer;
}

/// All of `size` bytes, or false at the end of the socket.
bool read_all(int socket, std::byte* into, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, into, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int socket, const Bytes& bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t put = ::send(socket, bytes.data() + written, bytes.size() - written, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    written += static_cast<std::size_t>(put);
  }
  return true;
}

/// The framing of system/FrameSocket, whose other end the parent holds.
std::optional<Bytes> read_frame_of(int socket) {
  std::array<std::byte, 4> prefix{};
  if (!read_all(socket, prefix.data(), prefix.size())) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    length |= std::to_integer<std::size_t>(prefix.at(i)) << (8 * i);
  }
  if (length > kMaxClerkFrame) return std::nullopt;
  Bytes frame(length);
  if (!read_all(socket, frame.data(), length)) return std::nullopt;
  return frame;
}

bool write_frame(int socket, const Bytes& frame) {
  Bytes out(4);
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = static_cast<std::byte>((frame.size() >> (8 * i)) & 0xffU);
  }
  out.insert(out.end(), frame.begin(), frame.end());
  return write_all(socket, out);
}

/// Only `socket`, as 3; 0, 1, 2 are /dev/null; signals as in a fresh program.
bool make_lonely(int socket, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return false;  // it died before the line above
  system::become_undumpable();
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);  // fails for SIGKILL, SIGSTOP and libc's own: as it should
  }
  ::signal(SIGPIPE, SIG_IGN);  // libmunge writes to sockets that may close
  sigset_t nothing;
  ::sigemptyset(&nothing);
  ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
  // Away from 0 … 3 first: in a prolog any of them may be what the socket is.
  const int kept = ::fcntl(socket, F_DUPFD_CLOEXEC, 10);
  const int empty = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (kept < 0 || empty < 0) return false;
  for (int fd = 0; fd < 3; ++fd) {
    if (empty != fd && ::dup2(empty, fd) < 0) return false;
  }
  if (::dup3(kept, 3, O_CLOEXEC) < 0 || ::close_range(4, ~0U, 0) != 0) return false;
  const int flags = ::fcntl(3, F_GETFL);
  return flags >= 0 && ::fcntl(3, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

}  // namespace

Bytes encode(const ClerkRequest& request) {
  Bytes frame{static_cast<std::byte>(request.kind)};
  frame.insert(frame.end(), request.body.begin(), request.body.end());
  return frame;
}

Result<ClerkRequest> decode_request(const Bytes& frame) {
  if (frame.empty()) return fail("read", "a request to the clerk", "it is empty");
  const auto kind = std::to_integer<std::uint8_t>(frame.front());
  if (kind < 1 || kind > 3) return fail("read", "a request to the clerk", "it is of no known kind");
  return ClerkRequest{static_cast<ClerkRequest::Kind>(kind), Bytes(frame.begin() + 1, frame.end())};
}

Bytes encode(const Result<ClerkAnswer>& answer) {
  if (answer) {
    return to_cbor(Json{{"ok", true},
                        {"addresses", answer->addresses},
                        {"body", bytes_to_json(answer->body)},
                        {"uid", answer->uid}});
  }
  const Error& error = answer.error();
  return to_cbor(Json{{"ok", false},
                      {"attempted", printable(error.attempted, kMaxErrorText)},
                      {"subject", printable(error.subject, kMaxErrorText)},
                      {"reason", printable(error.reason, kMaxErrorText)},
                      {"remedy", printable(error.remedy, kMaxErrorText)}});
}

Result<ClerkAnswer> decode_answer(const Bytes& frame) {
  auto read = read_frame(frame, "the clerk", [](const Json& value) -> Result<ClerkAnswer> {
    const Fields fields(value, "answer");
    if (!fields.flag("ok")) {
      return fail(fields.text("attempted", kMaxErrorText), fields.text("subject", kMaxErrorText),
                  fields.text("reason", kMaxErrorText), fields.text("remedy", kMaxErrorText));
    }
    ClerkAnswer answer;
    for (const Json& address : fields.array("addresses", kMaxAddresses)) {
      answer.addresses.push_back(address.get<std::string>());
    }
    answer.body = fields.bytes("body", kMaxClerkFrame);
    answer.uid = fields.u32("uid");
    return answer;
  });
  if (!read) return tl::unexpected(read.error());
  return *read;
}

void serve_clerk(int socket, pid_t parent, const MakeCredential& make_credential) noexcept {
  try {
    if (!make_lonely(socket, parent)) ::_exit(1);
    auto credential = make_credential();
    while (const auto frame = read_frame_of(3)) {
      const auto request = decode_request(*frame);
      const auto answer = request ? serve(*request, credential) : tl::unexpected(request.error());
      if (!write_frame(3, encode(answer))) break;
    }
    ::_exit(0);
  } catch (...) {
    ::_exit(1);  // the parent sees the socket close and fails the request
  }
}

}  // namespace netcheck::peers
