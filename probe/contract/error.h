// What went wrong, in the four words a reader needs: what was attempted, on what, why it failed, what to do.
// Used by every room and by the plugin. An Error means "could not do", never "the network is bad": a bad
// network is a judge::Fail.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace netcheck {

struct Error {
  std::string attempted;  ///< "read the configuration"
  std::string subject;    ///< the culprit: a file:line, a flag, a node, an address
  std::string reason;     ///< "unknown key 'treshold'"
  std::string remedy;     ///< "did you mean 'threshold'?"; may be empty

  friend bool operator==(const Error&, const Error&) = default;
};

/// One line, without control characters: "ATTEMPTED SUBJECT: REASON (REMEDY)".
[[nodiscard]] std::string describe(const Error& error);

/// `text` with control characters replaced by spaces, bytes that are no UTF-8 by '?', and cut to at most
/// `max_bytes` between characters: for logs, comments and terminals.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes = 256);

/// True when `text` is well-formed UTF-8 (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text);

template <typename T>
using Result = tl::expected<T, Error>;

/// Shorthand for `return fail("read", path, why, remedy);`
[[nodiscard]] inline tl::unexpected<Error> fail(std::string attempted, std::string subject,
                                                std::string reason, std::string remedy = {}) {
  return tl::unexpected<Error>(
      Error{std::move(attempted), std::move(subject), std::move(reason), std::move(remedy)});
}

/// Exit codes of every subcommand.
enum class ExitCode : int { pass = 0, fail = 1, usage = 2, inconclusive = 3 };

}  // namespace netcheck
