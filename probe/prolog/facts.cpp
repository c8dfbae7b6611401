// Slurm's columns → facts. Pure.
#include "prolog/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "policy/policy.h"
#include "prolog/annotate.h"
#include "prolog/columns.h"

namespace netcheck::prolog {
namespace {

// A name of Slurm's may have any length, and one that fills its column may have been cut.
constexpr std::size_t kNameColumn = 128, kWideColumn = 256;
constexpr std::size_t kDeedComment = kMaxCommentBytes + 64;

enum StandingColumn : std::size_t {
  kId,
  kState,
  kReason,
  kPriority,
  kRestarts,
  kNodes,
  kRequeue,
  kContiguous,
  kFeature,
  kGres,
  kStandingColumns
};
constexpr std::array<const char*, kStandingColumns> kStandingFields = {
    "JobID",    "StateCompact", "Reason",     "PriorityLong", "RestartCnt",
    "NumNodes", "Requeue",      "Contiguous", "Feature",      "tres-per-node"};

static_assert(kStandingBytes == kStandingColumns * kColumn);

struct NodeColumn {
  const char* field;
  std::size_t width;
};
constexpr std::array<NodeColumn, 8> kNodeColumns = {{{"NodeList", kNameColumn},
                                                     {"Partition", kNameColumn},
                                                     {"StateLong", kColumn},
                                                     {"CPUs", kColumn},
                                                     {"Memory", kColumn},
                                                     {"Gres", kWideColumn},
                                                     {"Features", kWideColumn},
                                                     {"Reason", kColumn}}};

// The one line whose first column is `job`; columns of kColumn.
Result<std::string_view> line_of(std::string_view text, std::uint32_t job) {
  std::optional<std::string_view> found;
  const auto subject = std::to_string(job);
  for (const std::string_view line : split(text, "\n")) {
    if (line.size() < kColumn || number(trimmed(line.substr(0, kColumn))) != job) continue;
    if (found) return fail("find the job", subject, "squeue names it twice");
    found = line;
  }
  if (!found) return fail("find the job", subject, kEnded);
  return *found;
}

std::optional<bool> flag(std::string_view text) {
  if (text == "0") return false;
  if (text == "1") return true;
  return std::nullopt;
}

// "(null)", "N/A" or nothing: not asked for.
bool asked(std::string_view text) {
  return !text.empty() && text != "(null)" && text != "N/A";
}

Result<std::vector<std::string>> node_list(std::string_view text) {
  if (!asked(text)) return std::vector<std::string>{};
  return expand_node_list(text);
}

// Our line without what stands in quotes: a reason may hold what a user wrote, and count for nothing.
std::string unquoted(std::string_view line) {
  std::string bare;
  while (!line.empty()) {
    const std::size_t begin = line.find('"');
    const std::size_t end = begin == std::string_view::npos ? begin : line.find('"', begin + 1);
    if (end == std::string_view::npos) return bare + std::string(line);
    bare += line.substr(0, begin);
    line.remove_prefix(end + 1);
  }
  return bare;
}

// The value of "key=VALUE" among the words of our line, the last one: what we append comes last. `bare`:
// without quotes.
std::string_view word_of(std::string_view bare, std::string_view key) {
  std::string_view value;
  for (const std::string_view word : split(bare, " "))
    if (word.substr(0, key.size()) == key) value = word.substr(key.size());
  return value;
}

// "n3,n4/eth1,n1>n2" of `slow=n3(tx: 95.9Mbps),n4/eth1(rx: 1Gbps),n1>n2(link: 0Gbps),+2`; `key`: " slow=".
std::string culprits_of(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  std::string names;
  std::size_t depth = 0;
  for (const char c : line.substr(at + key.size())) {
    if (c == ' ' && depth == 0) break;
    if (c == '(') ++depth;
    if (depth == 0) names += c;
    if (c == ')' && depth > 0) --depth;
  }
  return names;
}

constexpr std::size_t kPreviousBytes = 160;  // a dozen names: the record has them all

std::string summary_of(std::string_view bare) {
  const std::string_view verdict = word_of(bare.substr(0, bare.find(' ')), "netcheck=");
  for (const char* key : {"slow=", "bad="})
    if (const std::string culprits = culprits_of(bare, fmt::format(" {}", key)); !culprits.empty())
      return printable(fmt::format("{}({}{})", verdict, key, culprits), kPreviousBytes);
  return printable(verdict, kPreviousBytes);
}

void add_deed(std::set<Deed>& deeds, std::optional<std::uint32_t> job, std::string_view comment) {
  const std::string bare = unquoted(own_line(comment));
  const auto time = number<std::int64_t>(word_of(bare, "acted="));
  if (job && time) deeds.insert({*job, *time, std::string(word_of(bare, "drain="))});
}

}  // namespace

std::string standing_format() {
  std::string format;
  for (const char* field : kStandingFields)
    format += fmt::format("{}{}:{}", format.empty() ? "" : ",", field, kColumn);
  return format;
}

Result<Standing> read_standing(std::string_view text, std::uint32_t job) {
  const auto line = line_of(text, job);
  if (!line) return tl::unexpected(line.error());
  std::array<std::string_view, kStandingColumns> columns;
  for (std::size_t i = 0; i < kStandingColumns; ++i)
    columns[i] = trimmed(line->substr(std::min(i * kColumn, line->size()), kColumn));
  const auto priority = number<std::uint64_t>(columns[kPriority]);
  const auto restarts = number(columns[kRestarts]), nodes = number(columns[kNodes]);
  const auto requeue = flag(columns[kRequeue]), contiguous = flag(columns[kContiguous]);
  if (!priority || !restarts || !nodes || !requeue || !contiguous)
    return fail("read", "squeue's answer", fmt::format("not understood: '{}'", printable(*line, 200)));
  return Standing{std::string(columns[kState]),
                  std::string(columns[kReason]),
                  *priority,
                  *restarts,
                  *nodes,
                  *requeue,
                  *contiguous,
                  asked(columns[kFeature]),
                  asked(columns[kGres]),
                  columns[kFeature].find_first_of("[*") != std::string_view::npos ||
                      columns[kFeature].size() + 1 >= kColumn};
}

std::string placement_format() {
  return fmt::format("%{}A|%v|%x|%n", kColumn);
}

Result<Placement> read_placement(std::string_view text, std::uint32_t job) {
  const auto line = line_of(text, job);
  if (!line) return tl::unexpected(line.error());
  const auto parts = split(*line, "|");
  if (parts.size() != 4)
    return fail("read", "squeue's answer", fmt::format("not understood: '{}'", printable(*line, 200)));
  auto excluded = node_list(trimmed(parts[2]));
  if (!excluded) return tl::unexpected(excluded.error());
  auto required = node_list(trimmed(parts[3]));
  if (!required) return tl::unexpected(required.error());
  Placement placement;
  placement.reserved = asked(trimmed(parts[1]));
  if (!excluded->empty()) placement.excluded_list = trimmed(parts[2]);
  placement.excluded = std::move(*excluded);
  placement.required = std::move(*required);
  return placement;
}

std::string nodes_format() {
  std::string format;
  for (const auto& [field, width] : kNodeColumns)
    format += fmt::format("{}{}:{}", format.empty() ? "" : ",", field, width);
  return format;
}

Result<std::vector<NodeFacts>> read_nodes(std::string_view text) {
  std::vector<NodeFacts> nodes;
  for (const std::string_view line : split(text, "\n")) {
    if (trimmed(line).empty()) continue;
    std::array<std::string, kNodeColumns.size()> columns;
    std::size_t at = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i] = trimmed(line.substr(std::min(at, line.size()), kNodeColumns[i].width));
      // Filled to the brim it may have been cut: unlike any other then.
      if (kNodeColumns[i].width > kColumn && columns[i].size() >= kNodeColumns[i].width)
        columns[i] += fmt::format("…{}", nodes.size());
      at += kNodeColumns[i].width;
    }
    if (columns[1].ends_with('*')) columns[1].pop_back();  // the default partition's mark
    const auto cpus = number<std::uint64_t>(columns[3]), memory = number<std::uint64_t>(columns[4]);
    if (columns[0].empty() || !cpus || !memory)
      return fail("read", "sinfo's answer", fmt::format("not understood: '{}'", printable(line, 200)));
    nodes.push_back({columns[0], columns[1], columns[2], *cpus, *memory, columns[5], columns[6], columns[7]});
  }
  if (nodes.empty()) return fail("read", "sinfo's answer", "it names no node");
  return nodes;
}

