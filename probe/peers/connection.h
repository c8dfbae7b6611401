// One TCP connection between peers: length-prefixed frames, non-blocking, with a limit that grows once the
// other side has proved itself. Like system/FrameSocket, but for strangers: memory follows what has arrived,
// never what a length announces, and each callback may destroy its connection. As the probe user.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "contract/units.h"
#include "system/descriptor.h"
#include "system/loop.h"

namespace netcheck::peers {

/// 4-byte little-endian length, then that many bytes.
class Connection {
 public:
  using OnFrame = std::function<void(Bytes)>;
  using OnClose = std::function<void(std::string why)>;  ///< once; nothing after it

  /// `socket`: connected, non-blocking.
  Connection(system::Loop& loop, system::Descriptor socket, std::size_t max_frame);
  ~Connection();  ///< closes, after what the kernel has taken has been left to it
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Who hears of frames and of the end; may be set anew (from within a callback too).
  void listen(OnFrame on_frame, OnClose on_close);
  /// Longest frame that is read from now on.
  void allow(std::size_t max_frame);
  /// Queues, and writes at once what the socket takes. A queue beyond `max_queued` closes the connection.
  void send(const Bytes& frame);
  [[nodiscard]] std::size_t queued() const;
  [[nodiscard]] int fd() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace netcheck::peers
