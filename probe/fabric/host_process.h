// One running `netcheck fabric NAME`, seen from the probe: its socket, its words on stderr, its end. Used by
// ChildFabric alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fabric/child.h"
#include "fabric/codec.h"
#include "system/frames.h"
#include "system/process.h"

namespace netcheck::fabric {

class HostProcess {
 public:
  using OnReply = std::function<void(Reply)>;
  /// Once: how it ended, with what it last said ("signal 11 (Segmentation fault): …").
  using OnEnd = std::function<void(std::string how)>;

  [[nodiscard]] static Result<std::unique_ptr<HostProcess>> start(system::Loop& loop,
                                                                  const ChildCommand& command,
                                                                  OnReply on_reply, OnEnd on_end);
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;
  ~HostProcess();  ///< SIGKILL, and the bounded wait of Process when it still runs

  void send(const Request& request);
  /// Counts as a sign of life: from here on it owes us some.
  void expect_signs() { last_sign_ = system::now(); }
  /// Whether anything came within kSilence, or lies unread in the socket because this process was late.
  [[nodiscard]] bool lives() const;
  [[nodiscard]] Time last_sign() const { return last_sign_; }
  /// How it ended, once that is known.
  [[nodiscard]] const std::optional<std::string>& ended() const { return ended_; }
  /// SIGKILL to its group; hands over what is left to reap. Nothing is called back after this.
  [[nodiscard]] system::Process kill() noexcept;

 private:
  HostProcess(system::Loop& loop, OnReply on_reply, OnEnd on_end);
  void attach(system::Process process, system::Descriptor socket, system::Descriptor errors);
  void frame(const Bytes& bytes);
  void read_errors();
  void process_ended();
  void socket_closed(const std::string& why);
  void settle(Ns grace);
  void finish();
  void detach() noexcept;

  system::Loop& loop_;
  OnReply on_reply_;
  OnEnd on_end_;
  system::Process process_;
  std::unique_ptr<system::FrameSocket> socket_;
  int socket_number_ = -1;  // of socket_, to see whether something lies unread in it
  system::Descriptor errors_;
  std::string words_;           // the beginning of its stderr
  std::size_t words_read_ = 0;  // of its stderr, kept or not
  Time last_sign_{};
  bool closed_ = false;
  std::string closed_why_;
  std::optional<system::Loop::Timer> settling_;
  std::optional<std::string> ended_;
};

}  // namespace netcheck::fabric
