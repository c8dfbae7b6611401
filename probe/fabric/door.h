// Who may connect to this process: the check's own nodes and nobody else. UCX takes bytes from whoever
// connects, matches them by guessable tags, and a malformed one ends or corrupts its process; its TCP
// transport has no credentials. In the fabric child, as the probe user.
//
// The program's own accept() and accept4() take the place of the C library's, for libraries too, and close
// what comes from anywhere else before a byte of it is read. (A socket filter would do it in the kernel, but
// some kernels refuse one to processes without privileges.) What this does not keep out: processes on the
// check's own nodes, which an exclusive job has to itself; and RDMA, whose peers are told by queue pairs.
#pragma once

#include <sys/socket.h>

#include <mutex>
#include <set>
#include <vector>

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
  [[nodiscard]] bool lets_in(const sockaddr* address);
  /// Somebody was not let in: a stranger, or a node of the check by an address that its card does not name.
  [[nodiscard]] bool has_turned_away();

 private:
  std::mutex mutex_;
  bool shut_ = false, has_turned_away_ = false;
  std::set<Address> admitted_;
};

}  // namespace netcheck::fabric
