// The prolog's environment → which job this is. As root. Everything in it that a user could set is hostile.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "contract/job.h"

namespace netcheck::prolog {

struct Job {
  Roster roster;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string partition, account, user;
};

/// `get(name)` → value or nullptr. Errors name the variable. Reads SLURM_JOB_ID, SLURM_JOB_UID,
/// SLURM_JOB_GID, SLURM_NODELIST (SLURM_JOB_NODELIST), SLURMD_NODENAME, SLURM_CLUSTER_NAME,
/// SLURM_JOB_RESTART_COUNT (0 when unset), SLURM_JOB_PARTITION, SLURM_JOB_ACCOUNT, SLURM_JOB_USER.
[[nodiscard]] Result<Job> job_from_environment(const std::function<const char*(const char*)>& get);

}  // namespace netcheck::prolog
