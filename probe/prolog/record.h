// The record of a check on one node, and the notice beside it. As root, under policy.run_directory (0755):
// records/ (0700, files 0600), notices/ (0755, files 0400 of the job's user). Old records go first when there
// are more than kMaxRecords or kMaxRecordBytes.
#pragma once

#include <optional>
#include <string>

#include "contract/notice.h"
#include "prolog/job.h"
#include "session/report.h"

namespace netcheck::prolog {

inline constexpr std::size_t kMaxRecords = 1'000;
inline constexpr std::uint64_t kMaxRecordBytes = 64u << 20;

struct Record {
  Job job;
  std::string request;  ///< as given, printable
  Policy policy;
  std::optional<session::Report> report;  ///< none when the probe gave none
  judge::Verdict verdict;
  std::string line;
  std::vector<std::string> remarks;  ///< "record folder unwritable", "report rejected: …"
  std::string action = "annotate";
  std::string action_result;  ///< "done", or why not
  Ns took{};
  std::map<std::string, Ns> phases;  ///< supervisor's own: start, probe, annotate
  std::int64_t unix_time = 0;
};

[[nodiscard]] Json to_json(const Record& record);
/// "CLUSTER-JOB-RESTART.json"
[[nodiscard]] std::string record_name(const JobRun& run);
/// Creates the folders as needed; written to a temporary name and renamed. Never follows a symbolic link.
[[nodiscard]] Result<std::string> write_record(const Record& record);
[[nodiscard]] Result<void> write_notice_file(const std::string& run_directory, const Notice& notice,
                                             uid_t uid, gid_t gid);
void remove_notice(const std::string& run_directory, std::uint32_t job) noexcept;

}  // namespace netcheck::prolog
