// Small words that several checks of this room use. Pure.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "contract/units.h"
#include "doctor/finding.h"

namespace netcheck::doctor {

inline void append(Findings& findings, Findings more) {
  for (Finding& finding : more)
    findings.push_back(std::move(finding));
}

/// The error as a finding, its remedy in the remedy's place; `otherwise` where it has none.
[[nodiscard]] inline Finding finding_of(Level level, std::string what, Error error,
                                        std::string otherwise = {}) {
  std::string remedy = std::exchange(error.remedy, {});
  return {level, std::move(what), describe(error), remedy.empty() ? std::move(otherwise) : std::move(remedy)};
}

/// All is well, and nothing to be done.
[[nodiscard]] inline Finding fine(std::string what, std::string why) {
  return {Level::ok, std::move(what), std::move(why), ""};
}

/// What to do about a name that leads nowhere.
[[nodiscard]] inline std::string address_remedy(const std::string& name) {
  return fmt::format(
      "give {} an address that other nodes reach, in DNS, in /etc/hosts, or with address or addresses in "
      "netcheck.toml",
      name);
}

/// "8s", "1.5s": as it is written in the site's file.
[[nodiscard]] inline std::string seconds_text(Ns duration) {
  return fmt::format("{}s", std::chrono::duration<double>(duration).count());
}

}  // namespace netcheck::doctor
