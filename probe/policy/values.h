// The kinds of values in netcheck.toml: how each is read, copied and shown. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "policy/settings.h"

namespace netcheck::policy {

/// What is wrong with a text, as a clause ("must be …"); "" when it is fine.
using Check = std::function<std::string(const std::string&)>;

[[nodiscard]] Value text(std::string Policy::*field, std::string form, const Check& check);
[[nodiscard]] Value path(std::string Policy::*field, bool may_be_empty);
/// With `or_none`, "none" is zero.
[[nodiscard]] Value duration(Ns Policy::*field, Ns least, Ns most, bool or_none = false);
[[nodiscard]] Value flag(bool Policy::*field);
[[nodiscard]] Value rate(std::optional<Rate> Policy::*field);
/// "none" where it is not set.
[[nodiscard]] Value count(std::optional<std::uint32_t> Policy::*field, std::uint32_t most);
/// The site's threshold: effective and the site's own at once.
[[nodiscard]] Value threshold();
[[nodiscard]] Value fraction(std::optional<double> Policy::*field);
/// "ignore", "warn" or "fail".
[[nodiscard]] Value weight(Flaw flaw);
[[nodiscard]] Value share(Share Policy::*field);
/// Of `form` ("device names or globs"), each of characters that names may have and of those in `extra`.
[[nodiscard]] Value texts(std::vector<std::string> Policy::*field, const std::string& form,
                          const std::string& example, const std::string& extra);
[[nodiscard]] Value actions(std::vector<Action> Policy::*field);
[[nodiscard]] Value memory();
[[nodiscard]] Value addresses();
[[nodiscard]] Value nccl_variables();

/// A text of letters, digits and `extra` alone.
[[nodiscard]] bool made_of(std::string_view text, std::string_view extra);
/// What is wrong with a list of texts, or "" and the texts in `out`.
[[nodiscard]] std::string read_texts(const toml::node& node, std::string_view form, std::string_view example,
                                     std::string_view extra, std::vector<std::string>& out);

template <typename Integer>
[[nodiscard]] Value whole(Integer Policy::*field, std::int64_t least, std::int64_t most) {
  std::string form = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  return {.form = form,
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* number = node.as_integer();
            if (number == nullptr || number->get() < least || number->get() > most) return "must be " + form;
            policy.*field = static_cast<Integer>(number->get());
            return {};
          },
          .copy = [=](Policy& to, const Policy& from) { to.*field = from.*field; },
          .show = [=](const Policy& policy) { return Json(policy.*field); }};
}

/// One of `choices`, each with a name().
template <typename Choice>
[[nodiscard]] Value choice(Choice Policy::*field, std::vector<Choice> choices) {
  std::string form;
  for (const Choice one : choices)
    form += (form.empty() ? "\"" : one == choices.back() ? " or \"" : ", \"") + std::string(name(one)) + "\"";
  return {.form = form,
          .read = [=, all = std::move(choices)](Policy& policy, const toml::node& node) -> std::string {
            const auto* word = node.as_string();
            for (const Choice one : all) {
              if (word == nullptr || word->get() != name(one)) continue;
              policy.*field = one;
              return {};
            }
            return "must be " + form;
          },
          .copy = [=](Policy& to, const Policy& from) { to.*field = from.*field; },
          .show = [=](const Policy& policy) { return Json(std::string(name(policy.*field))); }};
}

}  // namespace netcheck::policy
