// The line into the job's AdminComment, where sacct finds it: `scontrol update`, by the leader alone, as
// root, each call with a deadline. The target is always exactly this job: ArrayJobId_TaskId for an array
// task, JobId+offset for a component of a heterogeneous job, from `squeue --json`; where that cannot be
// established nothing is written.
#pragma once

#include <string>
#include <vector>

#include "contract/error.h"
#include "contract/job.h"
#include "contract/units.h"

namespace netcheck::prolog {

struct JobFacts {
  std::string target;         ///< "17", "17_3", "17+1"
  std::string admin_comment;  ///< what stands there now
  bool batch = false;
};

/// From squeue's JSON: the one entry whose job_id is `job`. Pure.
[[nodiscard]] Result<JobFacts> read_squeue(std::string_view json, std::uint32_t job);
/// The comment to write: `line`, then what another tool wrote (earlier "netcheck=" lines of ours replaced;
/// separator " | "), ≤ 1 KiB, printable. Pure.
[[nodiscard]] std::string merge_comment(std::string_view existing, std::string_view line);

/// `slurm_conf`: SLURM_CONF for the calls; empty = default. Looks for squeue and scontrol in the directories
/// of `path`.
[[nodiscard]] Result<void> annotate(const JobRun& run, const std::string& line, const std::string& slurm_conf,
                                    const std::string& path, Time deadline);

}  // namespace netcheck::prolog
