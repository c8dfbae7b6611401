// The notice and the deadline as text, strictly written and strictly read. Pure; compiled into the plugin as
// well.
//
//   netcheck-notice=1
//   cluster=c1
//   job=17
//   restart=0
//   boot=0d3ad1b1-…
//   leader=1
//   line=netcheck=pass busbw=…
//   NETCHECK_VERDICT=pass
#include "contract/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace netcheck {

namespace {

constexpr std::size_t kMaxValueBytes = 1'024;  ///< the line in sacct has the same limit
constexpr std::size_t kMaxEnvironment = 32;    ///< far more than there are variables
constexpr std::size_t kMaxIdentityBytes = 64;  ///< of a cluster's name, of a boot id (36)
constexpr std::string_view kFormat = "netcheck-notice";
constexpr std::string_view kDeadline = "deadline ";
constexpr std::string_view kEnvironmentPrefix = "NETCHECK_";

bool is_environment_name(std::string_view name) {
  return name.starts_with(kEnvironmentPrefix) && name.size() > kEnvironmentPrefix.size() &&
         name.size() <= kMaxIdentityBytes && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

bool is_identity(std::string_view text) {
  return !text.empty() && text.size() <= kMaxIdentityBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                  c == '.' || c == '-';
         });
}

tl::unexpected<Error> refuse(std::string reason) {
  return fail("read", "the notice", std::move(reason));
}

/// The keys every notice has, each once, in any order.
struct Reading {
  Notice notice;
  std::map<std::string, bool, std::less<>> missing{{std::string(kFormat), true},
                                                   {"cluster", true},
                                                   {"job", true},
                                                   {"restart", true},
                                                   {"boot", true},
                                                   {"leader", true},
                                                   {"line", true}};
};

bool set_number(std::string_view value, std::uint32_t& out) {
  const char* last = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), last, out);
  return !value.empty() && error == std::errc{} && stop == last;
}

bool set_field(Notice& notice, std::string_view key, std::string_view value) {
  if (key == kFormat) return value == "1";
  if (key == "job") return set_number(value, notice.run.job) && notice.run.job != 0;
  if (key == "restart") return set_number(value, notice.run.restart);
  if (key == "leader") {
    notice.leader = value == "1";
    return value == "0" || value == "1";
  }
  if (key == "cluster" || key == "boot") {
    (key == "boot" ? notice.boot_id : notice.run.cluster) = value;
    return is_identity(value);
  }
  notice.line = value;
  return value.size() <= kMaxValueBytes;
}

Result<void> read_entry(Reading& reading, std::string_view entry) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return refuse("a line without '='");
  const std::string_view key = entry.substr(0, equals), value = entry.substr(equals + 1);
  if (const auto field = reading.missing.find(key); field != reading.missing.end()) {
    if (!field->second) return refuse(fmt::format("'{}' is there twice", key));
    field->second = false;
    if (!set_field(reading.notice, key, value)) return refuse(fmt::format("'{}' has a wrong value", key));
    return {};
  }
  if (!is_environment_name(key)) return refuse(fmt::format("unknown key '{}'", printable(key, 40)));
  if (value.size() > kMaxValueBytes) return refuse(fmt::format("'{}' is too long", key));
  auto& environment = reading.notice.environment;
  if (environment.size() == kMaxEnvironment) return refuse("too many variables");
  if (!environment.emplace(key, value).second) return refuse(fmt::format("'{}' is there twice", key));
  return {};
}

}  // namespace

std::string notice_path(std::string_view run_directory, std::uint32_t job) {
  return fmt::format("{}/notices/{}", run_directory, job);
}

std::string write_notice(const Notice& notice) {
  std::string text =
      fmt::format("{}=1\ncluster={}\njob={}\nrestart={}\nboot={}\nleader={}\nline={}\n", kFormat,
                  notice.run.cluster, notice.run.job, notice.run.restart, notice.boot_id,
                  notice.leader ? 1 : 0, printable(notice.line, kMaxValueBytes));
  std::size_t count = 0;
  for (const auto& [name, value] : notice.environment) {
    const std::string entry = fmt::format("{}={}\n", name, printable(value, kMaxValueBytes));
    // A reader refuses a whole notice for one bad entry: such an entry is better left out.
    if (!is_environment_name(name) || text.size() + entry.size() > kNoticeMaxBytes) continue;
    if (++count > kMaxEnvironment) break;
    text += entry;
  }
  return text;
}

Result<Notice> read_notice(std::string_view text) {
  if (text.size() > kNoticeMaxBytes)
    return refuse(fmt::format("it is larger than {} bytes", kNoticeMaxBytes));
  if (text.empty() || text.back() != '\n') return refuse("it is cut off");
  Reading reading;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (printable(entry, kNoticeMaxBytes) != entry) return refuse("it has control characters or is no UTF-8");
    if (auto read = read_entry(reading, entry); !read) return tl::unexpected(read.error());
  }
  for (const auto& [key, missing] : reading.missing)
    if (missing) return refuse(fmt::format("'{}' is missing", key));
  return std::move(reading.notice);
}

std::string announce_deadline(std::chrono::milliseconds left) {
  return fmt::format("{}{}", kDeadline,
                     std::clamp(left, std::chrono::milliseconds(1), kLongestAnnounced).count());
}

std::optional<std::chrono::milliseconds> read_announced(std::string_view line) {
  if (!line.starts_with(kDeadline)) return std::nullopt;
  std::uint32_t left = 0;
  if (!set_number(line.substr(kDeadline.size()), left) || left == 0) return std::nullopt;
  const std::chrono::milliseconds announced(left);
  if (announced > kLongestAnnounced) return std::nullopt;
  return announced;
}

}  // namespace netcheck
