// Slurm's node lists: "n[1-3,07-09],login1" to names in rank order and back. Pure.
#include "contract/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace netcheck {

namespace {

/// A DNS name's limit; Slurm's own node names are at most 64 bytes (HOST_NAME_MAX).
constexpr std::size_t kMaxNodeNameBytes = 255;
/// kMaxNodes names of full length written out, with commas: no list is longer.
constexpr std::size_t kMaxListBytes = kMaxNodes * 65;

tl::unexpected<Error> refuse(std::string_view piece, std::string reason) {
  return fail("read the node list", fmt::format("'{}'", printable(piece, 80)), std::move(reason));
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-';
}

std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* last = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), last, value);
  if (digits.empty() || error != std::errc{} || stop != last) return std::nullopt;
  return value;
}

/// "1-3,07" → "1", "2", "3", "07". The width of a range is that of its first number, as in Slurm.
Result<std::vector<std::string>> expand_ranges(std::string_view ranges, std::string_view piece) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const auto low = number(first);
    const auto high = dash == std::string_view::npos ? low : number(range.substr(dash + 1));
    if (!low || !high) return refuse(piece, fmt::format("'{}' is no range of numbers", printable(range, 40)));
    if (*high < *low) return refuse(piece, fmt::format("the range '{}' falls", range));
    if (*high - *low >= kMaxNodes - out.size())
      return refuse(piece, fmt::format("more than {} nodes", kMaxNodes));
    for (std::uint64_t value = *low; value <= *high; ++value)
      out.push_back(fmt::format("{:0{}}", value, first.size()));
    if (comma == std::string_view::npos) return out;
    ranges.remove_prefix(comma + 1);
  }
}

/// "r[1-2]n[3-4]" as prefixes and the choices that follow each.
struct Pattern {
  std::vector<std::string> prefixes;
  std::vector<std::vector<std::string>> choices;
  std::string tail;  ///< only of a name without brackets: Slurm takes none after the last one
};

Result<Pattern> parse_pattern(std::string_view piece) {
  Pattern pattern;
  std::string_view rest = piece;
  for (std::size_t open = rest.find('['); open != std::string_view::npos; open = rest.find('[')) {
    const std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) return refuse(piece, "a '[' is not closed");
    auto choices = expand_ranges(rest.substr(open + 1, close - open - 1), piece);
    if (!choices) return tl::unexpected(choices.error());
    pattern.prefixes.emplace_back(rest.substr(0, open));
    pattern.choices.push_back(std::move(*choices));
    rest.remove_prefix(close + 1);
  }
  if (!pattern.choices.empty() && !rest.empty()) return refuse(piece, "text after the last ']'");
  pattern.tail = rest;
  for (const std::string& prefix : pattern.prefixes)
    if (!std::all_of(prefix.begin(), prefix.end(), is_name_character))
      return refuse(piece, "a node's name is letters, digits, '_', '.' and '-'");
  if (!std::all_of(rest.begin(), rest.end(), is_name_character))
    return refuse(piece, "a node's name is letters, digits, '_', '.' and '-'");
  return pattern;
}

/// Appends every name of `pattern`. Slurm's order: the last bracket turns fastest, then the first, the
/// second, and so on ("a[1-2]b[3-4]c[5-6]": a1b3c5 a1b3c6 a2b3c5 …).
Result<void> append_names(const Pattern& pattern, std::string_view piece, std::vector<std::string>& out) {
  std::size_t count = 1;
  for (const auto& choice : pattern.choices) {
    count *= choice.size();
    if (count > kMaxNodes) break;
  }
  if (count > kMaxNodes - out.size()) return refuse(piece, fmt::format("more than {} nodes", kMaxNodes));
  const std::size_t depth = pattern.choices.size();
  for (std::size_t turn = 0; turn < count; ++turn) {
    std::vector<std::size_t> pick(depth);
    std::size_t rest = turn;
    for (std::size_t k = 0; k < depth; ++k) {
      const std::size_t bracket = k == 0 ? depth - 1 : k - 1;
      pick[bracket] = rest % pattern.choices[bracket].size();
      rest /= pattern.choices[bracket].size();
    }
    std::string name;
    for (std::size_t k = 0; k < depth; ++k)
      name += pattern.prefixes[k] + pattern.choices[k][pick[k]];
    name += pattern.tail;
    if (name.size() > kMaxNodeNameBytes) return refuse(piece, "a node's name is too long");
    out.push_back(std::move(name));
  }
  return {};
}

/// A name as a prefix and the number it ends in, for folding. Names whose number would not survive printing
/// (too long) have none.
struct Numbered {
  std::string_view prefix, digits;
  std::uint64_t value = 0;
};

std::optional<Numbered> numbered(std::string_view name) {
  constexpr std::size_t kMaxDigits = 18;  // fits 64 bits
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t from = last == std::string_view::npos ? 0 : last + 1;
  const std::string_view digits = name.substr(from);
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  return Numbered{name.substr(0, from), digits, *number(digits)};
}

/// True when `next` is what a range that has reached `value` prints next.
bool continues(const Numbered& first, std::uint64_t value, const Numbered& next) {
  return next.prefix == first.prefix && next.value == value + 1 &&
         next.digits == fmt::format("{:0{}}", next.value, first.digits.size());
}

/// The piece that begins at `from`, and how many names it covers.
std::pair<std::string, std::size_t> fold_one(const std::vector<std::string>& names, std::size_t from) {
  const auto first = numbered(names[from]);
  if (!first) return {names[from], 1};
  std::size_t covered = 1;
  std::string_view last = first->digits;
  for (std::uint64_t value = first->value; from + covered < names.size(); ++covered, ++value) {
    const auto next = numbered(names[from + covered]);
    if (!next || !continues(*first, value, *next)) break;
    last = next->digits;
  }
  if (covered == 1) return {names[from], 1};
  return {fmt::format("{}[{}-{}]", first->prefix, first->digits, last), covered};
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view list) {
  if (list.size() > kMaxListBytes) return refuse(list, "it is too long");
  std::vector<std::string> out;
  std::size_t from = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size()) {
      if (list[i] == '[' || list[i] == ']') {
        if ((list[i] == '[') == inside) return refuse(list, "its brackets do not match");
        inside = !inside;
      }
      if (list[i] != ',' || inside) continue;
    }
    const std::string_view piece = list.substr(from, i - from);
    from = i + 1;
    if (inside) return refuse(piece, "a '[' is not closed");
    if (piece.empty()) continue;  // Slurm reads "a,,b" as two names
    auto pattern = parse_pattern(piece);
    if (!pattern) return tl::unexpected(pattern.error());
    if (auto added = append_names(*pattern, piece, out); !added) return tl::unexpected(added.error());
  }
  if (out.empty()) return refuse(list, "it names no node");
  return out;
}

std::string fold_node_list(const std::vector<std::string>& names, std::size_t max_bytes) {
  std::string whole, cut;
  for (std::size_t i = 0; i < names.size();) {
    const auto [piece, covered] = fold_one(names, i);
    if (!whole.empty()) whole += ',';
    whole += piece;
    i += covered;
    const std::size_t left = names.size() - i;
    if (left == 0 && whole.size() <= max_bytes) return whole;
    // The longest beginning that leaves room to say how many are not shown.
    std::string candidate = left == 0 ? whole : fmt::format("{}…(+{})", whole, left);
    if (candidate.size() <= max_bytes) cut = std::move(candidate);
    if (whole.size() > max_bytes) break;
  }
  if (cut.empty() && !names.empty()) return fmt::format("…(+{})", names.size());
  return cut;
}

}  // namespace netcheck
