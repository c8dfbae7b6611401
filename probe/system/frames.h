// Length-prefixed frames over a local stream socket: probe and fabric child, probe and clerk. Non-blocking,
// bounded.
#pragma once

#include <functional>
#include <string>

#include "contract/units.h"
#include "system/descriptor.h"
#include "system/loop.h"

namespace netcheck::system {

/// Owns one end. 4-byte little-endian length, then that many bytes, at most `max_frame`.
class FrameSocket {
 public:
  using OnFrame = std::function<void(Bytes)>;
  using OnClose = std::function<void(std::string why)>;  ///< "" = orderly end. Called once; nothing after it
  FrameSocket(Loop& loop, Descriptor socket, std::size_t max_frame, OnFrame on_frame, OnClose on_close);
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;
  /// Queues; writes when the socket takes it. Beyond `max_frame` × 4 queued bytes the socket is closed.
  void send(const Bytes& frame);
  [[nodiscard]] std::size_t queued() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A connected pair of non-blocking, close-on-exec stream sockets.
[[nodiscard]] Result<std::pair<Descriptor, Descriptor>> socket_pair();

}  // namespace netcheck::system
