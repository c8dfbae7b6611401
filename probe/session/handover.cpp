// Reading the assignment, writing the report. Called by probe().
#include "session/handover.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "contract/wire.h"
#include "system/loop.h"

namespace netcheck::session {
namespace {

constexpr Ns kAssignmentPatience = std::chrono::seconds(1);
constexpr std::size_t kChunk = 64u << 10;  // a pipe's buffer

/// Waits until `fd` is ready for `events`; false when the deadline came first.
bool ready(int fd, short events, Time deadline) {
  pollfd waiting{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system::now()).count();
    if (left <= 0) return false;
    const int count = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

Result<std::string> read_to_end(int fd, std::size_t max_bytes, Time deadline) {
  std::string text;
  std::array<char, kChunk> chunk{};
  while (ready(fd, POLLIN, deadline)) {
    const ssize_t count = ::read(fd, chunk.data(), chunk.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR && errno != EAGAIN)
      return fail("read", "the assignment", std::strerror(errno));
    if (count > 0) text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes) return fail("read", "the assignment", "it is too large");
  }
  return fail("read", "the assignment", "it did not come to its end in time",
              "netcheck probe is started by netcheck prolog, not by hand");
}

Result<void> write_all(int fd, std::string_view text, Time deadline) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return fail("write", "the report", std::strerror(errno));
  while (!text.empty()) {
    if (!ready(fd, POLLOUT, deadline)) return fail("write", "the report", "the supervisor did not take it");
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN)
      return fail("write", "the report", std::strerror(errno));
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

std::string text_of(const Report& report) {
  return to_json(report).dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

Result<Assignment> read_assignment(const system::Descriptor& pipe) {
  auto text = read_to_end(pipe.get(), kAssignmentMaxBytes, system::now() + kAssignmentPatience);
  if (!text) return tl::unexpected(text.error());
  auto value = from_json_text(*text, "the assignment", kAssignmentMaxBytes);
  if (!value) return tl::unexpected(value.error());
  try {
    return assignment_from_json(*value);
  } catch (const Malformed& malformed) {
    return fail("read", "the assignment", malformed.reason);
  }
}

Result<void> write_report(system::Descriptor pipe, Report report, Time deadline) {
  std::string text = text_of(report);
  if (text.size() > kReportMaxBytes) {
    report.history.done.clear();
    for (judge::NodePlan& node : report.plan.nodes)
      node.hardware.reset();
    report.log.insert(report.log.begin(), "the samples were too many to report");
    if (report.log.size() > kMaxLogLines) report.log.pop_back();
    text = text_of(report);
  }
  return write_all(pipe.get(), text, deadline);
}

}  // namespace netcheck::session
