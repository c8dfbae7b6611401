// Starting the fabric child, hearing it, noticing its end.
#include "fabric/host_process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace netcheck::fabric {

namespace {

constexpr int kSocketNumber = 3;                           // in the child, as child.h says
constexpr std::size_t kWordsKept = std::size_t{2} * 1024;  // of stderr: a stack of library messages
/// What is read of stderr before the pipe is closed: a child that floods it then writes to nobody, and costs
/// nobody anything.
constexpr std::size_t kWordsRead = std::size_t{64} * 1024;
constexpr std::size_t kWordsTold = 200;  // of stderr, in the detail of a failure
/// A process's end and its socket's are two events; this long one waits for the other, for last frames and
/// for the exit status.
constexpr Ns kGrace = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<HostProcess>> HostProcess::start(system::Loop& loop, const ChildCommand& command,
                                                        OnReply on_reply, OnEnd on_end) {
  auto sockets = system::socket_pair();
  if (!sockets) return tl::unexpected(sockets.error());
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return fail("open", "a pipe", std::strerror(errno));
  system::Descriptor errors(pipe_ends[0]);
  const system::Descriptor child_errors(pipe_ends[1]);

  system::Launch launch;
  launch.program = command.program;
  launch.arguments = {"fabric", command.name, "--module-directory", command.module_directory};
  launch.descriptors = {{sockets->second.get(), kSocketNumber}, {child_errors.get(), STDERR_FILENO}};
  auto process = system::Process::start(launch);
  if (!process) return tl::unexpected(process.error());
  std::unique_ptr<HostProcess> host(new HostProcess(loop, std::move(on_reply), std::move(on_end)));
  host->attach(std::move(*process), std::move(sockets->first), std::move(errors));
  return host;
}

HostProcess::HostProcess(system::Loop& loop, OnReply on_reply, OnEnd on_end)
    : loop_(loop), on_reply_(std::move(on_reply)), on_end_(std::move(on_end)), last_sign_(system::now()) {}

void HostProcess::attach(system::Process process, system::Descriptor socket, system::Descriptor errors) {
  process_ = std::move(process);
  socket_number_ = socket.get();
  socket_ = std::make_unique<system::FrameSocket>(
      loop_, std::move(socket), kMaxFrame, [this](const Bytes& bytes) { frame(bytes); },
      [this](const std::string& why) { socket_closed(why); });
  errors_ = std::move(errors);
  loop_.watch(errors_.get(), system::Loop::kRead, [this](std::uint8_t) { read_errors(); });
  if (process_.pidfd() >= 0)
    loop_.watch(process_.pidfd(), system::Loop::kRead, [this](std::uint8_t) { process_ended(); });
}

HostProcess::~HostProcess() {
  detach();
}

void HostProcess::detach() noexcept {
  if (settling_) loop_.cancel(*settling_);
  settling_.reset();
  if (errors_) loop_.forget(errors_.get());
  errors_.reset();
  if (process_.pidfd() >= 0) loop_.forget(process_.pidfd());
  socket_.reset();
}

void HostProcess::send(const Request& request) {
  if (socket_) socket_->send(encode(request));
}

bool HostProcess::lives() const {
  if (ended_ || closed_) return false;
  int unread = 0;
  if (::ioctl(socket_number_, FIONREAD, &unread) == 0 && unread > 0) return true;
  return system::now() - last_sign_ < kSilence;
}

system::Process HostProcess::kill() noexcept {
  detach();
  process_.kill_group();
  return std::move(process_);
}

void HostProcess::frame(const Bytes& bytes) {
  if (ended_) return;
  last_sign_ = system::now();
  auto reply = decode_reply(bytes);
  if (reply) return on_reply_(std::move(*reply));
  closed_why_ = "sent nonsense: " + reply.error().reason;
  process_.kill_group();
  finish();
}

void HostProcess::read_errors() {
  std::array<char, 4096> chunk{};
  const ssize_t got = ::read(errors_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    const auto count = static_cast<std::size_t>(got);
    words_.append(chunk.data(), std::min(count, kWordsKept - words_.size()));
    words_read_ += count;
    if (words_read_ < kWordsRead) return;
  }
  loop_.forget(errors_.get());
  errors_.reset();
}

void HostProcess::process_ended() {
  if (!process_.poll()) return;
  loop_.forget(process_.pidfd());
  if (closed_) return finish();
  settle(kGrace);
}

void HostProcess::socket_closed(const std::string& why) {
  closed_ = true;
  closed_why_ = "closed its socket" + (why.empty() ? "" : ": " + why);
  if (process_.poll()) return finish();
  settle(kGrace);
}

/// Waits for the other half of the end, then takes what there is.
void HostProcess::settle(Ns grace) {
  if (settling_ || ended_) return;
  settling_ = loop_.at(system::now() + grace, [this] {
    settling_.reset();
    finish();
  });
}

void HostProcess::finish() {
  if (ended_) return;
  if (settling_) loop_.cancel(*settling_);
  settling_.reset();
  if (errors_) read_errors();
  const auto status = process_.poll();
  if (!status) process_.kill_group();
  // A status that our own SIGKILL made says nothing; why we sent it does.
  std::string how = status && closed_why_.find("nonsense") == std::string::npos
                        ? system::describe_status(*status)
                        : closed_why_;
  const std::string words = printable(words_, kWordsTold);
  if (!words.empty()) how += ": " + words;
  ended_ = how;
  on_end_(std::move(how));
}

}  // namespace netcheck::fabric
