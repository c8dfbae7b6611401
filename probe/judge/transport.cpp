// See transport.h.
#include "judge/transport.h"

#include <algorithm>
#include <array>

#include "judge/evidence.h"

namespace netcheck::judge {
namespace {

/// Inside a node, or a help to what is told beside them. "NET": a way of which NCCL's log said no more.
constexpr std::array<std::string_view, 5> kSayNothing{"P2P", "SHM", "NVLS", "CollNet", "NET"};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view kind_of(std::string_view word) {
  return word.substr(0, word.find('/'));
}

/// All that nodes said.
std::vector<std::string> told(const History& history) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view transport) {
    for (std::string& word : ways_between_nodes(transport))
      if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  };
  for (const Done& done : history.done) {
    if (form_of(done) == nullptr) continue;
    add(done.transport);
    for (const NodeOutcome& outcome : done.outcomes)
      add(outcome.transport);
  }
  return words;
}

}  // namespace

std::vector<std::string> ways_between_nodes(std::string_view transport) {
  std::vector<std::string> words;
  while (!transport.empty()) {
    const std::size_t comma = std::min(transport.find(','), transport.size());
    std::string_view word = transport.substr(0, comma);
    transport.remove_prefix(std::min(comma + 1, transport.size()));
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    if (!word.empty() && std::ranges::find(kSayNothing, kind_of(word)) == kSayNothing.end())
      words.emplace_back(word);
  }
  return words;
}

std::optional<std::string> other_transport(const Plan& plan, const History& history) {
  const std::string& wanted = plan.thresholds.transport;
  if (wanted.empty()) return std::nullopt;
  for (const std::string& word : told(history))
    if (!std::ranges::equal(kind_of(word), wanted, {}, lower, lower)) return word;
  return std::nullopt;
}

bool transport_unknown(const Plan& plan, const History& history) {
  const auto formed = [](const Done& done) {
    return form_of(done) != nullptr && !form_of(done)->teams.empty();
  };
  return !plan.thresholds.transport.empty() && std::ranges::any_of(history.done, formed) &&
         told(history).empty();
}

}  // namespace netcheck::judge
