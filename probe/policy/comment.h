// What a job asks for in its comment, where there is no --netcheck: sbatch --comment="netcheck=400Gbps".
// Pure, hostile input: whoever submits the job writes it, line ends and all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace netcheck {

/// The value for parse_request when a word of the comment is `netcheck` or `netcheck=SPEC`; nullopt when none
/// is. Words are what stands between spaces, tabs and line ends, nothing else: `netcheckx`, `my-netcheck` and
/// `"netcheck"` ask for nothing. Several such words are one request, their SPECs joined by commas, so that
/// parse_request refuses what is given twice. What cannot be a SPEC comes as carry_spec leaves it.
[[nodiscard]] std::optional<std::string> request_in_comment(std::string_view comment);

}  // namespace netcheck
