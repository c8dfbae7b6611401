// openat(2) and friends: every step relative to a descriptor that has been looked at. As root.
#include "prolog/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace netcheck::prolog {
namespace {

constexpr std::string_view kTemporary = ".new-";  // then the writer's pid, then the name
constexpr time_t kTemporaryLife = 60;             // seconds; a writer needs milliseconds

std::string reason_of(int error) {
  return std::strerror(error);
}

// What an administrator can do about it; "" where that depends.
std::string remedy_of(int error) {
  if (error == ENOSPC || error == EDQUOT) return "make room on that filesystem";
  if (error == EROFS) return "mount that filesystem for writing, or name another folder in netcheck.toml";
  return {};
}

bool only_ours(const struct stat& status) {
  return (status.st_uid == 0 || status.st_uid == ::geteuid()) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string remedy_for(const struct stat& status) {
  // As /tmp is, which is everybody's and has to stay so.
  return (status.st_mode & S_ISVTX) != 0 ? "put it into a folder of root's own" : "chown root and chmod go-w";
}

// `made`: why it could not be made, as errno; 0: it was, or was not to be.
Result<system::Descriptor> open_folder(int base, const std::string& name, const std::string& path, int made) {
  system::Descriptor folder(::openat(base, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && (errno == ELOOP || errno == ENOTDIR))
    return fail("use the folder", path, "it is a symbolic link or no folder", "remove it");
  const int error = errno == ENOENT && made != 0 ? made : errno;
  if (!folder) return fail("use the folder", path, reason_of(error), remedy_of(error));
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) return fail("use the folder", path, reason_of(errno));
  if (!only_ours(status)) return fail("use the folder", path, "it is not root's alone", remedy_for(status));
  return folder;
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

Result<std::string> read_all(int fd, const std::string& path, std::size_t max_bytes) {
  std::string content;
  std::array<char, 16'384> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail("read", path, reason_of(errno));
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
    if (content.size() > max_bytes)
      return fail("read", path, fmt::format("it is larger than {} bytes", max_bytes));
  }
}

}  // namespace

Result<Folder> Folder::open(const std::string& path, mode_t mode) {
  const std::filesystem::path whole(path);
  std::error_code ignored;  // what is missing shows when it is opened
  std::filesystem::create_directories(whole.parent_path(), ignored);
  const int made = ::mkdir(path.c_str(), mode) == 0 ? 0 : errno;
  auto folder = open_folder(AT_FDCWD, path, path, made);
  if (!folder) return tl::unexpected(folder.error());
  return Folder(std::move(*folder), path);
}

Result<Folder> Folder::existing(const std::string& path) {
  auto folder = open_folder(AT_FDCWD, path, path, 0);
  if (!folder) return tl::unexpected(folder.error());
  return Folder(std::move(*folder), path);
}

Result<Folder> Folder::inner(const std::string& name, mode_t mode) const {
  const int made = ::mkdirat(descriptor_.get(), name.c_str(), mode) == 0 ? 0 : errno;
  const std::string path = path_ + "/" + name;
  auto folder = open_folder(descriptor_.get(), name, path, made);
  if (!folder) return tl::unexpected(folder.error());
  return Folder(std::move(*folder), path);
}

Result<std::string> Folder::prepare(const std::string& name, std::string_view content, mode_t mode,
                                    Owner owner) const {
  const std::string path = path_ + "/" + name;
  std::string temporary = fmt::format("{}{}-{}", kTemporary, ::getpid(), name);
  remove(temporary);
  const system::Descriptor file(::openat(descriptor_.get(), temporary.c_str(),
                                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail("write", path, reason_of(errno), remedy_of(errno));
  // The content first, as root's alone; then it is given away.
  const bool whole = write_all(file.get(), content) && ::fchown(file.get(), owner.uid, owner.gid) == 0 &&
                     ::fchmod(file.get(), mode) == 0;
  if (whole) return temporary;
  const int error = errno;
  remove(temporary);
  return fail("write", path, reason_of(error), remedy_of(error));
}

Result<void> Folder::write(const std::string& name, std::string_view content, mode_t mode,
                           Owner owner) const {
  const auto temporary = prepare(name, content, mode, owner);
  if (!temporary) return tl::unexpected(temporary.error());
  if (::renameat(descriptor_.get(), temporary->c_str(), descriptor_.get(), name.c_str()) == 0) return {};
  const int error = errno;
  remove(*temporary);
  return fail("write", path_ + "/" + name, reason_of(error));
}

Result<bool> Folder::create(const std::string& name, std::string_view content, mode_t mode,
                            Owner owner) const {
  const auto temporary = prepare(name, content, mode, owner);
  if (!temporary) return tl::unexpected(temporary.error());
  const bool made = ::linkat(descriptor_.get(), temporary->c_str(), descriptor_.get(), name.c_str(), 0) == 0;
  const int error = errno;
  remove(*temporary);
  if (made) return true;
  if (error == EEXIST) return false;
  return fail("write", path_ + "/" + name, reason_of(error));
}

std::optional<std::time_t> Folder::written_at(const std::string& name) const {
  struct stat status {};
  if (::fstatat(descriptor_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return status.st_mtim.tv_sec;
}

Result<std::string> Folder::read(const std::string& name, std::size_t max_bytes) const {
  const std::string path = path_ + "/" + name;
  const system::Descriptor file(
      ::openat(descriptor_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail("read", path, reason_of(errno));
  return read_all(file.get(), path, max_bytes);
}

Result<system::Descriptor> Folder::open_file(const std::string& name) const {
  system::Descriptor file(
      ::openat(descriptor_.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail("open", path_ + "/" + name, reason_of(errno), remedy_of(errno));
  return file;
}

void Folder::remove(const std::string& name) const noexcept {
  ::unlinkat(descriptor_.get(), name.c_str(), 0);
}

void Folder::rotate(std::size_t max_files, std::uint64_t max_bytes, const std::string& keep) const {
  struct Entry {
    std::string name;
    timespec changed{};
    std::uint64_t bytes = 0;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  // fdopendir takes its descriptor with it.
  const int again = ::openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(again < 0 ? nullptr : ::fdopendir(again), &::closedir);
  while (const dirent* at = folder ? ::readdir(folder.get()) : nullptr) {
    struct stat status {};
    if (::fstatat(descriptor_.get(), at->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string name = at->d_name;
    if (S_ISDIR(status.st_mode)) continue;
    if (name.rfind(kTemporary, 0) == 0) {
      if (::time(nullptr) - status.st_mtim.tv_sec > kTemporaryLife) remove(name);
      continue;
    }
    entries.push_back({name, status.st_mtim, static_cast<std::uint64_t>(status.st_size)});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.changed.tv_sec, a.changed.tv_nsec, a.name) <
           std::tie(b.changed.tv_sec, b.changed.tv_nsec, b.name);
  });
  std::size_t count = entries.size();
  for (const Entry& entry : entries) {
    if (count <= max_files && total <= max_bytes) break;
    if (entry.name == keep) continue;
    remove(entry.name);
    --count;
    total -= entry.bytes;
  }
}

Result<void> check_trusted(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail("trust", path, reason_of(errno));
  if (!only_ours(status))
    return fail("trust", path, "it can be changed by others than root", remedy_for(status));
  return {};
}

Result<std::string> read_trusted(const std::string& path, std::size_t max_bytes, std::string missing) {
  const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return missing;
  if (!file) return fail("read", path, reason_of(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return fail("read", path, reason_of(errno));
  if (!S_ISREG(status.st_mode)) return fail("read", path, "it is no regular file");
  if (!only_ours(status))
    return fail("trust", path, "it can be changed by others than root", remedy_for(status));
  if (auto folder = check_trusted(std::filesystem::absolute(path).parent_path().string()); !folder)
    return tl::unexpected(folder.error());
  return read_all(file.get(), path, max_bytes);
}

}  // namespace netcheck::prolog
