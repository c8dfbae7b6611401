// The value of --netcheck. Pure, hostile input; compiled into the plugin as well.
#include "policy/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/nearest.h"

namespace netcheck {

namespace {

constexpr std::array<std::string_view, 3> kKeys{"min", "op", "time"};
constexpr std::array<std::string_view, 6> kOperations{"auto",           "all_gather", "all_reduce",
                                                      "reduce_scatter", "alltoall",   "broadcast"};

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
      return fmt::format("time '{}': it must be at least {}", printable(value, 32), "1s");
    request.time = *time;
  } else {
    if (!is_operation(value)) {
      const std::string_view meant = nearest(value, kOperations);
      return fmt::format("op '{}': {}", printable(value, 32),
                         meant.empty() ? fmt::format("they are {}", fmt::join(kOperations, ", "))
                                       : fmt::format("did you mean '{}'?", meant));
    }
    request.op = value;
  }
  return {};
}

}  // namespace

bool is_operation(std::string_view name) {
  return std::find(kOperations.begin(), kOperations.end(), name) != kOperations.end();
}

std::string carry_spec(std::string_view spec) {
  const std::string why = unfit(spec);
  return why.empty() ? std::string(spec) : fmt::format("{}{})", kCarriedRefusal, why);
}

Result<Request> parse_request(std::string_view spec) {
  if (spec.empty() || spec == "(null)") return Request{};
  if (const std::string why = unfit(spec); !why.empty()) return refuse(spec, why);
  if (spec.starts_with(kCarriedRefusal))
    return refuse("…",
                  std::string(spec.substr(kCarriedRefusal.size(), spec.size() - kCarriedRefusal.size() - 1)));
  Request request;
  if (spec.find_first_of("=,") == std::string_view::npos) {
    if (const std::string wrong = set(request, "min", spec); !wrong.empty()) return refuse(spec, wrong);
    return request;
  }
  std::array<bool, kKeys.size()> seen{};
  for (bool more = true; more;) {
    const std::size_t comma = spec.find(',');
    const std::string_view pair = spec.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) spec.remove_prefix(comma + 1);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos)
      return refuse(pair, fmt::format("'{}' is no key=value", printable(pair, 32)));
    const std::string_view key = pair.substr(0, equals), value = pair.substr(equals + 1);
    const auto known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end()) {
      const std::string_view meant = nearest(key, kKeys);
      return refuse(pair, fmt::format("unknown key '{}'{}", printable(key, 32),
                                      meant.empty() ? std::string(": they are min, op, time")
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
