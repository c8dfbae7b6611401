// plugstack.conf, as Slurm reads it: `required|optional PLUGIN ARGUMENT…`, `include PATTERN`, comments.
#include <fmt/format.h>

#include <filesystem>

#include "doctor/plugin.h"

namespace netcheck::doctor {

namespace {

constexpr int kMostDepth = 8;  // of includes: nobody nests them, and a file may include itself
constexpr std::size_t kMostLines = 1'000;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    if (line[at] == '#') break;
    words.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

void read_into(Plugstack& all, const std::string& path, const PlugstackSource& source, int depth);

void include(Plugstack& all, const std::string& pattern, const std::string& from,
             const PlugstackSource& source, int depth) {
  const std::filesystem::path whole = pattern.starts_with('/')
                                          ? std::filesystem::path(pattern)
                                          : std::filesystem::path(from).parent_path() / pattern;
  for (const std::string& file : source.expand(whole.string()))
    read_into(all, file, source, depth + 1);
}

void read_into(Plugstack& all, const std::string& path, const PlugstackSource& source, int depth) {
  const auto text = source.read(path);
  if (!text) {
    all.unread.push_back(path);
    return;
  }
  std::string_view left = *text;
  for (unsigned number = 1; !left.empty() && all.lines.size() < kMostLines; ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    std::vector<std::string> words = words_of(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    if (words.size() < 2) continue;
    if (words[0] == "include") {
      if (depth < kMostDepth) include(all, words[1], path, source, depth);
    } else if (words[0] == "required" || words[0] == "optional") {
      all.lines.push_back({.place = fmt::format("{}:{}", path, number),
                           .required = words[0] == "required",
                           .plugin = words[1],
                           .arguments = {words.begin() + 2, words.end()}});
    }
  }
}

}  // namespace

Plugstack parse_plugstack(const std::string& path, const PlugstackSource& source) {
  Plugstack all;
  read_into(all, path, source, 0);
  return all;
}

}  // namespace netcheck::doctor
