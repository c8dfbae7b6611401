#include "topology/apart.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "system/descriptor.h"
#include "system/loop.h"

namespace netcheck::topology {
namespace {

constexpr std::size_t kMostBytes = 1U << 20;  // NVML's view of 16 GPUs has 6 KiB

/// To the end of what the process says; nothing where that does not come in time.
Bytes read_until(int pipe, Time deadline) {
  Bytes text;
  std::array<std::byte, 16384> part;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  while (text.size() <= kMostBytes) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system::now());
    if (left.count() <= 0) return {};
    pollfd ready{pipe, POLLIN, 0};
    const int events = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) return {};
    const ssize_t got = ::read(pipe, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) return text;
    text.insert(text.end(), part.begin(), part.begin() + got);
  }
  return {};
}

/// Nothing but the pipe, as descriptor 3: whoever waits for the end of another must not wait for this
/// process.
int keep_alone(int pipe) {
  constexpr int kFirst = 3;
  if (pipe != kFirst) ::dup2(pipe, kFirst);
  ::close_range(kFirst + 1, UINT_MAX, 0);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);  // what a library has to say is nobody's
  ::dup2(nowhere, STDOUT_FILENO);
  return kFirst;
}

[[noreturn]] void answer(int pipe, const std::function<std::optional<Json>()>& question) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pipe = keep_alone(pipe);
  if (::chdir("/") != 0)
    ::_exit(1);  // UCX reads a ucx.conf from the working directory, which may be anybody's
  const auto said = question();
  if (!said) ::_exit(1);
  const Bytes frame = to_cbor(*said);
  std::size_t at = 0;
  while (at < frame.size()) {
    const ssize_t wrote = ::write(pipe, frame.data() + at, frame.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    at += static_cast<std::size_t>(wrote);
  }
  ::_exit(0);  // no destructors of libraries
}

/// Killed, and waited for a little: what hangs in the kernel cannot be reaped, and must not be waited for.
void end_process(pid_t process) {
  ::kill(process, SIGKILL);
  for (int tries = 0; tries < 50; ++tries) {
    if (::waitpid(process, nullptr, WNOHANG) != 0) return;
    ::usleep(1'000);
  }
}

}  // namespace

Apart ask_apart(Ns patience, const std::function<std::optional<Json>()>& question) {
  const Time deadline = system::now() + patience;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const system::Descriptor read_end(ends[0]);
  system::Descriptor write_end(ends[1]);
  const pid_t process = ::fork();
  if (process == 0) answer(write_end.get(), question);
  write_end.reset();
  if (process < 0) return {};
  Apart said{.frame = read_until(read_end.get(), deadline)};
  end_process(process);
  said.late = said.frame.empty() && system::now() >= deadline;
  return said;
}

}  // namespace netcheck::topology
