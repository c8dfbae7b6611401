// What the user asked for: the value of --netcheck. Pure, hostile input. Used by the plugin at submission
// (the user), and again by `netcheck prolog` (root), which trusts nothing that came through the client.
//
//   --netcheck                         the site's threshold
//   --netcheck=400Gbps                 at least 400 Gb/s bus bandwidth
//   --netcheck=min=400Gbps,op=all_reduce,time=10s,action=requeue
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "contract/error.h"
#include "contract/units.h"

namespace netcheck {

/// What follows from a fail, mildest first.
enum class Action : std::uint8_t { annotate, hold, requeue, cancel };
[[nodiscard]] std::string_view name(Action action);  ///< "annotate", …
[[nodiscard]] std::optional<Action> parse_action(std::string_view name);
/// "annotate, hold, requeue, cancel"
[[nodiscard]] std::string all_actions();

struct Request {
  std::optional<Rate> min;
  std::optional<std::string>
      op;                  ///< "auto", "all_gather", "all_reduce", "reduce_scatter", "alltoall", "broadcast"
  std::optional<Ns> time;  ///< the check's whole deadline; the site's maximum applies
  std::optional<Action> action;  ///< among those that the site allows
  friend bool operator==(const Request&, const Request&) = default;
};

/// A right example, for every refusal.
inline constexpr const char* kRequestExample =
    "for example --netcheck, --netcheck=400Gbps or --netcheck=min=400Gbps,op=all_reduce,time=10s";

/// Nothing is ever measured under a shorter deadline. Of it an eighth is kept back for the comment
/// (prolog/supervisor.cpp), 0.7 s for the verdict on its way to every node (session/events.h: closing, last
/// answers), and 0.3 s pass on a quiet cluster until all nodes have met and connected: of one second nothing
/// is left, of two three quarters of a second.
inline constexpr Ns kShortestCheck = std::chrono::seconds(2);

/// True for "auto", "all_gather", "all_reduce", "reduce_scatter", "alltoall", "broadcast".
[[nodiscard]] bool is_operation(std::string_view name);

/// What was given as a value: `argument`, but "" for "(null)", which Slurm makes of an option without one.
[[nodiscard]] std::string_view given_spec(std::string_view argument);

/// Longest SPEC that is looked at: every valid one is far shorter.
inline constexpr std::size_t kMaxSpecBytes = 256;

/// `spec` as it may stand in an argument list: what was given, or, where it is too long or has control
/// characters, a marker that parse_request refuses with that reason. Used by the plugin in the prolog, where
/// the value may have come past the client's own check.
[[nodiscard]] std::string carry_spec(std::string_view spec);

/// "" or "(null)" (see given_spec), a rate, or key=value pairs. Refuses with what was wrong and a
/// right example: unknown or repeated key, bad value, more than kMaxSpecBytes, control characters.
[[nodiscard]] Result<Request> parse_request(std::string_view spec);

}  // namespace netcheck
