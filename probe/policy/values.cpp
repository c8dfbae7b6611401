// The kinds of values: type, range and form of each. Pure.
#include "policy/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "contract/nccl_variable.h"

namespace netcheck::policy {

namespace {

constexpr std::size_t kMaxTextBytes = 255;
constexpr std::size_t kMaxPathBytes = 1'024;
constexpr std::size_t kMaxEntries = 64;            ///< device globs: a node has a dozen rails at most
constexpr std::uint64_t kMaxMemory = 64ull << 30;  ///< a message of 64 GiB outlasts every deadline
/// NCCL's variables; the node's hello has each as a term of its own, of at most 64.
constexpr std::size_t kMaxVariables = 32;
constexpr const char* kNone = "none";

template <typename Field>
std::function<void(Policy&, const Policy&)> copies(Field Policy::*field) {
  return [=](Policy& to, const Policy& from) { to.*field = from.*field; };
}

/// The text of a node; `wrong` is set when it is none or not fit for one line.
std::optional<std::string> text_of(const toml::node& node, std::size_t max_bytes, std::string& wrong) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    wrong = "must be text in quotes";
    return std::nullopt;
  }
  if (printable(text->get(), max_bytes) != text->get()) {
    wrong = fmt::format("must be one line of at most {} bytes", max_bytes);
    return std::nullopt;
  }
  return text->get();
}

/// "none" or a rate; `wrong` is set when it is neither.
std::optional<Rate> read_rate(const toml::node& node, std::string& wrong) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    wrong = "must be a rate in quotes, for example \"400Gbps\", or \"none\"";
    return std::nullopt;
  }
  if (text->get() == kNone) return std::nullopt;
  const auto rate = parse_rate(text->get());
  if (!rate) wrong = describe(rate.error());
  return rate ? std::optional(*rate) : std::nullopt;
}

Json shown(const std::optional<Rate>& rate) {
  return rate ? format_rate(*rate, true) : std::string(kNone);
}

constexpr const char* kRateForm = "a rate, or \"none\"";

}  // namespace

bool made_of(std::string_view text, std::string_view extra) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string_view::npos;
  });
}

std::string written(Ns duration) {
  if (duration == Ns::zero()) return kNone;
  if (duration > std::chrono::minutes(1) && duration % std::chrono::minutes(1) == Ns::zero())
    return fmt::format("{}min", duration / std::chrono::minutes(1));
  std::string text = format_duration(duration);
  if (const auto zero = text.find(".0s"); zero != std::string::npos) text.erase(zero, 2);
  return text;
}

Value text(std::string Policy::*field, std::string form, const Check& check) {
  return {.form = std::move(form),
          .read =
              [=](Policy& policy, const toml::node& node) {
                std::string wrong;
                auto value = text_of(node, kMaxPathBytes, wrong);
                if (!value) return wrong;
                wrong = check(*value);
                if (wrong.empty()) policy.*field = std::move(*value);
                return wrong;
              },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return Json(policy.*field); }};
}

Value path(std::string Policy::*field, bool may_be_empty) {
  return text(
      field, may_be_empty ? "an absolute path, or \"\"" : "an absolute path",
      [=](const std::string& value) -> std::string {
        if (value.empty() && may_be_empty) return {};
        if (!value.starts_with('/') || value.find("/../") != std::string::npos || value.ends_with("/.."))
          return "must be an absolute path";
        return {};
      });
}

Value duration(Ns Policy::*field, Ns least, Ns most, bool or_none) {
  return {.form = fmt::format("a time from {} to {}{}", written(least), written(most),
                              or_none ? ", or \"none\"" : ""),
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* text = node.as_string();
            if (text == nullptr) return "must be a time in quotes, for example \"8s\" or \"500ms\"";
            if (or_none && text->get() == kNone) {
              policy.*field = Ns::zero();
              return {};
            }
            const auto value = parse_duration(text->get());
            if (!value) return describe(value.error());
            if (*value < least || *value > most)
              return fmt::format("must be from {} to {}", written(least), written(most));
            policy.*field = *value;
            return {};
          },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return Json(written(policy.*field)); }};
}

Value flag(bool Policy::*field) {
  return {.form = "true or false",
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* flag = node.as_boolean();
            if (flag == nullptr) return "must be true or false";
            policy.*field = flag->get();
            return {};
          },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return Json(policy.*field); }};
}

Value rate(std::optional<Rate> Policy::*field) {
  return {.form = kRateForm,
          .read =
              [=](Policy& policy, const toml::node& node) {
                std::string wrong;
                const auto value = read_rate(node, wrong);
                if (wrong.empty()) policy.*field = value;
                return wrong;
              },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return shown(policy.*field); }};
}

