// The record of a check on one node, and the notice beside it. As root, under policy.run_directory (0755):
// records/ (0700, files 0600), notices/ (0755, files 0400 of root: a file
// of the user's own could be grown until /run is full). Old records go first when there
// are more than kMaxRecords or kMaxRecordBytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/notice.h"
#include "judge/verdict.h"
#include "prolog/job.h"
#include "session/assignment.h"
#include "session/report.h"

namespace netcheck::prolog {

inline constexpr std::size_t kMaxRecords = 1'000;
inline constexpr std::uint64_t kMaxRecordBytes = 64u << 20;
/// A record older than this is another job's: a controller that has lost its state counts from 1 again. Both
/// ways into a check lie in one prolog, where nobody waits this long.
inline constexpr std::int64_t kSameRunSeconds = 3'600;
/// Of the "schema" key: raised when a reader of older records would misread newer ones.
/// 2: samples say how long their process was kept from running; a refusal has its phase.
/// 3: samples say what others moved over the same device.
/// 4: plans say what there is of each node's hardware, and what the site makes of it.
/// 5: samples say what their node had run out of.
inline constexpr int kRecordSchema = 5;

struct Record {
  Job job;
  std::string request;                    ///< as given, printable
  session::Assignment assignment;         ///< the policy in effect and its hash; what the probe was told
  std::optional<session::Report> report;  ///< none when the probe gave none that could be read
  std::string verdict;                    ///< "pass", "fail", "inconclusive"
  std::optional<judge::Verdict> judged;   ///< computed here; none on a follower, which repeats the leader's
  std::string line;                       ///< as in sacct
  std::vector<std::string> remarks;       ///< "report rejected: …", "no lock: …", what the probe said
  std::string action = "annotate";
  std::string action_result;         ///< "done", or why not
  Ns time{};                         ///< until the verdict: what the line says
  Ns took{};                         ///< until the last word
  std::map<std::string, Ns> phases;  ///< the supervisor's own: start, probe, annotate
  std::int64_t unix_time = 0;        ///< at the check's start
};

[[nodiscard]] Json to_json(const Record& record);
/// "CLUSTER-JOB-RESTART.json"
[[nodiscard]] std::string record_name(const JobRun& run);
/// "RUN_DIR/records/CLUSTER-JOB-RESTART.json"
[[nodiscard]] std::string record_path(const std::string& run_directory, const JobRun& run);
/// What there was of a run's record when its check was to begin.
struct Begun {
  enum class Whose : std::uint8_t {
    first,         ///< nothing: it is begun now
    this_runs,     ///< the check has been made, or is being made, and this one is not to be
    another_nodes  ///< another node's, for the same run: the folder is shared, and not to be written to
  };
  Whose whose = Whose::first;
  std::string node;  ///< the other one
};
/// The first record of a run, before its check begins. A plugin and a Prolog script may both start a check
/// for the same run, at the same time too; exactly one of them is the first. Error: no record can be written.
[[nodiscard]] Result<Begun> begin_record(const Record& record);
/// "CLUSTER-JOB-RESTART.json" in JSON, on one line.
[[nodiscard]] std::string text_of(const Record& record);
/// Creates the folders as needed; written to a temporary name and renamed. Never follows a symbolic link.
/// Returns the path.
[[nodiscard]] Result<std::string> write_record(const Record& record);
[[nodiscard]] Result<void> write_notice_file(const std::string& run_directory, const Notice& notice);
void remove_notice(const std::string& run_directory, std::uint32_t job) noexcept;

}  // namespace netcheck::prolog
