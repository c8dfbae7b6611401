// One datagram to /dev/log, as RFC 3164 has it. See syslog.h.
#include "prolog/syslog.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cstring>

#include "contract/error.h"
#include "system/descriptor.h"

namespace netcheck::prolog {

bool write_syslog(const std::string& text, const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  const system::Descriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  constexpr std::size_t kLineBytes = 2'048;  // receivers cut at 8 KiB, some at 1: our lines are shorter
  const std::string line =
      fmt::format("<{}>netcheck[{}]: {}", LOG_DAEMON | LOG_NOTICE, ::getpid(), printable(text, kLineBytes));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the C interface
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  return ::sendto(fd.get(), line.data(), line.size(), MSG_NOSIGNAL, to, sizeof address) >= 0;
}

}  // namespace netcheck::prolog
