#include "system/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <set>
#include <string>

#include "system/descriptor.h"

namespace netcheck::system {

namespace {

constexpr int kStartTimeField = 22, kStateField = 3, kParentField = 4;  // proc(5)

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::vector<ProcessStat> all_processes() {
  std::vector<ProcessStat> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    const auto pid = number<pid_t>(entry->d_name);
    if (!pid) continue;
    if (const auto stat = stat_of(*pid)) all.push_back(*stat);
  }
  return all;
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
  const std::size_t command_begin = text.find(" (");
  const std::size_t command_end = text.rfind(')');
  if (command_begin == std::string_view::npos || command_end == std::string_view::npos) return std::nullopt;
  const auto pid = number<pid_t>(text.substr(0, command_begin));
  text.remove_prefix(command_end + 1);
  ProcessStat stat;
  for (int field = kStateField; field <= kStartTimeField; ++field) {
    const std::string_view word = next_word(text);
    if (word.empty()) return std::nullopt;
    if (field == kStateField) stat.state = word.front();
    if (field == kParentField) stat.parent = number<pid_t>(word).value_or(0);
    if (field == kStartTimeField) stat.start_time = number<std::uint64_t>(word).value_or(0);
  }
  if (!pid) return std::nullopt;
  stat.pid = *pid;
  return stat;
}

std::optional<ProcessStat> stat_of(pid_t pid) {
  const Descriptor file(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 1024> text{};  // 52 numbers and a command of 16 bytes
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(got)});
}

std::vector<ProcessStat> descendants_of(pid_t ancestor) {
  const std::vector<ProcessStat> all = all_processes();
  std::set<pid_t> below{ancestor};
  std::vector<ProcessStat> found;
  // A child can have a smaller number than its parent, so pass until nothing is added.
  for (bool added = true; added;) {
    added = false;
    for (const ProcessStat& process : all) {
      if (!below.contains(process.parent) || below.contains(process.pid)) continue;
      below.insert(process.pid);
      found.push_back(process);
      added = true;
    }
  }
  return found;
}

}  // namespace netcheck::system
