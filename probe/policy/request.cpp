// The value of --netcheck. Pure, hostile input; compiled into the plugin as well.
#include "policy/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/nearest.h"

namespace netcheck {

namespace {

constexpr std::array<std::string_view, 4> kKeys{"min", "op", "time", "action"};
constexpr std::array<std::string_view, 4> kActions{"annotate", "hold", "requeue", "cancel"};  // as in Action
constexpr std::array<std::string_view, 6> kOperations{"auto",           "all_gather", "all_reduce",
                                                      "reduce_scatter", "alltoall",   "broadcast"};

constexpr std::string_view kNoValue = "(null)";  // as printf writes a null pointer
constexpr std::string_view kCarriedRefusal = "(refused: ";

/// Why `spec` is not even looked at; "" when it is.
std::string unfit(std::string_view spec) {
  if (spec.size() > kMaxSpecBytes) return fmt::format("it is longer than {} bytes", kMaxSpecBytes);
  if (printable(spec) != spec) return "it has control characters or is no UTF-8";
  return {};
}

tl::unexpected<Error> refuse(std::string_view spec, std::string reason) {
  return fail("read", fmt::format("--netcheck={}", printable(spec, 64)), std::move(reason), kRequestExample);
}

/// "op 'sum': they are …", or the one that was meant.
template <typename Words>
std::string unknown_word(std::string_view key, std::string_view value, const Words& words) {
  const std::string_view meant = nearest(value, words);
  return fmt::format("{} '{}': {}", key, printable(value, 32),
                     meant.empty() ? fmt::format("they are {}", fmt::join(words, ", "))
                                   : fmt::format("did you mean '{}'?", meant));
}

/// Which of the parts that commas make of `spec` has nothing in it; "": none.
std::string_view empty_part(std::string_view spec) {
  if (spec.starts_with(',')) return "before its first comma";
  if (spec.ends_with(',')) return "after its last comma";
  return spec.find(",,") == std::string_view::npos ? "" : "between two of its commas";
}

/// What is wrong with `value`; empty when it was taken.
std::string set(Request& request, std::string_view key, std::string_view value) {
  if (key == "min") {
    auto rate = parse_rate(value);
    if (!rate) return fmt::format("min '{}': {}", printable(value, 32), rate.error().reason);
    request.min = *rate;
  } else if (key == "time") {
    auto time = parse_duration(value);
    if (!time) return fmt::format("time '{}': {}", printable(value, 32), time.error().reason);
    if (*time < kShortestCheck)
      return fmt::format("time '{}': it must be at least {}", printable(value, 32), "2s");
    request.time = *time;
  } else if (key == "action") {
    request.action = parse_action(value);
    if (!request.action) return unknown_word(key, value, kActions);
  } else {
    if (!is_operation(value)) return unknown_word(key, value, kOperations);
    request.op = value;
  }
  return {};
}

}  // namespace

bool is_operation(std::string_view name) {
  return std::find(kOperations.begin(), kOperations.end(), name) != kOperations.end();
}

std::string_view name(Action action) {
  return kActions.at(static_cast<std::size_t>(action));
}

std::optional<Action> parse_action(std::string_view name) {
  const auto found = std::find(kActions.begin(), kActions.end(), name);
  if (found == kActions.end()) return std::nullopt;
  return static_cast<Action>(found - kActions.begin());
}

std::string all_actions() {
  return fmt::format("{}", fmt::join(kActions, ", "));
}

std::string_view given_spec(std::string_view argument) {
  return argument == kNoValue ? std::string_view() : argument;
}

std::string carry_spec(std::string_view spec) {
  const std::string why = unfit(spec);
  return why.empty() ? std::string(given_spec(spec)) : fmt::format("{}{})", kCarriedRefusal, why);
}

Result<Request> parse_request(std::string_view spec) {
  spec = given_spec(spec);
  if (spec.empty()) return Request{};
  if (const std::string why = unfit(spec); !why.empty()) return refuse(spec, why);
  if (spec.starts_with(kCarriedRefusal))
    return refuse("…",
                  std::string(spec.substr(kCarriedRefusal.size(), spec.size() - kCarriedRefusal.size() - 1)));
  Request request;
  if (spec.find_first_of("=,") == std::string_view::npos) {
    if (const std::string wrong = set(request, "min", spec); !wrong.empty()) return refuse(spec, wrong);
    return request;
  }
  if (const std::string_view where = empty_part(spec); !where.empty())
    return refuse(spec, fmt::format("nothing stands {}: take that comma out", where));
  std::array<bool, kKeys.size()> seen{};
  for (bool more = true; more;) {
    const std::size_t comma = spec.find(',');
    const std::string_view pair = spec.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) spec.remove_prefix(comma + 1);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos && parse_rate(pair))
      return refuse(pair, fmt::format("a rate alone has nothing beside it: write min={}", pair));
    if (equals == std::string_view::npos)
      return refuse(pair, fmt::format("'{}' is no key=value", printable(pair, 32)));
    const std::string_view key = pair.substr(0, equals), value = pair.substr(equals + 1);
    const auto known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end()) {
      const std::string_view meant = nearest(key, kKeys);
      return refuse(pair, fmt::format("unknown key '{}'{}", printable(key, 32),
                                      meant.empty() ? fmt::format(": they are {}", fmt::join(kKeys, ", "))
                                                    : fmt::format(", did you mean '{}'?", meant)));
    }
    bool& given = seen[static_cast<std::size_t>(known - kKeys.begin())];
    if (given) return refuse(pair, fmt::format("'{}' is given twice", key));
    given = true;
    if (const std::string wrong = set(request, key, value); !wrong.empty()) return refuse(pair, wrong);
  }
  return request;
}

}  // namespace netcheck
