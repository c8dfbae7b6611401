// How the stand-in for libnccl moves bytes: TCP between the ranks of different nodes over each rail, local
// sockets between those of one, and collectives by the project's own schedules over them. Used by nccl.cpp.
//
// As with NCCL, what leaves a node for another leaves from a GPU over that GPU's NIC, and several rings share
// a collective, each leaving a node from another GPU: so all rails are in use, and a slow one shows.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/batch.h"
#include "measure/schedule.h"
#include "nics.h"

namespace netcheck::fakes {

/// Thrown where NCCL would say ncclRemoteError.
struct Lost {
  std::string what;
};

/// The meeting point behind a unique id: tells every rank where every other listens. In a thread of its own.
/// Returns where it listens.
sockaddr_in open_root();

class Wire {
 public:
  /// Meets the other ranks at `root` and connects to all of them. Blocks until all are there. Throws Lost.
  Wire(const sockaddr_in& root, int ranks, int rank, int device);

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

  /// The ring's connections from here, as NCCL logs them: "Channel 01/0 : 1[1] -> 2[0] [send] via
  /// NET/Socket/1".
  [[nodiscard]] std::vector<std::string> ways() const;

 private:
  /// What all know of a rank once they have met.
  struct Place {
    int device = 0;
    std::uint64_t process = 0;  ///< the same for ranks of one node
    in_port_t port = 0;
    std::uint32_t nics = 0;
    std::array<in_addr, kMostNics> addresses{};
  };
  struct Hello {
    int ranks = 0, rank = 0;
    Place place;
  };
  using Ring = std::vector<std::uint32_t>;  // ranks

  static void serve_root(int listener);
  friend sockaddr_in open_root();
  void connect_all(int listener);
  void make_rings();
  [[nodiscard]] bool is_local(int rank) const;
  [[nodiscard]] int socket_for(int peer, int sender) const;
  /// Part `ring` of a block of `size` bytes, in whole elements.
  [[nodiscard]] Piece part_of(std::size_t ring, std::uint64_t block, std::uint64_t size, Type type) const;
  void in_rings(Op op, Type type, std::vector<std::byte>& work);
  void run_round(Type type, const netcheck::Round& round, std::vector<std::byte>& work);

  sockaddr_in root_{};
  int ranks_, rank_;
  std::size_t rails_ = 1;
  std::vector<Place> places_;              // by rank
  std::vector<std::vector<int>> sockets_;  // by rank and rail; one to those of this node
  std::vector<Ring> rings_;
};

}  // namespace netcheck::fakes
