#include "fabric/door.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace netcheck::fabric {

namespace {

/// The kernel's accept4, then the door. A stranger is closed, and the caller told that nobody is there: UCX
/// asks again when the next one knocks.
int accept_at_door(int listener, sockaddr* address, socklen_t* size, int flags) noexcept {
  const auto taken = static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
  if (taken < 0) return taken;
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  const bool known = ::getpeername(taken, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
  try {
    if (known && Door::of_process().lets_in(reinterpret_cast<const sockaddr*>(&peer))) return taken;
  } catch (...) {  // a lock that cannot be had lets nobody in
  }
  ::close(taken);
  errno = EAGAIN;
  return -1;
}

}  // namespace

Door& Door::of_process() {
  static Door door;
  return door;
}

void Door::shut() {
  const std::lock_guard lock(mutex_);
  shut_ = true;
}

void Door::admit(const std::vector<Address>& addresses) {
  const std::lock_guard lock(mutex_);
  admitted_.insert(addresses.begin(), addresses.end());
}

bool Door::lets_in(const sockaddr* address) {
  const auto source = address_of(address);
  const std::lock_guard lock(mutex_);
  const bool may = !shut_ || (source && admitted_.contains(*source));
  has_turned_away_ = has_turned_away_ || !may;
  return may;
}

bool Door::has_turned_away() {
  const std::lock_guard lock(mutex_);
  return has_turned_away_;
}

}  // namespace netcheck::fabric

// Exported from every program that hosts fabrics (CMakeLists.txt), and so found before the C library's.
// Its parameters have reserved names there.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {
[[gnu::visibility("default")]] int accept(int listener, sockaddr* address, socklen_t* size) {
  return netcheck::fabric::accept_at_door(listener, address, size, 0);
}
[[gnu::visibility("default")]] int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  return netcheck::fabric::accept_at_door(listener, address, size, flags);
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
