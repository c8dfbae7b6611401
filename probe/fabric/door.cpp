#include "fabric/door.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fabric/greeting.h"

namespace netcheck::fabric {

namespace {

constexpr std::size_t kMostWaiting = 64;
constexpr int kMostStrangers = 1'024;  // in a row: a backlog's worth, then others have their turn
constexpr int kLookAgainMs = 5;        // whether somebody who waits has been admitted

/// Of a connection's far end.
struct Peer {
  explicit Peer(int connection)
      : known(::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) == 0) {}
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  bool known;
};

/// As accept() reports it.
void tell_peer(int connection, sockaddr* address, socklen_t* size) {
  if (address != nullptr && size != nullptr) static_cast<void>(::getpeername(connection, address, size));
}

int accept_with_patience(Door& door, int listener, sockaddr* address, socklen_t* size, int flags) {
  const bool blocks = (::fcntl(listener, F_GETFL) & O_NONBLOCK) == 0;
  while (true) {
    if (const int admitted = door.take_admitted(listener); admitted >= 0) {
      tell_peer(admitted, address, size);
      return admitted;
    }
    pollfd knock{listener, POLLIN, 0};
    const int wait = !blocks ? 0 : door.has_waiting(listener) ? kLookAgainMs : -1;
    const int knocked = ::poll(&knock, 1, wait);
    if (knocked < 0) return -1;
    if (knocked == 0 && blocks) continue;
    const auto taken = static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
    if (taken < 0) {
      if (blocks && errno == EAGAIN) continue;
      return taken;
    }
    const Peer peer(taken);
    if (peer.known && door.knows(peer.get())) return taken;
    door.keep_waiting(listener, taken);
  }
}

/// Where connections begin with a key. Those that do not are closed, and the next one is taken at once: UCX
/// does not ask again before somebody else knocks.
int accept_with_key(int listener, sockaddr* address, socklen_t* size, int flags) {
  const socklen_t room = size == nullptr ? 0 : *size;
  for (int strangers = 0; strangers < kMostStrangers; ++strangers) {
    if (size != nullptr) *size = room;
    const auto taken = static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
    if (taken < 0) return taken;
    const auto heard = Greeting::of_process().hear(taken);
    if (heard == Greeting::Heard::key) return taken;
    // One of the check that was stopped after it had connected says nothing for long, too.
    if (heard == Greeting::Heard::silence) Door::of_process().note_stranger();
    ::close(taken);
  }
  errno = EAGAIN;
  return -1;
}

/// The kernel's accept4, then the door. A stranger is closed, and the caller told that nobody is there: UCX
/// asks again when the next one knocks.
int accept_at_door(int listener, sockaddr* address, socklen_t* size, int flags) noexcept {
  try {
    if (Greeting::of_process().wanted()) return accept_with_key(listener, address, size, flags);
    Door& door = Door::of_process();
    if (door.patience() > Ns::zero()) return accept_with_patience(door, listener, address, size, flags);
  } catch (...) {
    errno = EAGAIN;
    return -1;
  }
  const auto taken = static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
  if (taken < 0) return taken;
  const Peer peer(taken);
  try {
    if (peer.known && Door::of_process().lets_in(peer.get())) return taken;
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

bool Door::known(const sockaddr* address) const {
  const auto source = address_of(address);
  return !shut_ || (source && admitted_.contains(*source));
}

bool Door::lets_in(const sockaddr* address) {
  const std::lock_guard lock(mutex_);
  const bool may = known(address);
  has_turned_away_ = has_turned_away_ || !may;
  return may;
}

// --- patience ---------------------------------------------------------------------------------------------

void Door::be_patient(Ns patience) {
  const std::lock_guard lock(mutex_);
  patience_ = patience;
}

Ns Door::patience() {
  const std::lock_guard lock(mutex_);
  return patience_;
}

bool Door::knows(const sockaddr* address) {
  const std::lock_guard lock(mutex_);
  return known(address);
}

void Door::keep_waiting(int listener, int connection) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMostWaiting) {
    ::close(waiting_.front().connection);
    waiting_.erase(waiting_.begin());
    has_turned_away_ = true;
  }
  waiting_.push_back({listener, connection, std::chrono::steady_clock::now() + patience_});
}

int Door::take_admitted(int listener) {
  const std::lock_guard lock(mutex_);
  const Time now = std::chrono::steady_clock::now();
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const int connection = one->connection;
    const Peer peer(connection);
    const bool admitted = peer.known && known(peer.get());
    const bool over = !admitted && (!peer.known || now >= one->until);
    if (!over && !(admitted && one->listener == listener)) {
      ++one;
      continue;
    }
    one = waiting_.erase(one);
    if (admitted) return connection;
    ::close(connection);
    has_turned_away_ = true;
  }
  return -1;
}

bool Door::has_waiting(int listener) {
  const std::lock_guard lock(mutex_);
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [listener](const Waiting& one) { return one.listener == listener; });
}

void Door::note_stranger() {
  const std::lock_guard lock(mutex_);
  has_turned_away_ = true;
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
