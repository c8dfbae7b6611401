// Who may connect to this process: the check's own nodes and nobody else. UCX takes bytes from whoever
// connects, matches them by guessable tags, and a malformed one ends or corrupts its process; its TCP
// transport has no credentials. In the fabric child, as the probe user.
//
// The program's own accept() and accept4() take the place of the C library's, for libraries too, and close
// what comes from anywhere else before a byte of it is read. (A socket filter would do it in the kernel, but
// some kernels refuse one to processes without privileges.) What this does not keep out are processes on the
// check's own nodes: where a library's connections have no credentials of its own, they begin with a key
// instead, and where they come from is nobody's concern (greeting.h). RDMA has no door; its peers are told by
// queue pairs.
#pragma once

#include <sys/socket.h>

#include <mutex>
#include <set>
#include <vector>

#include "contract/units.h"
#include "fabric/source.h"

namespace netcheck::fabric {

/// Asked from whatever thread a library accepts in.
class Door {
 public:
  /// The process's, as accept() is. Open until it is shut: the probe and its supervisor accept, too.
  [[nodiscard]] static Door& of_process();
  /// From now on only those that are admitted come in.
  void shut();
  void admit(const std::vector<Address>& addresses);
  /// Who is not known yet waits so long to be admitted: for a library that connects while its team is formed,
  /// where another node may be told a moment sooner than this one. Its accept() must be asked again and
  /// again, or block. Zero, as at first: a stranger is closed at once.
  void be_patient(Ns patience);
  [[nodiscard]] bool lets_in(const sockaddr* address);
  /// Somebody was not let in: a stranger, or a node of the check by an address that its card does not name.
  [[nodiscard]] bool has_turned_away();

  // For accept() alone:
  [[nodiscard]] Ns patience();
  [[nodiscard]] bool knows(const sockaddr* address);
  void note_stranger();
  /// A stranger's connection to that listener, which is the door's from now on.
  void keep_waiting(int listener, int connection);
  /// One of a listener's that has been admitted meanwhile; −1: none. Closes those whose time is over.
  [[nodiscard]] int take_admitted(int listener);
  [[nodiscard]] bool has_waiting(int listener);

 private:
  struct Waiting {
    int listener = -1, connection = -1;
    Time until{};
  };
  [[nodiscard]] bool known(const sockaddr* address) const;  // under the mutex

  std::mutex mutex_;
  bool shut_ = false, has_turned_away_ = false;
  Ns patience_{};
  std::vector<Waiting> waiting_;
  std::set<Address> admitted_;
};

}  // namespace netcheck::fabric
