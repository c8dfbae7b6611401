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

struct Lock {
  system::Descriptor file;              ///< held while open
  bool taken = false;                   ///< false: another check holds it
  std::optional<std::uint32_t> holder;  ///< its job, where known
};

/// Never waits. Error: the lock file cannot be made or opened.
[[nodiscard]] Result<Lock> try_lock(const Folder& folder, std::uint32_t job);

/// Those of the remembered processes that still live; the others are forgotten.
[[nodiscard]] Remains living_remains(const Folder& folder);
/// Adds to what is remembered.
[[nodiscard]] Result<void> remember(const Folder& folder, const Remains& remains);

}  // namespace netcheck::prolog
