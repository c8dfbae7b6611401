// What a check stands on before it begins: the site's file, the probe's account, the fabric module, and that
// the run directory is this node's. As root; nothing of the job's is touched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "prolog/guard.h"
#include "system/process.h"

namespace netcheck::prolog {

/// A cache (sssd, nscd) answers in milliseconds, a directory across the network within a second; and the
/// other nodes wait 3 s for this one.
inline constexpr Ns kAccountPatience = std::chrono::seconds(2);

/// Where the first kill switch lies: kKillSwitch (supervisor.h) beside the configuration.
[[nodiscard]] std::string kill_switch_of(const std::string& config);

/// The site's file, which only root may be able to change; a missing one means built-in values.
[[nodiscard]] Result<Site> read_site(const std::string& config);

/// The probe's account: its own, unprivileged, and not the job's. Asked for in a child, with a deadline.
[[nodiscard]] Result<system::Account> probe_account(const Policy& policy, uid_t job_uid, Time deadline);

/// The site's directory, or the first of `places` that has the fabric's module; without any the last, for the
/// fabric to name.
[[nodiscard]] std::string module_directory_of(const Policy& policy, const std::vector<std::string>& places);
/// That nobody but root can change it, nor its folder. One that is not there, or "", is nobody's.
[[nodiscard]] Result<void> check_library(const std::string& library);
/// The same of the module, of NVML, and, for NCCL, of the other libraries that the site names; a missing one
/// is for the fabric to report, with its name.
[[nodiscard]] Result<void> check_modules(const Policy& policy);

/// The node for one check: its lock, and nothing left of an earlier one.
struct Claim {
  std::optional<Folder> folder;  ///< the run directory, where it can be used
  system::Descriptor lock;       ///< held while open
  std::string busy;              ///< why this node cannot check now; "": it can
  std::optional<Error> no_lock;  ///< why there is none, and the check goes on without
};
[[nodiscard]] Claim claim_node(const std::string& run_directory, std::uint32_t job, const std::string& node);

}  // namespace netcheck::prolog
