// What the kernel says of connections that nobody took: its text, and a queue that really is full.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "fabric/backlog.h"

namespace netcheck::fabric {
namespace {

TEST(Backlog, CountsWhatFoundNoRoom) {
  EXPECT_EQ(refused_for_want_of_room(
                "TcpExt: SyncookiesSent ListenOverflows TCPReqQFullDoCookies TCPReqQFullDrop X\n"
                "TcpExt: 7 2 3 4 9\n"
                "IpExt: InNoRoutes\nIpExt: 5\n"),
            9U);
  EXPECT_EQ(refused_for_want_of_room("IpExt: A\nIpExt: 5\nTcpExt: ListenOverflows\nTcpExt: 0\n"), 0U);
}

TEST(Backlog, KnowsNothingWhereNothingIsSaid) {
  for (const char* text : {"", "TcpExt:", "TcpExt: A B\nTcpExt: 1 2\n", "TcpExt: ListenOverflows\n",
                           "TcpExt: ListenOverflows\nTcpExt: many\n"})
    EXPECT_EQ(refused_for_want_of_room(text), std::nullopt) << text;
}

bool loopback_is_up() {
  const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  return ::ioctl(any, SIOCSIFFLAGS, &loopback) == 0;
}

/// Whether a listener's queue is seen to be full once eight have called and none was taken.
bool sees_a_full_queue() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 0) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return false;
  const Backlog backlog;
  for (int i = 0; i < 8; ++i) {
    const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    static_cast<void>(::connect(caller, reinterpret_cast<const sockaddr*>(&address), size));
  }
  return backlog.overflowed();
}

// In a network namespace of its own: a full queue in this one would silence every fabric child of other
// tests.
TEST(Backlog, SeesAQueueThatIsFull) {
  const pid_t process = ::fork();
  if (process == 0) {
    const bool alone = ::unshare(CLONE_NEWNET) == 0 && loopback_is_up();
    ::_exit(!alone ? 2 : sees_a_full_queue() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace netcheck::fabric
