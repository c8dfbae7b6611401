// "Did you mean …?": the known word nearest to a mistyped one. Pure, header only: the plugin compiles it too.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace netcheck {

/// Levenshtein distance, counting an exchange of neighbours as two.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

/// The candidate fewest edits away from `word`, if that is at most a third of its letters (two at least);
/// else "".
template <typename Candidates>
[[nodiscard]] std::string_view nearest(std::string_view word, const Candidates& candidates) {
  constexpr std::size_t kLongestWord = 64;  // beyond that nobody mistyped anything, and time is square
  if (word.size() > kLongestWord) return {};
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best || distance >= candidate.size()) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

}  // namespace netcheck