Value threshold() {
  return {.form = kRateForm,
          .read =
              [](Policy& policy, const toml::node& node) {
                std::string wrong;
                const auto value = read_rate(node, wrong);
                if (wrong.empty()) policy.min = policy.site_min = value;
                return wrong;
              },
          .copy =
              [](Policy& to, const Policy& from) {
                to.min = from.min;
                to.site_min = from.site_min;
              },
          .show = [](const Policy& policy) { return shown(policy.min); }};
}

Value fraction(std::optional<double> Policy::*field) {
  return {.form = "a number above 0, at most 1, or \"none\"",
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* word = node.as_string();
            if (word != nullptr && word->get() == kNone) {
              policy.*field = std::nullopt;
              return {};
            }
            const auto number = node.value_exact<double>();
            if (!number && !node.is_integer())
              return "must be a number above 0, at most 1, for example 0.8, or \"none\"";
            const double value = number ? *number : static_cast<double>(node.as_integer()->get());
            if (!(value > 0 && value <= 1)) return "must be above 0 and at most 1";
            policy.*field = value;
            return {};
          },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return policy.*field ? Json(*(policy.*field)) : Json(kNone); }};
}

Value count(std::optional<std::uint32_t> Policy::*field, std::uint32_t most) {
  const std::string form = fmt::format("a whole number from 1 to {}, or \"none\"", most);
  return {.form = form,
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* word = node.as_string();
            const auto* number = node.as_integer();
            const bool none = word != nullptr && word->get() == kNone;
            if (!none && (number == nullptr || number->get() < 1 || number->get() > most))
              return "must be " + form;
            policy.*field = none ? std::nullopt : std::optional(static_cast<std::uint32_t>(number->get()));
            return {};
          },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return policy.*field ? Json(*(policy.*field)) : Json(kNone); }};
}

Value weight(Flaw flaw) {
  constexpr const char* kForm = "\"ignore\", \"warn\" or \"fail\"";
  return {.form = kForm,
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* word = node.as_string();
            const auto weight = parse_weight(word == nullptr ? "" : word->get());
            if (!weight) return fmt::format("must be {}", kForm);
            policy.findings.of(flaw) = *weight;
            return {};
          },
          .copy = [=](Policy& to, const Policy& from) { to.findings.of(flaw) = from.findings.of(flaw); },
          .show = [=](const Policy& policy) { return Json(std::string(name(policy.findings.of(flaw)))); }};
}

Value share(Share Policy::*field) {
  constexpr const char* kForm = "a whole number, or a share in quotes, for example \"1%\"";
  return {.form = kForm,
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            if (const auto* number = node.as_integer()) {
              if (number->get() < 0 || number->get() > UINT32_MAX) return fmt::format("must be {}", kForm);
              policy.*field = Share{.count = static_cast<std::uint32_t>(number->get())};
              return {};
            }
            const auto* text = node.as_string();
            constexpr std::size_t kMaxShare = 6;  // "99.99%"
            const std::string percent = text == nullptr ? "" : text->get();
            const bool plain = percent.size() > 1 && percent.size() <= kMaxShare && percent.back() == '%' &&
                               percent.find_first_not_of("0123456789.") == percent.size() - 1 &&
                               percent.front() != '.' && std::count(percent.begin(), percent.end(), '.') <= 1;
            const double value = plain ? std::stod(percent) : 0;
            if (!(value > 0 && value <= 100)) return fmt::format("must be {}", kForm);
            policy.*field = Share{.percent = value};
            return {};
          },
          .copy = copies(field),
          .show =
              [=](const Policy& policy) {
                const Share& share = policy.*field;
                return share.percent > 0 ? Json(fmt::format("{:g}%", share.percent)) : Json(share.count);
              }};
}

std::string read_texts(const toml::node& node, std::string_view form, std::string_view example,
                       std::string_view extra, std::vector<std::string>& out) {
  const auto* list = node.as_array();
  if (list == nullptr) return fmt::format("must be a list of texts, for example {}", example);
  if (list->size() > kMaxEntries) return fmt::format("must have at most {} entries", kMaxEntries);
  out.clear();
  for (const toml::node& part : *list) {
    const auto* one = part.as_string();
    if (one == nullptr || one->get().empty() || one->get().size() > kMaxEntries ||
        !made_of(one->get(), extra))
      return fmt::format("must be a list of {}, for example {}", form, example);
    out.push_back(one->get());
  }
  return {};
}

