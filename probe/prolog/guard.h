// One check at a time on a node, and none while the remains of an earlier one cannot be got rid of. As root,
// in the run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/job.h"
#include "prolog/folder.h"

namespace netcheck::prolog {

/// A process that SIGKILL did not end: (pid, start time as in system/process.h).
using Remains = std::vector<std::pair<pid_t, std::uint64_t>>;

/// Whose check it is.
struct Holder {
  std::uint32_t job = 0;
  std::string node;  ///< that checks; tells a run directory that several nodes share
  friend bool operator==(const Holder&, const Holder&) = default;
};
struct Lock {
  system::Descriptor file;       ///< held while open
  bool taken = false;            ///< false: another check holds it
  std::optional<Holder> holder;  ///< who, where known
};

/// Never waits. Error: the lock file cannot be made or opened.
[[nodiscard]] Result<Lock> try_lock(const Folder& folder, const Holder& self);
/// Who checked last in this folder, or checks now; nullopt: nobody, or it does not say.
[[nodiscard]] std::optional<Holder> last_holder(const Folder& folder);
/// Why a run directory that `other` uses as well is none.
[[nodiscard]] std::string shared_directory(const std::string& path, const std::string& other);

/// Those of the remembered processes that still live; the others are forgotten.
[[nodiscard]] Remains living_remains(const Folder& folder);
/// Adds to what is remembered.
[[nodiscard]] Result<void> remember(const Folder& folder, const Remains& remains);

}  // namespace netcheck::prolog
