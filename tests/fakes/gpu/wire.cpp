#include "wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>

#include "faults.h"
#include "measure/pattern.h"

namespace netcheck::fakes {

namespace {

constexpr std::size_t kChunk = 64 * 1024;

const sockaddr* plain(const sockaddr_in* address) {
  return reinterpret_cast<const sockaddr*>(address);
}

int listen_anywhere(sockaddr_in& address) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof address;
  if (::bind(listener, plain(&address), sizeof address) != 0 || ::listen(listener, 128) != 0)
    throw Lost{"bootstrap: no port to listen on"};
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return listener;
}

int accept_one(int listener) {
  while (true) {
    const int taken = ::accept(listener, nullptr, nullptr);
    if (taken >= 0) return taken;
    if (errno != EAGAIN && errno != EINTR) throw Lost{"bootstrap: accept failed"};
  }
}

/// From the interface that was chosen, as NCCL does: that is the address the other side knows.
int connect_to(const sockaddr_in& address, in_addr own) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in from = at_address(own);
  static_cast<void>(::bind(socket, plain(&from), sizeof from));
  if (::connect(socket, plain(&address), sizeof address) != 0)
    throw Lost{std::string("socketStartConnect: Connect failed : ") + std::strerror(errno)};
  return socket;
}

void send_all(int socket, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  for (std::size_t at = 0; at < size;) {
    const auto sent = ::send(socket, bytes + at, size - at, MSG_NOSIGNAL);
    if (sent <= 0) throw Lost{"socketProgress: Connection closed by remote peer"};
    at += static_cast<std::size_t>(sent);
  }
}

void receive_all(int socket, void* data, std::size_t size) {
  if (::recv(socket, data, size, MSG_WAITALL) != static_cast<ssize_t>(size))
    throw Lost{"socketProgress: Connection closed by remote peer"};
}

/// All ranks of a node are in one process, here.
std::uint64_t process_id() {
  static const std::uint64_t id = [] {
    std::uint64_t random = 0;
    static_cast<void>(!::getrandom(&random, sizeof random, 0));
    return random;
  }();
  return id;
}

/// One end of a pair between two ranks of this process in the communicator that met at `root`. Who comes
/// first leaves the other's.
int local_end(const sockaddr_in& root, int rank, int peer) {
  using Pair = std::tuple<std::uint32_t, in_port_t, int, int>;
  static std::mutex mutex;
  static std::map<Pair, int> left;
  const auto [low, high] = std::minmax(rank, peer);
  const Pair pair{root.sin_addr.s_addr, root.sin_port, low, high};
  const std::lock_guard lock(mutex);
  if (const auto found = left.find(pair); found != left.end()) {
    const int end = found->second;
    left.erase(found);
    return end;
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Lost{"no local sockets"};
  left[pair] = ends[1];
  return ends[0];
}

}  // namespace

// --- meeting and connecting -------------------------------------------------------------------------------

void Wire::serve_root(int listener) {
  std::map<int, int> sockets;
  std::vector<Place> table;
  try {
    do {
      const int socket = accept_one(listener);
      Hello hello;
      receive_all(socket, &hello, sizeof hello);
      table.resize(static_cast<std::size_t>(hello.ranks));
      table.at(static_cast<std::size_t>(hello.rank)) = hello.place;
      sockets[hello.rank] = socket;
    } while (sockets.size() < table.size());
    for (const auto& [rank, socket] : sockets) {
      send_all(socket, table.data(), table.size() * sizeof table[0]);
      ::close(socket);
    }
  } catch (const Lost&) {  // a rank is gone: the others wait for ever, as they would
  }
  ::close(listener);
}

sockaddr_in open_root() {
  sockaddr_in address = at_address(nics().front().address);
  const int listener = listen_anywhere(address);
  std::thread(Wire::serve_root, listener).detach();
  return address;
}

Wire::Wire(const sockaddr_in& root, int ranks, int rank, int device)
    : root_(root),
      ranks_(ranks),
      rank_(rank),
      places_(static_cast<std::size_t>(ranks)),
      sockets_(static_cast<std::size_t>(ranks)) {
  sockaddr_in listens = at_address({htonl(INADDR_ANY)});
  const int listener = listen_anywhere(listens);
  Hello hello{ranks, rank, {device, process_id(), listens.sin_port, 0, {}}};
  for (const Nic& nic : nics())
    hello.place.addresses.at(hello.place.nics++) = nic.address;
  const int meeting = connect_to(root, nics().front().address);
  send_all(meeting, &hello, sizeof hello);
  receive_all(meeting, places_.data(), places_.size() * sizeof places_[0]);
  ::close(meeting);
  const auto fewest = std::min_element(places_.begin(), places_.end(),
                                       [](const Place& a, const Place& b) { return a.nics < b.nics; });
  rails_ = fewest->nics;
  connect_all(listener);
  ::close(listener);
  make_rings();
}

