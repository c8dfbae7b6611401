// Records kept for good, where the site has a spool_dir: each once more, under a name that tells nodes apart,
// so that one directory may serve many. Beside the check: nothing waits for it. As root.
#pragma once

#include <chrono>
#include <string>

#include "prolog/record.h"

namespace netcheck::prolog {

/// "CLUSTER-JOB-RESTART-NODE.json"
[[nodiscard]] std::string spooled_name(const Record& record);

/// Writes it into policy.spool_dir, whole or not at all: a directory that is there, root's, and writable by
/// root alone. Error: says why not.
[[nodiscard]] Result<void> write_to_spool(const Record& record);

/// The same in a process of its own, which says in the syslog what went wrong, and ends after kSpoolPatience.
/// One at a time: a filesystem that hangs holds one of them, not one for each job. False: none could be
/// started.
[[nodiscard]] bool keep_for_good(const Record& record);

/// A local disk takes milliseconds, a filesystem across a busy network a second.
inline constexpr std::chrono::seconds kSpoolPatience{20};

}  // namespace netcheck::prolog
