// A short program run to its end, its output collected, everything bounded: scontrol, squeue.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "system/loop.h"
#include "system/process.h"

namespace netcheck::system {

namespace {

/// Reads one pipe into a string until it ends; what is beyond `limit` is read and thrown away.
class Collector {
 public:
  Collector(Loop& loop, std::size_t limit) : loop_(loop), limit_(limit) {}
  ~Collector() { close(); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// The end that the child writes to.
  [[nodiscard]] Result<Descriptor> open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail("open", "a pipe", std::strerror(errno));
    read_.reset(ends[0]);
    ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
    loop_.watch(read_.get(), Loop::kRead, [this](std::uint8_t) { take(); });
    return Descriptor(ends[1]);
  }
  void take() {
    constexpr std::size_t kChunk = 16'384;
    std::array<char, kChunk> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
    for (;;) {
      const ssize_t got = read_ ? ::read(read_.get(), chunk.data(), chunk.size()) : 0;
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) return close();
      const std::size_t room = limit_ - std::min(limit_, text.size());
      text.append(chunk.data(), std::min(room, static_cast<std::size_t>(got)));
      if (text.size() >= limit_) return;  // a flood must not keep the loop from its deadline
    }
  }

  std::string text;

 private:
  void close() {
    if (read_) loop_.forget(read_.get());
    read_.reset();
  }
  Loop& loop_;
  std::size_t limit_;
  Descriptor read_;
};

}  // namespace

Result<Finished> run_to_end(Launch launch, Time deadline, std::size_t max_output) {
  Loop loop;
  Collector output(loop, max_output);
  Collector errors(loop, max_output);
  auto out = output.open();
  auto err = errors.open();
  if (!out) return tl::unexpected(out.error());
  if (!err) return tl::unexpected(err.error());
  launch.descriptors.emplace_back(out->get(), STDOUT_FILENO);
  launch.descriptors.emplace_back(err->get(), STDERR_FILENO);
  launch.start_patience = std::min(launch.start_patience, std::max(deadline - now(), Ns::zero()));
  auto process = Process::start(launch);
  out->reset();
  err->reset();
  if (!process) return tl::unexpected(process.error());
  // Its end, not the pipes' end, is waited for: an orphan may hold them open.
  constexpr auto kLookInterval = std::chrono::milliseconds(20);  // where there is no pidfd to wake us
  if (process->pidfd() >= 0)
    loop.watch(process->pidfd(), Loop::kRead, [&loop](std::uint8_t) { loop.stop(); });
  while (!process->poll() && now() < deadline)
    loop.turn(std::min(deadline, now() + kLookInterval));
  if (process->pidfd() >= 0) loop.forget(process->pidfd());
  if (!process->poll()) return fail("run", launch.program, "it did not end in time and was killed");
  output.take();
  errors.take();
  return Finished{*process->poll(), std::move(output.text), std::move(errors.text)};
}

}  // namespace netcheck::system
