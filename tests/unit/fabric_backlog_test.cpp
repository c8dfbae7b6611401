// What the kernel says of connections that nobody took: its text, and a queue that really is full.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

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

TEST(Backlog, SeesAQueueThatIsFull) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const Backlog backlog;
  std::vector<int> callers;
  for (int i = 0; i < 8; ++i) {
    callers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(callers.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  }
  EXPECT_TRUE(backlog.overflowed());
  for (const int caller : callers)
    ::close(caller);
  ::close(listener);
}

}  // namespace
}  // namespace netcheck::fabric
