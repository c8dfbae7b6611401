// In a job step: the notice that the check left, if it is of this very run of the job; and the marker by
// which its line is printed once per job. As root, in slurmstepd; the notice's owner is the job's user, so
// its content is hostile. No Slurm calls here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "contract/notice.h"

namespace netcheck::plugin {

/// Which step of which job asks.
struct Step {
  std::uint32_t job = 0;
  std::optional<std::uint32_t> restart;  ///< where Slurm tells a step
};

/// True when the notice is of this run of the job on this boot of the node. Pure.
[[nodiscard]] bool belongs_to(const Notice& notice, const Step& step, const std::string& boot_id);

/// RUN_DIR/notices/JOB, when it is a regular file of root, of the right size, well
/// formed, and belongs to this run. Else nullopt; `why_not` is set only where there is a notice that was not
/// taken.
[[nodiscard]] std::optional<Notice> load_notice(const std::string& run_directory, const Step& step,
                                                std::string& why_not);

/// True once per job: for the first caller. Creates RUN_DIR/notices/JOB.shown.
[[nodiscard]] bool claim_printing(const std::string& run_directory, std::uint32_t job);

/// "NCCL_ALGO, NCCL_IB_HCA": what of a job's environment the check was not made with: over NCCL the site's
/// settings count. `environment`: as exec() takes it. Empty: nothing, or the check was over another fabric.
[[nodiscard]] std::string not_applied(const Notice& notice, const char* const* environment);

/// Before a run of the job, and after it: neither the notice nor the marker of an earlier run may be left.
void remove_notice(const std::string& run_directory, std::uint32_t job);

}  // namespace netcheck::plugin
