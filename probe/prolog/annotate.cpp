// Two calls to Slurm: who exactly is this job, and: this is its comment. As root.
#include "prolog/annotate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "system/process.h"

namespace netcheck::prolog {
namespace {

constexpr std::string_view kSeparator = " | ";
constexpr std::string_view kOurs = "netcheck=";

// Columns of squeue's answer. 20 holds every 32-bit number and "N/A"; a longer field (the task list of an
// array that has not begun) is cut, and then is no number.
constexpr std::size_t kColumn = 20;
enum Column : std::size_t { kJob, kArrayJob, kArrayTask, kHetJob, kHetOffset, kBatch, kColumns };
constexpr std::array<const char*, kColumns> kFields = {"JobID",    "ArrayJobID",   "ArrayTaskID",
                                                       "HetJobID", "HetJobOffset", "BatchFlag"};
constexpr std::size_t kCommentColumn = 2 * kMaxCommentBytes;  // another tool's may be longer than ours

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Row {
  std::array<std::string_view, kColumns> columns;
  std::string_view comment;
};

// A line of the answer, when it is the first of a row: a comment may hold line ends.
std::optional<Row> row_of(std::string_view line) {
  if (line.size() < kColumn * kColumns) return std::nullopt;
  Row row;
  for (std::size_t i = 0; i < kColumns; ++i)
    row.columns[i] = trimmed(line.substr(i * kColumn, kColumn));
  if (!number(row.columns[kJob]) || !number(row.columns[kBatch])) return std::nullopt;
  row.comment = line.substr(kColumn * kColumns);
  return row;
}

Result<std::string> target_of(const Row& row, std::uint32_t job) {
  const auto task = number(row.columns[kArrayTask]), array = number(row.columns[kArrayJob]);
  const auto component = number(row.columns[kHetJob]), offset = number(row.columns[kHetOffset]);
  const auto subject = std::to_string(job);
  if (task) {
    if (!array || *array == 0) return fail("find the job", subject, "squeue names no array for its task");
    return fmt::format("{}_{}", *array, *task);
  }
  if (component && *component != 0) {
    if (!offset) return fail("find the job", subject, "squeue names no offset for its component");
    return fmt::format("{}+{}", *component, *offset);
  }
  // Neither: an ordinary job. "N/A" is what squeue prints for it; anything else is not understood.
  for (const Column column : {kArrayTask, kHetJob})
    if (row.columns[column] != "N/A" && row.columns[column] != "0")
      return fail("find the job", subject,
                  fmt::format("squeue says {}='{}'", kFields[column], printable(row.columns[column], 40)));
  return subject;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return parts;
    at = end + separator.size();
  }
}

Result<std::string> find_program(const std::string& name, const std::string& path) {
  for (const std::string_view folder : split(path, ":")) {
    if (folder.empty() || folder.front() != '/') continue;  // never the working directory
    std::string program = fmt::format("{}/{}", folder, name);
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return fail("find the program", name, "it is in none of " + printable(path),
              "install Slurm's client commands on the node");
}

constexpr const char *kDone = "done", *kEnded = "the job has ended meanwhile";

}  // namespace

std::string slurm_conf() {
  const char* conf = std::getenv("SLURM_CONF");
  return conf == nullptr ? "" : conf;
}

std::string slurm_path() {
  constexpr const char* kUsual = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/opt/slurm/bin";
  const char* path = std::getenv("PATH");
  return path == nullptr ? kUsual : fmt::format("{}:{}", path, kUsual);
}

// Slurm's words (slurm_errno.c) for ESLURM_INVALID_JOB_ID and ESLURM_ALREADY_DONE.
bool has_ended(const Error& error) {
  return error.reason.find("Invalid job id specified") != std::string::npos ||
         error.reason.find("Job has already finished") != std::string::npos;
}

Result<std::string> call_slurm(const std::string& name, std::vector<std::string> arguments,
                               const std::string& slurm_conf, const std::string& path, Time deadline) {
  auto program = find_program(name, path);
  if (!program) return tl::unexpected(program.error());
  system::Launch launch;
  launch.program = *program;
  launch.arguments = std::move(arguments);
  launch.environment = {"PATH=" + path, "LANG=C", "LC_ALL=C"};
  if (!slurm_conf.empty()) launch.environment.push_back("SLURM_CONF=" + slurm_conf);
  launch.oom_score_adj = 0;
  auto finished = system::run_to_end(std::move(launch), deadline);
  if (!finished) return tl::unexpected(finished.error());
  if (finished->status == 0) return std::move(finished->output);
  const std::string said = printable(trimmed(finished->errors.empty() ? finished->output : finished->errors));
  return fail("call", name, said.empty() ? system::describe_status(finished->status) : said);
}

std::string squeue_format() {
  std::string format;
  for (const char* field : kFields)
    format += fmt::format("{}:{},", field, kColumn);
  return format + fmt::format("admin_comment:{}", kCommentColumn);
}

Result<JobFacts> read_squeue(std::string_view text, std::uint32_t job) {
  std::optional<JobFacts> facts;
  bool ours = false;  // the lines that follow belong to our row's comment
  for (const std::string_view line : split(text, "\n")) {
    const auto row = row_of(line);
    if (!row) {
      if (ours) facts->admin_comment += " " + std::string(trimmed(line));
      continue;
    }
    ours = number(row->columns[kJob]) == job;
    if (!ours) continue;
    if (facts) return fail("find the job", std::to_string(job), "squeue names it twice");
    auto target = target_of(*row, job);
    if (!target) return tl::unexpected(target.error());
    facts = JobFacts{std::move(*target), std::string(trimmed(row->comment)), row->columns[kBatch] == "1"};
  }
  if (!facts) return fail("find the job", std::to_string(job), "squeue does not list it: it may have ended");
  facts->admin_comment = trimmed(facts->admin_comment);
  if (facts->admin_comment == "(null)") facts->admin_comment.clear();
  return *facts;
}

std::string merge_comment(std::string_view existing, std::string_view line) {
  std::string others;
  const std::string clean = printable(existing, kCommentColumn);
  for (const std::string_view part : split(clean, kSeparator)) {
    const std::string_view text = trimmed(part);
    if (text.empty() || text.substr(0, kOurs.size()) == kOurs) continue;
    others += fmt::format("{}{}", kSeparator, text);
  }
  // Ours may use what others leave, and half of the room in any case.
  const std::size_t room = kMaxCommentBytes - std::min(others.size(), kMaxCommentBytes / 2);
  std::string comment = printable(line, room);
  return comment + printable(others, kMaxCommentBytes - comment.size());
}

Result<std::string> annotate(const JobRun& run, const std::string& line, const std::string& slurm_conf,
                             const std::string& path, Time deadline) {
  const auto job = std::to_string(run.job);
  auto answer = call_slurm("squeue", {"--noheader", "--jobs=" + job, "--Format=" + squeue_format()},
                           slurm_conf, path, deadline);
  if (!answer && has_ended(answer.error())) return kEnded;
  if (!answer) return tl::unexpected(answer.error());
  if (trimmed(*answer).empty()) return kEnded;
  const auto facts = read_squeue(*answer, run.job);
  if (!facts) return tl::unexpected(facts.error());
  const std::string comment = merge_comment(facts->admin_comment, line);
  if (comment == facts->admin_comment) return kDone;
  auto updated = call_slurm("scontrol", {"update", "JobId=" + facts->target, "AdminComment=" + comment},
                            slurm_conf, path, deadline);
  if (!updated && has_ended(updated.error())) return kEnded;
  if (!updated) return tl::unexpected(updated.error());
  return kDone;
}

}  // namespace netcheck::prolog
