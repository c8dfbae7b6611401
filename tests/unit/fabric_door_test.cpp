// Who may connect to a port of this process: real sockets on the loopback device.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "fabric/door.h"

namespace netcheck::fabric {
namespace {

using testing::Contains;

Address four(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}
Address six_loopback() {
  Address address{};
  address.back() = 1;
  return address;
}

/// A listener on a port of its own, on both kinds of addresses.
struct Listener {
  Listener() {
    const int off = 0;
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(::listen(socket, 8), 0);
    socklen_t size = sizeof any;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size);
    port = ntohs(any.sin6_port);
  }
  ~Listener() { ::close(socket); }
  int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
};

/// A connection attempt from `source`, in a socket of its own. Loopback answers at once or not at all.
class Caller {
 public:
  Caller(const char* source, std::uint16_t port, const char* to = "127.0.0.1") {
    sockaddr_in from{}, there{};
    from.sin_family = there.sin_family = AF_INET;
    ::inet_pton(AF_INET, source, &from.sin_addr);
    ::inet_pton(AF_INET, to, &there.sin_addr);
    there.sin_port = htons(port);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    static_cast<void>(::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there));
  }
  explicit Caller(std::uint16_t port) : socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in6 there{};
    there.sin6_family = AF_INET6;
    there.sin6_addr = in6addr_loopback;
    there.sin6_port = htons(port);
    static_cast<void>(::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there));
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  [[nodiscard]] bool connected() const {
    pollfd wait{socket_, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    return ::poll(&wait, 1, 200) == 1 && ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
           error == 0;
  }
  /// The other end has gone.
  [[nodiscard]] bool ended() const {
    char byte = 0;
    pollfd wait{socket_, POLLIN, 0};
    return ::poll(&wait, 1, 1000) == 1 && ::recv(socket_, &byte, 1, 0) <= 0;
  }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
};

/// What this process's accept() says to a caller.
bool comes_in(const Listener& listener, const Caller& caller) {
  if (!caller.connected()) return false;
  const int taken = ::accept(listener.socket, nullptr, nullptr);
  if (taken < 0) return false;
  ::close(taken);
  return true;
}

// The door is the process's and stays shut: each test forks.
void in_a_child(const std::function<void()>& test) {
  EXPECT_EXIT(
      {
        test();
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Door, IsOpenUntilItIsShut) {
  const Listener listener;
  EXPECT_TRUE(comes_in(listener, Caller("127.0.0.1", listener.port)));
}

TEST(Door, LetsNobodyInAtFirst) {
  in_a_child([] {
    const Listener listener;
    Door::of_process().shut();
    const Caller four_caller("127.0.0.1", listener.port), six_caller(listener.port);
    EXPECT_FALSE(comes_in(listener, four_caller));
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(comes_in(listener, six_caller));
    EXPECT_TRUE(four_caller.ended());
    EXPECT_TRUE(six_caller.ended());
  });
}

TEST(Door, LetsInWhoIsAdmittedAndNobodyElse) {
  in_a_child([] {
    const Listener listener;
    Door& door = Door::of_process();
    door.shut();
    door.admit({four(127, 0, 0, 2)});
    EXPECT_TRUE(comes_in(listener, Caller("127.0.0.2", listener.port)));
    EXPECT_FALSE(door.has_turned_away());
    EXPECT_FALSE(comes_in(listener, Caller("127.0.0.3", listener.port)));
    EXPECT_FALSE(comes_in(listener, Caller(listener.port)));
    EXPECT_TRUE(door.has_turned_away());
    door.admit({four(127, 0, 0, 3), six_loopback()});
    EXPECT_TRUE(comes_in(listener, Caller("127.0.0.2", listener.port)));
    EXPECT_TRUE(comes_in(listener, Caller("127.0.0.3", listener.port)));
    EXPECT_TRUE(comes_in(listener, Caller(listener.port)));
  });
}

TEST(Door, APatientOneKeepsAStrangerUntilItIsAdmitted) {
  in_a_child([] {
    const Listener listener;
    Door& door = Door::of_process();
    door.shut();
    door.be_patient(std::chrono::seconds(5));
    const Caller early("127.0.0.2", listener.port);
    ASSERT_TRUE(early.connected());
    std::jthread admitting([&door] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      door.admit({four(127, 0, 0, 2)});
    });
    EXPECT_TRUE(comes_in(listener, early)) << "accept() blocks until then";
    EXPECT_FALSE(door.has_turned_away());
  });
}

TEST(Door, APatientOneHoldsUpNobodyBehindAStranger) {
  in_a_child([] {
    const Listener listener;
    Door& door = Door::of_process();
    door.shut();
    door.be_patient(std::chrono::milliseconds(100));
    door.admit({four(127, 0, 0, 2)});
    ::fcntl(listener.socket, F_SETFL, O_NONBLOCK);
    const Caller stranger("127.0.0.3", listener.port), friendly("127.0.0.2", listener.port);
    ASSERT_TRUE(stranger.connected());
    EXPECT_TRUE(comes_in(listener, friendly));
    EXPECT_FALSE(door.has_turned_away()) << "not yet";
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    EXPECT_LT(::accept(listener.socket, nullptr, nullptr), 0);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_TRUE(stranger.ended());
    EXPECT_TRUE(door.has_turned_away());
  });
}

TEST(Source, IsEachAddressOfThisNode) {
  EXPECT_THAT(own_addresses(), Contains(four(127, 0, 0, 1)));
}

}  // namespace
}  // namespace netcheck::fabric
