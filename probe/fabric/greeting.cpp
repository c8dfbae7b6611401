// See greeting.h.
#include "fabric/greeting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace netcheck::fabric {
namespace {

/// So long the kernel keeps to itself who connects and says nothing. Twice what a process of the check is
/// kept from running before its figures count for nothing at all.
constexpr int kSilentSeconds = 5;

long system_send(int connection, const void* data, std::size_t size, int flags) {
  return ::syscall(SYS_sendto, connection, data, size, flags, nullptr, 0);
}

/// The same time whatever the difference.
bool same(const Key& a, const Key& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a.at(i) ^ b.at(i));
  return difference == 0;
}

bool is_inet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

}  // namespace

Greeting& Greeting::of_process() {
  static Greeting greeting;
  return greeting;
}

void Greeting::begin(const Key& own) {
  const std::lock_guard lock(mutex_);
  own_ = own;
  admitted_.insert(own);  // a process speaks to itself where it has two ranks
  wanted_ = true;
}

void Greeting::admit(const std::vector<Key>& keys) {
  const std::lock_guard lock(mutex_);
  admitted_.insert(keys.begin(), keys.end());
}

Greeting::Heard Greeting::hear(int connection) {
  Key said{};
  const auto size = ::recv(connection, said.data(), said.size(), MSG_DONTWAIT);
  const std::lock_guard lock(mutex_);
  if (silent_.erase(connection) > 0) --owed_;  // an earlier one of that number
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Heard::silence;
  bool known = false;
  for (const Key& key : admitted_)
    known = same(key, said) || known;
  return known && static_cast<std::size_t>(size) == said.size() ? Heard::key : Heard::nonsense;
}

void Greeting::could_not_connect(int error) {
  constexpr std::array kWants{EADDRNOTAVAIL, EADDRINUSE, EAGAIN, ENOBUFS, ENOMEM, EMFILE, ENFILE};
  if (std::ranges::find(kWants, error) != kWants.end()) hindered_ = true;
}

void Greeting::owes(int connection) {
  const std::lock_guard lock(mutex_);
  if (silent_.insert(connection).second) ++owed_;
}

bool Greeting::say(int connection) {
  if (owed_ == 0) return true;
  const std::lock_guard lock(mutex_);
  if (!silent_.contains(connection)) return true;
  const long sent = system_send(connection, own_.data(), own_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return false;
  silent_.erase(connection);
  --owed_;
  if (static_cast<std::size_t>(sent) == own_.size()) return true;
  errno = EPIPE;  // a fresh connection has room for 32 bytes
  return false;
}

Key fresh_key() {
  Key key{};
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    throw std::runtime_error("the kernel gives no random numbers");
  return key;
}

}  // namespace netcheck::fabric

using netcheck::fabric::Greeting;

// Exported from every program that hosts fabrics (CMakeLists.txt), and so found before the C library's.
// Their parameters have reserved names there.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {
[[gnu::visibility("default")]] int listen(int listener, int backlog) {
  if (Greeting::of_process().wanted()) {
    const int seconds =
        netcheck::fabric::kSilentSeconds;  // refused by sockets that are not TCP's, and well so
    static_cast<void>(::setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds));
  }
  return static_cast<int>(::syscall(SYS_listen, listener, backlog));
}

[[gnu::visibility("default")]] int connect(int connection, const sockaddr* address, socklen_t size) {
  const auto result = static_cast<int>(::syscall(SYS_connect, connection, address, size));
  const int why = errno;
  const bool begun = result == 0 || why == EINPROGRESS;
  if (!begun && netcheck::fabric::is_inet(address)) Greeting::of_process().could_not_connect(why);
  if (begun && Greeting::of_process().wanted() && netcheck::fabric::is_inet(address))
    Greeting::of_process().owes(connection);
  errno = why;
  return result;
}

[[gnu::visibility("default")]] ssize_t send(int connection, const void* data, std::size_t size, int flags) {
  if (!Greeting::of_process().say(connection)) return -1;
  return netcheck::fabric::system_send(connection, data, size, flags);
}

[[gnu::visibility("default")]] ssize_t sendmsg(int connection, const msghdr* message, int flags) {
  if (!Greeting::of_process().say(connection)) return -1;
  return ::syscall(SYS_sendmsg, connection, message, flags);
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
