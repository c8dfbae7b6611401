// A folder that root writes to: never through a symbolic link, never one that somebody else could change, and
// files appear in it whole or not at all. As root.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "system/descriptor.h"

namespace netcheck::prolog {

class Folder {
 public:
  /// Opens `path`, made with `mode` when it is not there (its parents with 0755). Error: a symbolic link, no
  /// folder, not ours, or writable by group or others.
  [[nodiscard]] static Result<Folder> open(const std::string& path, mode_t mode);
  /// The same for one that must be there: a mount point that nothing is mounted on is not to be filled.
  [[nodiscard]] static Result<Folder> existing(const std::string& path);
  /// As open, for a folder in it.
  [[nodiscard]] Result<Folder> inner(const std::string& name, mode_t mode) const;

  struct Owner {
    uid_t uid = 0;
    gid_t gid = 0;
  };
  /// Replaces `name`, whatever it was, by a file of this content, mode and owner.
  [[nodiscard]] Result<void> write(const std::string& name, std::string_view content, mode_t mode,
                                   Owner owner) const;
  /// The same, but where there is a `name` already, whatever it is: then nothing is written, and false.
  [[nodiscard]] Result<bool> create(const std::string& name, std::string_view content, mode_t mode,
                                    Owner owner) const;
  /// When it was last written, of what is there; nullopt when there is none.
  [[nodiscard]] std::optional<std::time_t> written_at(const std::string& name) const;
  /// At most `max_bytes` of a regular file of ours. Error: none there (reason "No such file or directory").
  [[nodiscard]] Result<std::string> read(const std::string& name, std::size_t max_bytes) const;
  /// A file of ours, made with 0600 when it is not there, for reading and writing.
  [[nodiscard]] Result<system::Descriptor> open_file(const std::string& name) const;
  void remove(const std::string& name) const noexcept;
  /// Removes the oldest files until at most `max_files` and `max_bytes` are left, `keep` never; and temporary
  /// files that a killed writer left.
  void rotate(std::size_t max_files, std::uint64_t max_bytes, const std::string& keep) const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  // Under a temporary name, which is returned; whatever goes wrong, it is about `path`.
  [[nodiscard]] Result<std::string> prepare(const std::string& name, std::string_view content, mode_t mode,
                                            Owner owner) const;
  Folder(system::Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  system::Descriptor descriptor_;
  std::string path_;
};

/// The content of a file that only root (or the caller's own account) can change, its folder included; for
/// configuration. Follows symbolic links. `missing`: what is returned when there is none.
[[nodiscard]] Result<std::string> read_trusted(const std::string& path, std::size_t max_bytes,
                                               std::string missing);
/// That `path` exists and only root (or the caller's own account) can change it.
[[nodiscard]] Result<void> check_trusted(const std::string& path);

}  // namespace netcheck::prolog
