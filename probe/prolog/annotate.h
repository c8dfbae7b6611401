// The line into the job's AdminComment, where sacct finds it: `scontrol update`, by the leader alone, as
// root, each call with a deadline. The target is always exactly this job: ArrayJobId_TaskId for an array
// task (its raw id can be the whole array's), JobId+offset for a component of a heterogeneous job; where that
// cannot be established nothing is written.
//
// The job is looked up with `squeue -O`, in fields that are numbers, and the comment, which only operators
// can write. `squeue --json` of 22.05 ignores -j and prints every job of the cluster; the text of `scontrol
// show job` can be forged by a job's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "prolog/controller.h"
#include "prolog/facts.h"

namespace netcheck::prolog {

struct JobFacts {
  std::string target;         ///< as scontrol takes it: "17", "17_3", "17+1"
  std::string admin_comment;  ///< what stands there now
  bool batch = false;
  bool component = false;            ///< of a heterogeneous job
  std::optional<Standing> standing;  ///< where it was asked for, and understood
};

/// A comment is one line of at most this many bytes: accounting databases cut at 64 KiB, people long before.
inline constexpr std::size_t kMaxCommentBytes = 1'024;

/// What is asked of a job: who it is, or, where something may be done to it, how it stands as well. One call
/// either way: whoever acts has few to spare.
enum class Asked : std::uint8_t { identity, standing_too };
/// The fields that read_squeue expects, as squeue's --Format: six numbers in columns, those of
/// standing_format(), then the comment.
[[nodiscard]] std::string squeue_format(Asked asked = Asked::identity);

/// The one row whose JobID is `job` in squeue's answer. Error: no row, several, or one that does not say
/// which task or component it is. Pure.
[[nodiscard]] Result<JobFacts> read_squeue(std::string_view text, std::uint32_t job,
                                           Asked asked = Asked::identity);

/// The comment to write: `line`, then what another tool wrote (earlier "netcheck=" lines of ours replaced;
/// separator " | "), ≤ kMaxCommentBytes, printable. `tail` is the end of our line, which is kept when the
/// line has to be cut: what was done, and how often. Pure.
[[nodiscard]] std::string merge_comment(std::string_view existing, std::string_view line,
                                        std::string_view tail = {});
/// Our own part of a comment; empty when there is none. Pure.
[[nodiscard]] std::string_view own_line(std::string_view comment);

/// The reason of the error where the job is over: its user may cancel it at any moment.
inline constexpr const char* kEnded = "the job has ended meanwhile";

[[nodiscard]] Result<JobFacts> look_up(Controller& controller, std::uint32_t job, Time deadline,
                                       Asked asked = Asked::identity);
/// No call where the comment stands there already.
[[nodiscard]] Result<void> write_comment(Controller& controller, const JobFacts& job,
                                         const std::string& comment, Time deadline);

}  // namespace netcheck::prolog