bool drained_by_us(const NodeFacts& node) {
  return node.reason.starts_with(kDrainReason.substr(0, kColumn)) && node.state.starts_with("drain");
}

std::string deeds_format() {
  return fmt::format("JobID:{},admin_comment:{}", kColumn, kDeedComment);
}

std::vector<Deed> read_deeds(std::string_view squeue, std::string_view sacct, std::int64_t since,
                             const Deed& own) {
  std::set<Deed> deeds;
  for (const std::string_view line : split(squeue, "\n"))
    if (line.size() > kColumn)
      add_deed(deeds, number(trimmed(line.substr(0, kColumn))), line.substr(kColumn));
  for (const std::string_view line : split(sacct, "\n"))
    if (const std::size_t bar = line.find('|'); bar != std::string_view::npos)
      add_deed(deeds, number(line.substr(0, bar)), line.substr(bar + 1));
  std::vector<Deed> recent;
  std::copy_if(deeds.begin(), deeds.end(), std::back_inserter(recent),
               [&](const Deed& deed) { return deed.time >= since && deed != own; });
  return recent;
}

std::optional<std::vector<std::string>> drains_announced(const std::vector<Deed>& deeds, std::int64_t since) {
  std::vector<std::string> nodes;
  for (const Deed& deed : deeds) {
    if (deed.time < since || deed.drain.empty()) continue;
    const auto names = expand_node_list(deed.drain);
    if (!names) return std::nullopt;
    nodes.insert(nodes.end(), names->begin(), names->end());
  }
  return nodes;
}

OwnHistory read_own_history(std::string_view comment) {
  const std::string bare = unquoted(own_line(comment));
  OwnHistory history;
  history.requeues = number(word_of(bare, "requeues=")).value_or(0);
  const std::string_view action = word_of(bare, "action=");
  if (action == name(Action::requeue) || action == name(Action::hold))
    history.previous = summary_of(bare);  // that run was refused
  else
    history.previous = printable(word_of(bare, "prev="), kPreviousBytes + 8);
  return history;
}

}  // namespace netcheck::prolog
