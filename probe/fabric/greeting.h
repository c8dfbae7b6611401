// What a connection says before anything else, where a library's own transport has no credentials (UCX over
// TCP): the key of the process that makes it, which the others of its teams know by its card, sealed in the
// session's channel. Whoever does not know one, on whatever node, is closed before the library hears of it.
// In the fabric child, as the probe user.
//
// The program's own listen(), connect(), send() and sendmsg() take the place of the C library's, for
// libraries too, and its accept() (door.cpp) asks here. Until a key is given they are the C library's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "fabric/source.h"

namespace netcheck::fabric {

class Greeting {
 public:
  /// The process's, as its sockets are. Asked from whatever thread a library uses them in.
  [[nodiscard]] static Greeting& of_process();

  /// From now on each connection that this process makes begins with `own`, and each that it takes has to
  /// begin with a key that was admitted. Before any library listens.
  void begin(const Key& own);
  void admit(const std::vector<Key>& keys);
  [[nodiscard]] bool wanted() const { return wanted_; }

  enum class Heard : std::uint8_t { key, silence, nonsense };
  /// Takes the key off a connection that was taken a moment ago. Never waits: a listener hears of a
  /// connection once something was said on it (TCP_DEFER_ACCEPT).
  [[nodiscard]] Heard hear(int connection);

  /// A connection could not be made for want of something on this node: a free port, memory, a descriptor.
  /// Other users can take those; then missing bytes say nothing about the network.
  [[nodiscard]] bool hindered() const { return hindered_; }

  // For connect() and send() alone:
  void could_not_connect(int error);
  void owes(int connection);
  /// False: it cannot be said now, with errno as send() has it.
  [[nodiscard]] bool say(int connection);

 private:
  std::mutex mutex_;
  std::atomic<bool> wanted_ = false, hindered_ = false;
  std::atomic<std::size_t> owed_ = 0;
  Key own_{};
  std::set<Key> admitted_;
  std::set<int> silent_;  ///< connections made, on which nothing was said yet
};

/// A fresh one, of the kernel's random numbers.
[[nodiscard]] Key fresh_key();

}  // namespace netcheck::fabric
