// How the stand-in for libnccl moves bytes: TCP between all ranks of a communicator, and collectives by the
// project's own schedules over it. Used by nccl.cpp.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/batch.h"
#include "measure/schedule.h"

namespace netcheck::fakes {

/// Thrown where NCCL would say ncclRemoteError.
struct Lost {
  std::string what;
};

/// An address of this node that others reach: NCCL_SOCKET_IFNAME's, or the first that is not loopback.
sockaddr_in own_address();
std::string interface_name();

/// The meeting point behind a unique id: tells every rank where every other listens. In a thread of its own.
/// Returns where it listens.
sockaddr_in open_root();

class Wire {
 public:
  /// Meets the other ranks at `root` and connects to all of them. Blocks until all are there. Throws Lost.
  Wire(const sockaddr_in& root, int ranks, int rank);

  struct Out {
    int to;
    const std::byte* data;
    std::size_t size;
  };
  struct In {
    int from;
    std::byte* data;
    std::size_t size;
  };
  /// All at once; to itself, too. Throws Lost.
  void exchange(const std::vector<Out>& outs, const std::vector<In>& ins);
  /// A collective on `work`, laid out as measure/schedule.h says. Throws Lost.
  void collective(Op op, Type type, std::uint32_t root, std::vector<std::byte>& work);

 private:
  void run_round(Type type, const netcheck::Round& round, std::vector<std::byte>& work);
  int ranks_, rank_;
  std::vector<int> sockets_;  // by rank
};

}  // namespace netcheck::fakes
