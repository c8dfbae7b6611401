#include "policy/comment.h"

#include <algorithm>

#include "policy/request.h"

namespace netcheck {
namespace {

constexpr std::string_view kWord = "netcheck";
constexpr std::string_view kBetweenWords = " \t\n\v\f\r";

/// The SPEC of a word that asks, "" without one; nullopt of any other word.
std::optional<std::string_view> asked_by(std::string_view word) {
  if (!word.starts_with(kWord)) return std::nullopt;
  word.remove_prefix(kWord.size());
  if (word.empty()) return word;
  if (word.front() != '=') return std::nullopt;
  return word.substr(1);
}

}  // namespace

std::optional<std::string> request_in_comment(std::string_view comment) {
  std::optional<std::string> request;
  while (!comment.empty()) {
    const std::string_view word = comment.substr(0, comment.find_first_of(kBetweenWords));
    comment.remove_prefix(std::min(comment.size(), word.size() + 1));
    const auto spec = asked_by(word);
    if (!spec) continue;
    if (!request) request.emplace();
    if (spec->empty()) continue;
    if (!request->empty()) *request += ',';
    *request += *spec;
  }
  if (request) *request = carry_spec(*request);
  return request;
}

}  // namespace netcheck
