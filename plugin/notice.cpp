#include "notice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "system/descriptor.h"

namespace netcheck::plugin {

namespace {

std::string marker_path(const std::string& run_directory, std::uint32_t job) {
  return notice_path(run_directory, job) + ".shown";
}

/// At most `limit` bytes of what is there; nullopt on an error.
std::optional<std::string> read_up_to(int fd, std::size_t limit) {
  std::string text(limit, '\0');
  std::size_t got = 0;
  while (got < limit) {
    const ssize_t more = ::read(fd, text.data() + got, limit - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return std::nullopt;
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  text.resize(got);
  return text;
}

std::string boot_id() {
  constexpr std::size_t kUuidBytes = 36;
  const system::Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  return file ? read_up_to(file.get(), kUuidBytes).value_or("") : "";
}

/// What is wrong with the file itself; "" when it may be read.
/// It was written by who reads it, root; nobody else can have put it there.
std::string check_file(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (status.st_uid != ::geteuid()) return "it belongs to somebody else";
  if (status.st_size < 0 || static_cast<std::size_t>(status.st_size) > kNoticeMaxBytes)
    return "it is too large";
  return {};
}

}  // namespace

bool belongs_to(const Notice& notice, const Step& step, const std::string& boot) {
  return notice.run.job == step.job && (!step.restart || *step.restart == notice.run.restart) &&
         !boot.empty() && notice.boot_id == boot;
}

std::optional<Notice> load_notice(const std::string& run_directory, const Step& step, std::string& why_not) {
  const std::string path = notice_path(run_directory, step.job);
  const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    if (errno != ENOENT) why_not = fmt::format("{}: {}", path, std::strerror(errno));
    return std::nullopt;
  }
  if (const std::string wrong = check_file(file.get()); !wrong.empty()) {
    why_not = fmt::format("{}: {}", path, wrong);
    return std::nullopt;
  }
  const auto text = read_up_to(file.get(), kNoticeMaxBytes + 1);
  auto notice = text ? read_notice(*text) : fail("read", "the notice", std::strerror(errno));
  if (!notice) {
    why_not = fmt::format("{}: {}", path, describe(notice.error()));
    return std::nullopt;
  }
  if (!belongs_to(*notice, step, boot_id())) {
    why_not = fmt::format("{}: it is of another run of the job", path);
    return std::nullopt;
  }
  return std::move(*notice);
}

bool claim_printing(const std::string& run_directory, std::uint32_t job) {
  constexpr mode_t kRootOnly = 0600;
  const system::Descriptor marker(::open(marker_path(run_directory, job).c_str(),
                                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kRootOnly));
  // On a full disk the line twice is better than no line at all.
  return marker || errno != EEXIST;
}

void remove_notice(const std::string& run_directory, std::uint32_t job) {
  ::unlink(notice_path(run_directory, job).c_str());
  ::unlink(marker_path(run_directory, job).c_str());
}

std::string not_applied(const Notice& notice, const char* const* environment) {
  constexpr std::size_t kMostNames = 8;  // of a line that people read
  const auto fabric = notice.environment.find("NETCHECK_FABRIC");
  if (fabric == notice.environment.end() || fabric->second != "nccl" || environment == nullptr) return {};
  std::string names;
  std::size_t count = 0;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const auto name = variable.substr(0, variable.find('='));
    if (!name.starts_with("NCCL_") || ++count > kMostNames) continue;
    names += (names.empty() ? "" : ", ") + printable(name, 64);
  }
  if (count > kMostNames) names += ", …";
  return names;
}

}  // namespace netcheck::plugin