/// Each to those of higher ranks, over every rail.
void Wire::connect_all(int listener) {
  struct Greeting {
    int rank;
    std::uint32_t rail;
  };
  std::size_t expected = 0;
  for (int other = 0; other < ranks_; ++other) {
    const Place& place = places_.at(static_cast<std::size_t>(other));
    auto& sockets = sockets_.at(static_cast<std::size_t>(other));
    if (other == rank_) continue;
    if (is_local(other)) {
      sockets.push_back(local_end(root_, rank_, other));
      continue;
    }
    sockets.resize(rails_, -1);
    if (other < rank_) expected += rails_;
    for (std::uint32_t rail = 0; other > rank_ && rail < rails_; ++rail) {
      sockaddr_in there = at_address(place.addresses.at(rail));
      there.sin_port = place.port;
      sockets[rail] = connect_to(there, nics().at(rail).address);
      const Greeting greeting{rank_, rail};
      send_all(sockets[rail], &greeting, sizeof greeting);
    }
  }
  for (std::size_t i = 0; i < expected; ++i) {
    const int socket = accept_one(listener);
    Greeting greeting{};
    receive_all(socket, &greeting, sizeof greeting);
    sockets_.at(static_cast<std::size_t>(greeting.rank)).at(greeting.rail) = socket;
  }
  const int on = 1;
  for (const auto& sockets : sockets_)
    for (const int socket : sockets) {
      ::fcntl(socket, F_SETFL, O_NONBLOCK);
      static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    }
}

/// As many as the node with most GPUs has; ring k leaves each node from its GPU k, and so enters the next one
/// over the NIC of the GPU that it left from.
void Wire::make_rings() {
  std::vector<Ring> nodes;
  std::map<std::uint64_t, std::size_t> node_of;
  for (std::uint32_t rank = 0; rank < places_.size(); ++rank) {
    const auto [node, is_new] = node_of.try_emplace(places_[rank].process, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[node->second].push_back(rank);
  }
  std::size_t most = 1;
  for (const Ring& node : nodes)
    most = std::max(most, node.size());
  for (std::size_t k = 0; k < most; ++k) {
    Ring& ring = rings_.emplace_back();
    for (const Ring& node : nodes)
      for (std::size_t i = 1; i <= node.size(); ++i)
        ring.push_back(node[(k + i) % node.size()]);
  }
}

bool Wire::is_local(int rank) const {
  return places_.at(static_cast<std::size_t>(rank)).process == process_id();
}

int Wire::socket_for(int peer, int sender) const {
  const auto& sockets = sockets_.at(static_cast<std::size_t>(peer));
  const auto device = static_cast<std::size_t>(places_.at(static_cast<std::size_t>(sender)).device);
  return sockets.size() == 1 ? sockets.front() : sockets.at(device % rails_);
}

std::vector<std::string> Wire::ways() const {
  std::vector<std::string> ways;
  const int device = places_.at(static_cast<std::size_t>(rank_)).device;
  for (std::size_t k = 0; k < rings_.size(); ++k) {
    const auto here = std::find(rings_[k].begin(), rings_[k].end(), static_cast<std::uint32_t>(rank_));
    const auto next = static_cast<int>(std::next(here) == rings_[k].end() ? rings_[k].front() : here[1]);
    if (next == rank_) continue;
    const std::string line = fmt::format("Channel {:02}/0 : {}[{}] -> {}[{}]", k, rank_, device, next,
                                         places_.at(static_cast<std::size_t>(next)).device);
    if (is_local(next))
      ways.push_back(line + " via P2P/fake");
    else
      ways.push_back(
          fmt::format("{} [send] via NET/Socket/{}", line, static_cast<std::size_t>(device) % rails_));
  }
  return ways;
}

// --- moving -----------------------------------------------------------------------------------------------

namespace {

/// What is left to do over one socket.
struct Traffic {
  std::deque<Wire::Out> outs;
  std::deque<Wire::In> ins;
};

/// Moves what goes at once. True when anything did.
bool move(int socket, Traffic& traffic, long slow) {
  bool moved = false;
  while (!traffic.outs.empty()) {
    auto& out = traffic.outs.front();
    const auto sent = ::send(socket, out.data, std::min(out.size, kChunk), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) throw Lost{"socketProgress: Connection closed by remote peer"};
    if (slow > 0)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(static_cast<double>(sent) / static_cast<double>(slow)));
    moved = true;
    out.data += sent;
    out.size -= static_cast<std::size_t>(sent);
    if (out.size == 0) traffic.outs.pop_front();
  }
  while (!traffic.ins.empty()) {
    auto& in = traffic.ins.front();
    const auto taken = ::recv(socket, in.data, in.size, 0);
    if (taken < 0 && errno == EAGAIN) break;
    if (taken <= 0) throw Lost{"socketProgress: Connection closed by remote peer"};
    moved = true;
    in.data += taken;
    in.size -= static_cast<std::size_t>(taken);
    if (in.size == 0) traffic.ins.pop_front();
  }
  return moved;
}

}  // namespace

