// Sockets and limits that only root can have. As root.
#include "prolog/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "peers/peers.h"

namespace netcheck::prolog {
namespace {

constexpr int kBacklog = 1'024;         // every node of a large job may knock at once
constexpr std::size_t kOwnFiles = 256;  // the fabric's, the clerks', the loop's

// Binds and listens; errno tells why not.
template <typename Address>
bool open_on(const system::Descriptor& socket, const Address& address) {
  const int on = 1;  // the last check's connections may still be in TIME_WAIT
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return false;
  // sockaddr is what bind takes every address as.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  return ::listen(socket.get(), kBacklog) == 0;
}

system::Descriptor listen_on(std::uint16_t port) {
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  system::Descriptor socket(::socket(AF_INET6, kType, 0));
  if (socket) {
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_any;
    if (open_on(socket, address)) return socket;
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return {};
  }
  socket.reset(::socket(AF_INET, kType, 0));  // a node without IPv6
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (socket && open_on(socket, address)) return socket;
  return {};
}

void raise(int resource, rlim_t least) {
  rlimit limit{};
  const auto which = static_cast<__rlimit_resource>(resource);
  if (::getrlimit(which, &limit) != 0) return;
  const rlim_t most = limit.rlim_max;
  limit.rlim_max = std::max(most, least);
  limit.rlim_cur = std::max(limit.rlim_cur, least);
  if (::setrlimit(which, &limit) == 0) return;
  // A root without CAP_SYS_RESOURCE (a container's): what there is, and the module says what it lacks.
  limit.rlim_cur = limit.rlim_max = most;
  ::setrlimit(which, &limit);
}

}  // namespace

Result<system::Descriptor> listen_for(std::uint32_t job, const Policy& policy) {
  std::string tried;
  int error = 0;
  for (const std::uint16_t port : peers::ports_of(job, policy.first_port, policy.last_port)) {
    system::Descriptor socket = listen_on(port);
    if (socket) return socket;
    error = errno;
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", port);
  }
  return fail("listen on the ports", tried, std::strerror(error),
              "[peers] first_port and last_port name the range");
}

void set_limits(std::size_t nodes) {
  raise(RLIMIT_MEMLOCK, RLIM_INFINITY);
  raise(RLIMIT_NOFILE, nodes + kOwnFiles);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace netcheck::prolog
