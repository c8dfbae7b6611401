// Two calls to Slurm: who exactly is this job, and: this is its comment. As root.
#include "prolog/annotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "prolog/columns.h"

namespace netcheck::prolog {
namespace {

constexpr std::string_view kSeparator = " | ";
constexpr std::string_view kOurs = "netcheck=";

enum Column : std::size_t { kJob, kArrayJob, kArrayTask, kHetJob, kHetOffset, kBatch, kColumns };
constexpr std::array<const char*, kColumns> kFields = {"JobID",    "ArrayJobID",   "ArrayTaskID",
                                                       "HetJobID", "HetJobOffset", "BatchFlag"};
constexpr std::size_t kCommentColumn = 2 * kMaxCommentBytes;  // another tool's may be longer than ours

struct Row {
  std::array<std::string_view, kColumns> columns;
  std::string_view standing, comment;
};

// A line of the answer, when it is the first of a row: a comment may hold line ends.
std::optional<Row> row_of(std::string_view line, Asked asked) {
  const std::size_t extra = asked == Asked::standing_too ? kStandingBytes : 0;
  if (line.size() < kColumn * kColumns + extra) return std::nullopt;
  Row row;
  for (std::size_t i = 0; i < kColumns; ++i)
    row.columns[i] = trimmed(line.substr(i * kColumn, kColumn));
  if (!number(row.columns[kJob]) || !number(row.columns[kBatch])) return std::nullopt;
  row.standing = line.substr(kColumn * kColumns, extra);
  row.comment = line.substr(kColumn * kColumns + extra);
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

}  // namespace

std::string squeue_format(Asked asked) {
  std::string format;
  for (const char* field : kFields)
    format += fmt::format("{}:{},", field, kColumn);
  if (asked == Asked::standing_too) format += standing_format() + ",";
  return format + fmt::format("admin_comment:{}", kCommentColumn);
}

Result<JobFacts> read_squeue(std::string_view text, std::uint32_t job, Asked asked) {
  std::optional<JobFacts> facts;
  bool ours = false;  // the lines that follow belong to our row's comment
  for (const std::string_view line : split(text, "\n")) {
    const auto row = row_of(line, asked);
    if (!row) {
      if (ours) facts->admin_comment += " " + std::string(trimmed(line));
      continue;
    }
    ours = number(row->columns[kJob]) == job;
    if (!ours) continue;
    if (facts) return fail("find the job", std::to_string(job), "squeue names it twice");
    auto target = target_of(*row, job);
    if (!target) return tl::unexpected(target.error());
    facts = JobFacts{std::move(*target), std::string(trimmed(row->comment)), row->columns[kBatch] == "1",
                     number(row->columns[kHetJob]).value_or(0) != 0, std::nullopt};
    if (auto standing = read_standing(row->standing, job)) facts->standing = std::move(*standing);
  }
  if (!facts) return fail("find the job", std::to_string(job), "squeue does not list it: it may have ended");
  facts->admin_comment = trimmed(facts->admin_comment);
  if (facts->admin_comment == "(null)") facts->admin_comment.clear();
  return *facts;
}

std::string_view own_line(std::string_view comment) {
  for (const std::string_view part : split(comment, kSeparator))
    if (trimmed(part).substr(0, kOurs.size()) == kOurs) return trimmed(part);
  return {};
}

std::string merge_comment(std::string_view existing, std::string_view line, std::string_view tail) {
  std::string others;
  const std::string clean = printable(existing, kCommentColumn);
  for (const std::string_view part : split(clean, kSeparator)) {
    const std::string_view text = trimmed(part);
    if (text.empty() || text.substr(0, kOurs.size()) == kOurs) continue;
    others += fmt::format("{}{}", kSeparator, text);
  }
  // Ours may use what others leave, and half of the room in any case.
  const std::size_t room = kMaxCommentBytes - std::min(others.size(), kMaxCommentBytes / 2);
  const std::string end = printable(tail, room / 2);
  std::string comment = printable(line, room - end.size());
  // Cut within quotes, they end here: what follows counts.
  if (std::ranges::count(comment, '"') % 2 != 0) {
    if (comment.size() == room - end.size()) comment.pop_back();
    comment += '"';
  }
  comment += end;
  return comment + printable(others, kMaxCommentBytes - comment.size());
}

Result<JobFacts> look_up(Controller& controller, std::uint32_t job, Time deadline, Asked asked) {
  const auto subject = std::to_string(job);
  auto answer = controller.call(
      "squeue", {"--noheader", "--jobs=" + subject, "--Format=" + squeue_format(asked)}, deadline);
  if (!answer && has_ended(answer.error())) return fail("find the job", subject, kEnded);
  if (!answer) return tl::unexpected(answer.error());
  if (trimmed(*answer).empty()) return fail("find the job", subject, kEnded);
  return read_squeue(*answer, job, asked);
}

Result<void> write_comment(Controller& controller, const JobFacts& job, const std::string& comment,
                           Time deadline) {
  if (comment == job.admin_comment) return {};
  const auto updated =
      controller.call("scontrol", {"update", "JobId=" + job.target, "AdminComment=" + comment}, deadline);
  if (!updated && has_ended(updated.error())) return fail("annotate", job.target, kEnded);
  if (!updated) return tl::unexpected(updated.error());
  return {};
}

}  // namespace netcheck::prolog