void Wire::exchange(const std::vector<Out>& outs, const std::vector<In>& ins) {
  static const long slow = fault_number("slow", 0);
  std::map<int, Traffic> by_socket;
  Traffic self;
  for (const auto& out : outs)
    if (out.size > 0) (out.to == rank_ ? self : by_socket[socket_for(out.to, rank_)]).outs.push_back(out);
  for (const auto& in : ins)
    if (in.size > 0) (in.from == rank_ ? self : by_socket[socket_for(in.from, in.from)]).ins.push_back(in);
  for (; !self.outs.empty() && !self.ins.empty(); self.outs.pop_front(), self.ins.pop_front())
    std::memcpy(self.ins.front().data, self.outs.front().data, self.outs.front().size);
  while (!by_socket.empty()) {
    bool moved = false;
    std::vector<pollfd> polls;
    for (auto one = by_socket.begin(); one != by_socket.end();) {
      const int socket = one->first;
      moved = move(socket, one->second, slow) || moved;
      const short wanted = static_cast<short>((one->second.outs.empty() ? 0 : POLLOUT) |
                                              (one->second.ins.empty() ? 0 : POLLIN));
      one = wanted == 0 ? by_socket.erase(one) : std::next(one);
      if (wanted != 0) polls.push_back({socket, wanted, 0});
    }
    if (!moved && !polls.empty()) ::poll(polls.data(), polls.size(), -1);
  }
}

void Wire::run_round(Type type, const Round& round, std::vector<std::byte>& work) {
  std::vector<Out> outs;
  std::vector<In> ins;
  std::vector<std::vector<std::byte>> staged;
  staged.reserve(round.receives.size());
  for (const auto& send : round.sends)
    outs.push_back({static_cast<int>(send.to), &work[send.piece.offset], send.piece.length});
  for (const auto& receive : round.receives) {
    auto* place = &work[receive.piece.offset];
    if (receive.store == Store::add) place = staged.emplace_back(receive.piece.length).data();
    ins.push_back({static_cast<int>(receive.from), place, receive.piece.length});
  }
  exchange(outs, ins);
  auto arrived = staged.begin();
  for (const auto& receive : round.receives)
    if (receive.store == Store::add)
      add_elements(type, *arrived++, std::span(work).subspan(receive.piece.offset, receive.piece.length));
}

Piece Wire::part_of(std::size_t ring, std::uint64_t block, std::uint64_t size, Type type) const {
  const std::uint64_t width = size_of(type), elements = size / width;
  const std::uint64_t begin = elements * ring / rings_.size(), end = elements * (ring + 1) / rings_.size();
  return {block * size + begin * width, (end - begin) * width};
}

/// Each ring has its part of every block, and all go in step.
void Wire::in_rings(Op op, Type type, std::vector<std::byte>& work) {
  const auto ranks = static_cast<std::uint32_t>(ranks_);
  const std::uint64_t width = size_of(type), block = work.size() / ranks;
  std::vector<std::vector<Round>> all;  // by ring, in blocks of one element and positions in the ring
  for (const Ring& ring : rings_) {
    const auto here = std::find(ring.begin(), ring.end(), static_cast<std::uint32_t>(rank_));
    auto rounds =
        schedule(op, "ring", ranks, static_cast<std::uint32_t>(here - ring.begin()), 0, ranks * width, type);
    if (!rounds) throw Lost{describe(rounds.error())};
    all.push_back(std::move(*rounds));
  }
  for (std::size_t step = 0; step < all.front().size(); ++step) {
    Round together;
    for (std::size_t k = 0; k < rings_.size(); ++k) {
      const Ring& ring = rings_[k];
      const auto true_piece = [&](const Piece& piece) {
        return part_of(k, ring.at(piece.offset / width), block, type);
      };
      for (const auto& send : all[k][step].sends)
        together.sends.push_back({ring.at(send.to), true_piece(send.piece)});
      for (const auto& receive : all[k][step].receives)
        together.receives.push_back({ring.at(receive.from), true_piece(receive.piece), receive.store});
    }
    run_round(type, together, work);
  }
}

void Wire::collective(Op op, Type type, std::uint32_t root, std::vector<std::byte>& work) {
  if (op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter)
    return in_rings(op, type, work);
  const auto rounds = schedule(op, "", static_cast<std::uint32_t>(ranks_), static_cast<std::uint32_t>(rank_),
                               root, work.size(), type);
  if (!rounds) throw Lost{describe(rounds.error())};
  for (const auto& round : *rounds)
    run_round(type, round, work);
}

}  // namespace netcheck::fakes
