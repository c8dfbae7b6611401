// flock(2) and a file of pids. As root.
#include "prolog/guard.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

#include "system/process.h"

namespace netcheck::prolog {
namespace {

constexpr const char* kLockFile = "lock";
constexpr const char* kRemainsFile = "stuck";
constexpr std::size_t kMaxRemainsBytes = 64u << 10;  // a thousand of them

constexpr std::size_t kMaxHolderBytes = 80;  // ten digits and a host's name (HOST_NAME_MAX: 64)

// "17 n3\n".
std::optional<Holder> read_holder(std::string_view text) {
  Holder holder;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), holder.job);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  text = text.substr(0, text.find('\n'));
  if (text.starts_with(' ')) holder.node = printable(text.substr(1), kMaxHolderBytes);
  return holder;
}

std::optional<Holder> holder_of(int fd) {
  std::array<char, kMaxHolderBytes> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  return got <= 0 ? std::nullopt : read_holder({text.data(), static_cast<std::size_t>(got)});
}

Result<void> write_remains(const Folder& folder, const Remains& remains) {
  std::string text;
  for (const auto& [pid, start_time] : remains)
    text += fmt::format("{} {}\n", pid, start_time);
  return folder.write(kRemainsFile, text, 0600, {::geteuid(), ::getegid()});
}

}  // namespace

Result<Lock> try_lock(const Folder& folder, const Holder& self) {
  Lock lock;
  auto file = folder.open_file(kLockFile);
  if (!file) return tl::unexpected(file.error());
  lock.file = std::move(*file);
  lock.taken = ::flock(lock.file.get(), LOCK_EX | LOCK_NB) == 0;
  if (!lock.taken) {
    lock.holder = holder_of(lock.file.get());
    return lock;
  }
  // Who holds it is a courtesy to the other's log: a full disk does not matter here.
  const std::string text = fmt::format("{} {}\n", self.job, self.node);
  if (::ftruncate(lock.file.get(), 0) == 0)
    static_cast<void>(!::pwrite(lock.file.get(), text.data(), text.size(), 0));
  return lock;
}

std::optional<Holder> last_holder(const Folder& folder) {
  const auto text = folder.read(kLockFile, kMaxHolderBytes);
  return text ? read_holder(*text) : std::nullopt;
}

std::string shared_directory(const std::string& path, const std::string& other) {
  return fmt::format("run_directory {} is that of {} as well: each node needs its own, best on a tmpfs", path,
                     other);
}

Remains living_remains(const Folder& folder) {
  const auto text = folder.read(kRemainsFile, kMaxRemainsBytes);
  if (!text) return {};
  Remains all, living;
  std::istringstream lines(*text);
  for (std::pair<pid_t, std::uint64_t> process; lines >> process.first >> process.second;) {
    all.push_back(process);
    // The start time tells it from a later process with the same pid.
    if (system::start_time_of(process.first) == process.second) living.push_back(process);
  }
  if (living.empty())
    folder.remove(kRemainsFile);
  else if (living.size() != all.size())
    static_cast<void>(write_remains(folder, living));  // tried again next time
  return living;
}

Result<void> remember(const Folder& folder, const Remains& remains) {
  Remains all = living_remains(folder);
  all.insert(all.end(), remains.begin(), remains.end());
  return write_remains(folder, all);
}

}  // namespace netcheck::prolog
