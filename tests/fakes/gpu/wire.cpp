#include "wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <span>
#include <thread>

#include "faults.h"
#include "measure/pattern.h"

namespace netcheck::fakes {

namespace {

constexpr std::size_t kChunk = 64 * 1024;

struct Hello {
  int ranks, rank;
  sockaddr_in listens;
};

const sockaddr* plain(const sockaddr_in* address) {
  return reinterpret_cast<const sockaddr*>(address);
}

struct Interface {
  std::string name = "lo";
  in_addr address{htonl(INADDR_LOOPBACK)};
};

Interface choose_interface() {
  const char* wanted = std::getenv("NCCL_SOCKET_IFNAME");
  Interface chosen;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return chosen;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0)
      continue;
    if (wanted != nullptr ? std::strncmp(one->ifa_name, wanted, std::strlen(wanted)) != 0
                          : (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    chosen = {one->ifa_name, address.sin_addr};
    break;
  }
  ::freeifaddrs(all);
  return chosen;
}

int listen_anywhere(sockaddr_in& address) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address = own_address();
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

int connect_to(const sockaddr_in& address) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // From the interface that was chosen, as NCCL does: that is the address the other side knows.
  sockaddr_in from = own_address();
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

void serve_root(int listener) {
  std::map<int, int> sockets;
  std::vector<sockaddr_in> table;
  try {
    do {
      const int socket = accept_one(listener);
      Hello hello{};
      receive_all(socket, &hello, sizeof hello);
      table.resize(static_cast<std::size_t>(hello.ranks));
      table.at(static_cast<std::size_t>(hello.rank)) = hello.listens;
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

}  // namespace

sockaddr_in own_address() {
  static const Interface chosen = choose_interface();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = chosen.address;
  return address;
}

std::string interface_name() {
  return choose_interface().name;
}

sockaddr_in open_root() {
  sockaddr_in address{};
  const int listener = listen_anywhere(address);
  std::thread(serve_root, listener).detach();
  return address;
}

Wire::Wire(const sockaddr_in& root, int ranks, int rank)
    : ranks_(ranks), rank_(rank), sockets_(static_cast<std::size_t>(ranks), -1) {
  Hello hello{ranks, rank, {}};
  const int listener = listen_anywhere(hello.listens);
  const int meeting = connect_to(root);
  send_all(meeting, &hello, sizeof hello);
  std::vector<sockaddr_in> table(static_cast<std::size_t>(ranks));
  receive_all(meeting, table.data(), table.size() * sizeof table[0]);
  ::close(meeting);
  for (int other = rank + 1; other < ranks; ++other) {
    auto& socket = sockets_.at(static_cast<std::size_t>(other));
    socket = connect_to(table.at(static_cast<std::size_t>(other)));
    send_all(socket, &rank, sizeof rank);
  }
  for (int i = 0; i < rank; ++i) {
    const int socket = accept_one(listener);
    int other = 0;
    receive_all(socket, &other, sizeof other);
    sockets_.at(static_cast<std::size_t>(other)) = socket;
  }
  ::close(listener);
  const int on = 1;
  for (const int socket : sockets_) {
    if (socket < 0) continue;
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
}

namespace {

/// What is left to do with one peer.
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
  std::map<int, Traffic> by_peer;
  for (const auto& out : outs)
    if (out.size > 0) by_peer[out.to].outs.push_back(out);
  for (const auto& in : ins)
    if (in.size > 0) by_peer[in.from].ins.push_back(in);
  if (const auto self = by_peer.find(rank_); self != by_peer.end()) {
    while (!self->second.outs.empty() && !self->second.ins.empty()) {
      std::memcpy(self->second.ins.front().data, self->second.outs.front().data,
                  self->second.outs.front().size);
      self->second.outs.pop_front();
      self->second.ins.pop_front();
    }
    by_peer.erase(self);
  }
  while (!by_peer.empty()) {
    bool moved = false;
    std::vector<pollfd> polls;
    for (auto one = by_peer.begin(); one != by_peer.end();) {
      const int socket = sockets_.at(static_cast<std::size_t>(one->first));
      moved = move(socket, one->second, slow) || moved;
      const short wanted = static_cast<short>((one->second.outs.empty() ? 0 : POLLOUT) |
                                              (one->second.ins.empty() ? 0 : POLLIN));
      one = wanted == 0 ? by_peer.erase(one) : std::next(one);
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

void Wire::collective(Op op, Type type, std::uint32_t root, std::vector<std::byte>& work) {
  const auto rounds = schedule(op, "", static_cast<std::uint32_t>(ranks_), static_cast<std::uint32_t>(rank_),
                               root, work.size(), type);
  if (!rounds) throw Lost{describe(rounds.error())};
  for (const auto& round : *rounds)
    run_round(type, round, work);
}

}  // namespace netcheck::fakes
