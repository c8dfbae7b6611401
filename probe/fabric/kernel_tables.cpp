// See kernel_tables.h.
#include "fabric/kernel_tables.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>

namespace netcheck::fabric {
namespace {

std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlank = " \t";
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  const auto word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

/// The next line that begins with the section's name, without it; empty: there is none.
std::string_view take_section(std::string_view& text, std::string_view section) {
  while (!text.empty())
    if (const auto line = take_line(text); line.starts_with(section)) return line.substr(section.size());
  return {};
}

std::string_view word_at(std::string_view line, std::size_t column) {
  std::string_view word = take_word(line);
  while (column-- > 0)
    word = take_word(line);
  return word;
}

}  // namespace

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

std::optional<std::uint64_t> sum_in_section(std::string_view text, std::string_view section,
                                            const std::vector<std::string_view>& wanted) {
  auto names = take_section(text, section), values = take_section(text, section);
  std::uint64_t sum = 0;
  bool any = false;
  while (true) {
    const auto name = take_word(names), value = take_word(values);
    if (name.empty() || value.empty()) break;
    if (std::ranges::find(wanted, name) == wanted.end()) continue;
    std::uint64_t count = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), count).ec != std::errc())
      return std::nullopt;
    sum += count;
    any = true;
  }
  return any ? std::optional(sum) : std::nullopt;
}

std::uint64_t sum_of_lines(std::string_view text, const std::vector<std::string_view>& wanted) {
  std::uint64_t sum = 0;
  while (!text.empty()) {
    auto line = take_line(text);
    const auto name = take_word(line), value = take_word(line);
    std::uint64_t count = 0;
    std::from_chars(value.data(), value.data() + value.size(), count);
    if (std::ranges::find(wanted, name) != wanted.end()) sum += count;
  }
  return sum;
}

std::optional<std::vector<std::string>> words_below(std::string_view text, std::string_view name) {
  auto head = take_line(text);
  std::size_t column = 0;
  while (true) {
    const auto word = take_word(head);
    if (word.empty()) return std::nullopt;
    if (word == name) break;
    ++column;
  }
  std::vector<std::string> words;
  while (!text.empty())
    words.emplace_back(word_at(take_line(text), column));
  return words;
}

}  // namespace netcheck::fabric
