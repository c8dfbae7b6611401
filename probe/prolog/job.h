// The prolog's environment → which job this is. As root. Everything in it that a user could set is hostile.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/job.h"

namespace netcheck::prolog {

struct Job {
  Roster roster;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string partition, account, user;
  Result<std::vector<std::string>> gpus;  ///< of this node; the error: what Slurm says of them cannot be read
};

/// `get(name)` → value or nullptr. Errors name the variable. Reads SLURM_JOB_ID, SLURM_JOB_UID,
/// SLURM_JOB_GID, SLURM_NODELIST (SLURM_JOB_NODELIST), SLURMD_NODENAME, SLURM_CLUSTER_NAME,
/// SLURM_JOB_RESTART_COUNT (0 when unset), SLURM_JOB_PARTITION, SLURM_JOB_ACCOUNT, SLURM_JOB_USER,
/// SLURM_JOB_GPUS.
[[nodiscard]] Result<Job> job_from_environment(const std::function<const char*(const char*)>& get);

/// SLURM_JOB_GPUS as fabric::Options name GPUs: "0,2-3" → "gpu:0", "gpu:2", "gpu:3", rising, each once. The
/// numbers are those of the device files (/dev/nvidia2), whatever the job's own processes see. Refused: what
/// is no list of numbers, slices of a GPU (MIG) by name.
[[nodiscard]] Result<std::vector<std::string>> gpus_from(std::string_view list);

}  // namespace netcheck::prolog
