// One rail: a UCX context and worker on one network device, and the connections that start there. Used by the
// module; in the fabric child, as the probe user.
//
// Nothing here is ever torn down: a library that hangs in its clean-up is why this process is thrown away
// instead.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "fabric/arrivals.h"
#include "fabric/meter.h"

namespace netcheck::fabric::ucx {

/// The far end of a connection: one lane of one node. Without an endpoint it cannot be reached.
struct Peer {
  std::uint32_t node = 0;  ///< index into the job's NodeList, for messages
  ucp_ep_h endpoint = nullptr;
  ucs_status_t error = UCS_OK;
};

struct Post;

/// Who posts sends and receives, and is told of their end.
class Poster {
 public:
  Poster() = default;
  Poster(const Poster&) = delete;
  Poster& operator=(const Poster&) = delete;
  virtual ~Poster() = default;
  /// From within Lane::progress(), or already from within send() and receive().
  virtual void completed(Post& post, ucs_status_t status, std::size_t bytes) = 0;
};

/// One send or receive. Its address must hold until it completes.
struct Post {
  Poster* poster = nullptr;
  void* request = nullptr;  ///< UCX's, while under way and not completed at once
  std::byte* buffer = nullptr;
  std::size_t length = 0;
  Peer* peer = nullptr;  ///< of a send
  bool sending = false;
  // The poster's own:
  std::uint64_t step = 0;
  std::uint8_t kind = 0;
  std::int64_t target = -1;
};

class Lane {
 public:
  /// `device`: "eth0" is spoken to over TCP, "mlx5_0:1" (with a port) over RDMA. Takes 10–30 ms. A device
  /// that is there but has lost its link gives a lane that is down: a cable pulled between two rounds is
  /// something to be measured, not a reason not to.
  [[nodiscard]] static Result<std::unique_ptr<Lane>> open(const std::string& device);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() = default;

  [[nodiscard]] const std::string& device() const { return device_; }
  [[nodiscard]] std::string transport() const { return (rdma_ ? "rdma/" : "tcp/") + device_; }
  /// Nothing will ever move here: the device had no link when it was opened.
  [[nodiscard]] bool down() const { return worker_ == nullptr; }
  /// Empty when down.
  [[nodiscard]] const Bytes& address() const { return address_; }
  /// What its device and this process have moved until now; a message counts at its end.
  [[nodiscard]] Load load() const {
    return {meter_ ? meter_->read() : std::nullopt, meter_ ? meter_->queued() : std::nullopt, own_};
  }
  /// What has come in on this node until now, where the device may have counted too little of it.
  [[nodiscard]] std::optional<Arrivals> arrived() const {
    return meter_ && meter_->of_interfaces() ? arrivals() : std::nullopt;
  }
  /// Messages are cut into pieces of this size.
  [[nodiscard]] std::size_t piece() const;

  /// Connects where there is no connection, without waiting. The peer stays valid for ever; one that cannot
  /// be connected has an error.
  [[nodiscard]] Peer& reach(const Bytes& address, std::uint32_t node);
  void send(Peer& peer, Post& post, std::uint64_t tag);
  void receive(Post& post, std::uint64_t tag);
  void cancel(Post& post);
  /// A send or a receive has ended with so many bytes.
  void gave(std::size_t bytes) { own_.out += bytes; }
  void took(std::size_t bytes) { own_.in += bytes; }

  /// One turn of UCX. True when anything moved.
  bool progress();
  [[nodiscard]] bool arm();
  /// −1 when down.
  [[nodiscard]] int event_descriptor() const { return event_descriptor_; }
  /// Connections that broke since the last call; each is closed by then.
  [[nodiscard]] std::vector<Peer*> take_broken();

 private:
  Lane() = default;
  [[nodiscard]] ucs_status_t start();
  static void broke(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  std::string device_;
  std::optional<Meter> meter_;
  Octets own_;
  bool rdma_ = false;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_descriptor_ = -1;
  Bytes address_;
  std::map<std::pair<std::uint32_t, Bytes>, std::unique_ptr<Peer>> peers_;  // by node and address
};

/// "1.13.1". Error: a UCX too old for what is used here, or of another major version.
[[nodiscard]] Result<std::string> library_version();

}  // namespace netcheck::fabric::ucx
