// What a connection has to begin with: real sockets on the loopback device. This process speaks by the C
// library's names, which are its own; a stranger by system calls.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>

#include "fabric/door.h"
#include "fabric/greeting.h"

namespace netcheck::fabric {
namespace {

using std::chrono::milliseconds;

// What a process says, and whom it hears, stays: each test forks.
void in_a_child(const std::function<void()>& test) {
  EXPECT_EXIT(
      {
        Door::of_process().shut();
        test();
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

class Listener {
 public:
  Listener() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, get(), sizeof address_), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~Listener() { ::close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  /// Who came in; −1: nobody in that time.
  [[nodiscard]] int take(milliseconds patience = milliseconds(2'000)) const {
    pollfd knock{socket_, POLLIN, 0};
    return ::poll(&knock, 1, static_cast<int>(patience.count())) == 1 ? ::accept(socket_, nullptr, nullptr)
                                                                      : -1;
  }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address_{};
};

std::string read_from(int connection) {
  std::array<char, 64> bytes{};
  pollfd readable{connection, POLLIN, 0};
  if (::poll(&readable, 1, 2'000) != 1) return "(nothing)";
  const auto size = ::recv(connection, bytes.data(), bytes.size(), MSG_DONTWAIT);
  return size < 0 ? "(nothing)" : std::string(bytes.data(), static_cast<std::size_t>(size));
}

bool has_ended(int connection) {
  char byte = 0;
  pollfd readable{connection, POLLIN, 0};
  return ::poll(&readable, 1, 2'000) == 1 && ::recv(connection, &byte, 1, MSG_DONTWAIT) <= 0;
}

/// One of the check: what it says begins with this process's key, of which it knows nothing itself.
int member(const Listener& to, const std::string& says) {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(connection, to.get(), sizeof(sockaddr_in)), 0);
  EXPECT_EQ(::send(connection, says.data(), says.size(), MSG_NOSIGNAL), static_cast<ssize_t>(says.size()));
  return connection;
}

int stranger(const Listener& to, const std::string& says) {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::syscall(SYS_connect, connection, to.get(), sizeof(sockaddr_in)), 0);
  if (says.empty()) return connection;
  EXPECT_EQ(::syscall(SYS_sendto, connection, says.data(), says.size(), MSG_NOSIGNAL, nullptr, 0),
            static_cast<ssize_t>(says.size()));
  return connection;
}

std::string as_text(const Key& key) {
  return {key.begin(), key.end()};
}

TEST(Greeting, IsSaidAndTakenOffUnseen) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    const int caller = member(listener, "hello");
    const int taken = listener.take();
    ASSERT_GE(taken, 0);
    EXPECT_EQ(read_from(taken), "hello");
    EXPECT_EQ(::send(caller, " again", 6, MSG_NOSIGNAL), 6);  // once on each connection
    EXPECT_EQ(read_from(taken), " again");
    EXPECT_EQ(::send(taken, "answer", 6, MSG_NOSIGNAL), 6);  // and not by who was called
    EXPECT_EQ(read_from(caller), "answer");
  });
}

TEST(Greeting, BeginsAMessageOfSeveralPartsToo) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(caller, listener.get(), sizeof(sockaddr_in)), 0);
    std::string one = "one", two = "two";
    std::array<iovec, 2> parts{{{one.data(), one.size()}, {two.data(), two.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    EXPECT_EQ(::sendmsg(caller, &message, MSG_NOSIGNAL), 6);
    EXPECT_EQ(read_from(listener.take()), "onetwo");
  });
}

TEST(Greeting, KeepsOutWhoDoesNotKnowIt) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    for (const std::string& says : {std::string("x"), std::string(32, 'x'), as_text(fresh_key()) + "more"}) {
      const int other = stranger(listener, says);
      EXPECT_EQ(listener.take(), -1) << says.size();
      EXPECT_TRUE(has_ended(other)) << says.size();
    }
    // Who says what nobody of the check would is no reason to doubt what this process has seen.
    EXPECT_FALSE(Door::of_process().has_turned_away());
  });
}

TEST(Greeting, AStrangerHoldsUpNobodyBehindIt) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    for (int i = 0; i < 8; ++i)
      stranger(listener, std::string(32, 'x'));
    member(listener, "hello");
    EXPECT_EQ(read_from(listener.take()), "hello");  // by one accept()
  });
}

TEST(Greeting, WhoSaysNothingIsNotHeardOf) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    stranger(listener, "");
    EXPECT_EQ(listener.take(milliseconds(100)), -1);
    member(listener, "hello");
    EXPECT_EQ(read_from(listener.take()), "hello");
    EXPECT_FALSE(Door::of_process().has_turned_away());
  });
}

TEST(Greeting, LetsInTheKeysOfTheOthers) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    const Key others = fresh_key();
    stranger(listener, as_text(others) + "hello");
    EXPECT_EQ(listener.take(), -1);
    Greeting::of_process().admit({others});
    stranger(listener, as_text(others) + "hello");
    EXPECT_EQ(read_from(listener.take()), "hello");
  });
}

// A connection that was made and given up without a word, and one taken under the same number.
TEST(Greeting, IsOwedByAConnectionAndNotByItsNumber) {
  in_a_child([] {
    Greeting::of_process().begin(fresh_key());
    const Listener listener;
    const int given_up = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(given_up, listener.get(), sizeof(sockaddr_in)), 0);
    const int caller = member(listener, "hello");
    ::close(given_up);
    const int taken = listener.take();
    ASSERT_EQ(taken, given_up);
    EXPECT_EQ(read_from(taken), "hello");
    EXPECT_EQ(::send(taken, "answer", 6, MSG_NOSIGNAL), 6);
    EXPECT_EQ(read_from(caller), "answer");
  });
}

// Two sockets with one port of their own cannot both go to the same place: as where another user has all
// others.
TEST(Greeting, KnowsThatAPortWasWanting) {
  in_a_child([] {
    const Listener listener;
    std::array<int, 2> callers{};
    std::array<int, 2> results{};
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int& caller : callers) {
      caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const int on = 1;
      ::setsockopt(caller, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      ASSERT_EQ(::bind(caller, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
      socklen_t size = sizeof own;
      ASSERT_EQ(::getsockname(caller, reinterpret_cast<sockaddr*>(&own), &size), 0);
    }
    for (std::size_t i = 0; i < callers.size(); ++i) {
      EXPECT_FALSE(Greeting::of_process().hindered());
      results.at(i) = ::connect(callers.at(i), listener.get(), sizeof(sockaddr_in));
    }
    EXPECT_EQ(errno, EADDRNOTAVAIL);
    EXPECT_EQ(results, (std::array{0, -1}));
    EXPECT_TRUE(Greeting::of_process().hindered());
  });
}

TEST(Greeting, ARefusalIsNoWantOfThisNode) {
  in_a_child([] {
    sockaddr_in nobody{};
    nobody.sin_family = AF_INET;
    nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    nobody.sin_port = htons(1);
    const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(caller, reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    EXPECT_FALSE(Greeting::of_process().hindered());
  });
}

TEST(Greeting, IsNobodysConcernUntilThereIsAKey) {
  in_a_child([] {
    const Listener listener;
    Door::of_process().admit({address_of(listener.get()).value()});
    stranger(listener, "hello");
    EXPECT_EQ(read_from(listener.take()), "hello");
    const int local = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::send(local, "x", 1, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, ENOTCONN);
  });
}

}  // namespace
}  // namespace netcheck::fabric
