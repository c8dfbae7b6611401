// See switches.h.
#include "prolog/switches.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <system_error>
#include <utility>

#include "contract/job.h"
#include "prolog/columns.h"
#include "prolog/controller.h"

namespace netcheck::prolog {
namespace {

constexpr const char* kUsualFolder = "/etc/slurm";  // Slurm's default, where the prolog is told of no other
/// 16,384 nodes named one by one take a third of it.
constexpr std::uintmax_t kMaxFileBytes = 1u << 20;

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

/// Lines as Slurm reads them: without comments, those that end in a backslash joined with the next.
std::vector<std::string> lines_of(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\r'; }, ' ');
  std::vector<std::string> lines;
  bool goes_on = false;
  for (const std::string_view raw : split(text, "\n")) {
    std::string_view line = raw.substr(0, raw.find('#'));
    const std::size_t end = line.find_last_not_of(' ');
    const bool continued = end != std::string_view::npos && line[end] == '\\';
    if (continued) line = line.substr(0, end);
    if (goes_on)
      lines.back() += line;
    else
      lines.emplace_back(line);
    goes_on = continued;
  }
  return lines;
}

/// "Key=value" words of a line, keys in lower case.
std::map<std::string, std::string> words_of(std::string_view line) {
  std::map<std::string, std::string> words;
  for (const std::string_view word : split(line, " "))
    if (const auto equals = word.find('='); equals != std::string_view::npos)
      words[lower(word.substr(0, equals))] = word.substr(equals + 1);
  return words;
}

}  // namespace

Result<Switches> Switches::parse(std::string_view text) {
  Switches switches;
  std::size_t leaf = 0;
  for (const std::string& line : lines_of(std::string(text))) {
    if (lower(trimmed(line)).starts_with("include"))
      return fail("read", "topology.conf", "it includes another file, which is not followed");
    const auto words = words_of(line);
    const auto nodes = words.find("nodes");
    if (nodes == words.end() || (!words.contains("switchname") && !words.contains("blockname"))) continue;
    auto names = expand_node_list(nodes->second);
    if (!names) return tl::unexpected(names.error());
    const std::string name = std::to_string(leaf++);  // by line: a switch may go by no name of its own
    for (const std::string& node : *names)
      switches.leaves_[node].insert(name);
  }
  return switches;
}

bool Switches::share(const std::string& a, const std::string& b) const {
  if (leaves_.empty()) return true;
  const auto of_a = leaves_.find(a), of_b = leaves_.find(b);
  if (of_a == leaves_.end() || of_b == leaves_.end()) return false;
  return std::ranges::any_of(of_a->second, [&](const auto& leaf) { return of_b->second.contains(leaf); });
}

bool Switches::part(const std::vector<std::string>& nodes) const {
  return std::ranges::any_of(nodes, [&](const auto& node) { return !share(nodes.front(), node); });
}

std::filesystem::path topology_file() {
  const std::string conf = slurm_conf();
  return (conf.empty() ? std::filesystem::path(kUsualFolder) : std::filesystem::path(conf).parent_path()) /
         "topology.conf";
}

Result<Switches> read_switches(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) return Switches{};
  const auto refuse = [&](const char* why) { return fail("read the switches", file.string(), why); };
  if (status.type() != std::filesystem::file_type::regular) return refuse("it is no file that can be read");
  const auto size = std::filesystem::file_size(file, error);
  if (error || size > kMaxFileBytes) return refuse("it is larger than 1 MiB");
  std::ifstream stream(file, std::ios::binary);
  std::string text(size, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  if (!stream) return refuse("it cannot be read");
  return Switches::parse(text);
}

}  // namespace netcheck::prolog
