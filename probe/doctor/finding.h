// One thing that was looked at, and what is to be done about it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/json.h"

namespace netcheck::doctor {

/// Mildest first.
enum class Level : std::uint8_t {
  ok,
  warn,    ///< checks take place; something about them is not as it should be
  unseen,  ///< could not be looked at from here
  fail     ///< no check takes place, none can pass, or jobs suffer from it
};
[[nodiscard]] std::string_view name(Level level);  ///< "ok", "warn", "unseen", "fail"

struct Finding {
  Level level = Level::ok;
  std::string what;    ///< what was looked at: "PrologFlags"
  std::string why;     ///< what was found: "Alloc: the batch script does not wait for the other nodes"
  std::string remedy;  ///< what to do; empty where nothing is to be done
  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

/// fail (1) where there is one; else inconclusive (3) where something could not be looked at; else pass (0).
[[nodiscard]] ExitCode exit_code(const Findings& findings);

/// One line for each, levels in a column, its remedy below; then how many of each level.
[[nodiscard]] std::string as_text(const Findings& findings, bool colour);
[[nodiscard]] Json as_json(const Findings& findings);

}  // namespace netcheck::doctor
