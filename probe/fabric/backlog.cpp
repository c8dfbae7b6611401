// See backlog.h.
#include "fabric/backlog.h"

#include "fabric/kernel_tables.h"

namespace netcheck::fabric {
namespace {

std::optional<std::uint64_t> refused_now() {
  return refused_for_want_of_room(text_of("/proc/net/netstat"));
}

}  // namespace

std::optional<std::uint64_t> refused_for_want_of_room(std::string_view netstat) {
  // The queue of those that are taken next, and that of those whose connection is not complete, dropped or
  // answered with a cookie.
  return sum_in_section(netstat, "TcpExt:", {"ListenOverflows", "TCPReqQFullDrop", "TCPReqQFullDoCookies"});
}

Backlog::Backlog() : before_(refused_now()) {}

bool Backlog::overflowed() const {
  const auto now = refused_now();
  return before_ && now && *now != *before_;
}

}  // namespace netcheck::fabric