Value texts(std::vector<std::string> Policy::*field, const std::string& form, const std::string& example,
            const std::string& extra) {
  return {.form = "a list of " + form,
          .read =
              [=](Policy& policy, const toml::node& node) {
                std::vector<std::string> list;
                std::string wrong = read_texts(node, form, example, extra, list);
                if (wrong.empty()) policy.*field = std::move(list);
                return wrong;
              },
          .copy = copies(field),
          .show = [=](const Policy& policy) { return Json(policy.*field); }};
}

Value actions(std::vector<Action> Policy::*field) {
  std::string form = "a list of actions: " + all_actions();
  return {.form = form,
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* list = node.as_array();
            if (list == nullptr) return "must be " + form;
            std::vector<Action> out;
            for (const toml::node& part : *list) {
              const auto* word = part.as_string();
              const auto action = parse_action(word == nullptr ? "" : word->get());
              if (!action) return "must be " + form;
              if (std::find(out.begin(), out.end(), *action) == out.end()) out.push_back(*action);
            }
            policy.*field = std::move(out);
            return {};
          },
          .copy = copies(field),
          .show =
              [=](const Policy& policy) {
                Json list = Json::array();
                for (const Action action : policy.*field)
                  list.push_back(std::string(name(action)));
                return list;
              }};
}

Value memory() {
  constexpr const char* kForm =
      "must be \"default\" or a size in quotes from 1MiB to 64GiB, for example \"256MiB\"";
  return {.form = "\"default\", or a size from 1MiB to 64GiB",
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* text = node.as_string();
            if (text == nullptr) return kForm;
            std::string_view value = text->get();
            if (value == "default") {
              policy.memory = 0;
              return {};
            }
            unsigned shift = 0;
            if (value.ends_with("MiB")) shift = 20;
            if (value.ends_with("GiB")) shift = 30;
            if (shift == 0) return kForm;
            value.remove_suffix(3);
            constexpr std::size_t kMaxDigits = 5;  // 65536 MiB
            if (value.empty() || value.size() > kMaxDigits ||
                value.find_first_not_of("0123456789") != std::string_view::npos)
              return kForm;
            const std::uint64_t bytes = std::stoull(std::string(value)) << shift;
            if (bytes == 0 || bytes > kMaxMemory) return kForm;
            policy.memory = bytes;
            return {};
          },
          .copy = copies(&Policy::memory),
          .show =
              [](const Policy& policy) {
                return Json(policy.memory == 0 ? "default" : format_bytes(policy.memory));
              }};
}

Value addresses() {
  return {.form = "a table of node = \"host or address\"",
          .read = [](Policy& policy, const toml::node& node) -> std::string {
            constexpr const char* kForm = "must be a table of node = \"host or address\"";
            const auto* table = node.as_table();
            if (table == nullptr) return kForm;
            std::map<std::string, std::string> out;
            for (const auto& [key, value] : *table) {
              const auto* address = value.as_string();
              if (address == nullptr || address->get().empty() || address->get().size() > kMaxTextBytes ||
                  !made_of(address->get(), "_-.:%") || key.str().empty() || !made_of(key.str(), "_-."))
                return fmt::format("{}: '{}' is none", kForm, printable(key.str(), 64));
              out.emplace(key.str(), address->get());
            }
            policy.addresses = std::move(out);
            return {};
          },
          .copy = copies(&Policy::addresses),
          .show = [](const Policy& policy) { return Json(policy.addresses); }};
}

Value nccl_variables() {
  constexpr const char* kForm = "a table of NCCL_… = \"value\"";
  return {.form = kForm,
          .read = [=](Policy& policy, const toml::node& node) -> std::string {
            const auto* table = node.as_table();
            if (table == nullptr) return fmt::format("must be {}", kForm);
            if (table->size() > kMaxVariables)
              return fmt::format("must have at most {} entries", kMaxVariables);
            std::map<std::string, std::string> out;
            for (const auto& [key, value] : *table) {
              const std::string name = printable(key.str(), 64);
              const auto* text = value.as_string();
              if (text == nullptr) return fmt::format("must be {}: {} has no text in quotes", kForm, name);
              if (key.str() == "NCCL_ALGO") return "has NCCL_ALGO: that is 'algorithm'";
              if (auto wrong = wrong_nccl_variable(key.str(), text->get()); !wrong.empty())
                return fmt::format("has {}: {}", name, wrong);
              out.emplace(key.str(), text->get());
            }
            policy.nccl_env = std::move(out);
            return {};
          },
          .copy = copies(&Policy::nccl_env),
          .show = [](const Policy& policy) { return Json(policy.nccl_env); }};
}

}  // namespace netcheck::policy
