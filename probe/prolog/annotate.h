// The line into the job's AdminComment, where sacct finds it: `scontrol update`, by the leader alone, as
// root, each call with a deadline. The target is always exactly this job: ArrayJobId_TaskId for an array
// task (its raw id can be the whole array's), JobId+offset for a component of a heterogeneous job; where that
// cannot be established nothing is written.
//
// The job is looked up with `squeue -O`, in fields that are numbers, and the comment, which only operators
// can write. `squeue --json` of 22.05 ignores -j and prints every job of the cluster; the text of `scontrol
// show job` can be forged by a job's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/job.h"
#include "contract/units.h"

namespace netcheck::prolog {

/// One of Slurm's client commands, run to its end; what it printed. Error: it is not there, did not end in
/// time, or said no.
[[nodiscard]] Result<std::string> call_slurm(const std::string& name, std::vector<std::string> arguments,
                                             const std::string& slurm_conf, const std::string& path,
                                             Time deadline);

/// Whether such a call failed because its job is no more: its user may cancel it at any moment.
[[nodiscard]] bool has_ended(const Error& error);

/// SLURM_CONF of the prolog; "" when it is not set.
[[nodiscard]] std::string slurm_conf();
/// The directories in which Slurm's commands are looked for: the prolog's PATH, then the usual ones.
[[nodiscard]] std::string slurm_path();

struct JobFacts {
  std::string target;         ///< as scontrol takes it: "17", "17_3", "17+1"
  std::string admin_comment;  ///< what stands there now
  bool batch = false;
};

/// A comment is one line of at most this many bytes: accounting databases cut at 64 KiB, people long before.
inline constexpr std::size_t kMaxCommentBytes = 1'024;

/// The fields that read_squeue expects, as squeue's --Format: six numbers in columns, then the comment.
[[nodiscard]] std::string squeue_format();

/// The one row whose JobID is `job` in squeue's answer. Error: no row, several, or one that does not say
/// which task or component it is. Pure.
[[nodiscard]] Result<JobFacts> read_squeue(std::string_view text, std::uint32_t job);

/// The comment to write: `line`, then what another tool wrote (earlier "netcheck=" lines of ours replaced;
/// separator " | "), ≤ kMaxCommentBytes, printable. Pure.
[[nodiscard]] std::string merge_comment(std::string_view existing, std::string_view line);

/// `slurm_conf`: SLURM_CONF for the calls; empty = Slurm's default. Looks for squeue and scontrol in the
/// directories of `path` ("a:b:c"). A stopped or slow slurmctld costs no more than the deadline. Returns what
/// came of it, "done" or "the job has ended meanwhile": its user may cancel it at any moment.
[[nodiscard]] Result<std::string> annotate(const JobRun& run, const std::string& line,
                                           const std::string& slurm_conf, const std::string& path,
                                           Time deadline);

}  // namespace netcheck::prolog
