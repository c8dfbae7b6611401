// Findings as people and programs read them.
#include "doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace netcheck::doctor {

namespace {

constexpr std::array kLevels{Level::ok, Level::warn, Level::unseen, Level::fail};
constexpr std::size_t kLongest = 1'000;  // bytes of a text that may be another program's or the file's

std::string_view colour_of(Level level) {  // ECMA-48: green, yellow, magenta, red
  switch (level) {
    case Level::ok:
      return "\x1b[32m";
    case Level::warn:
      return "\x1b[33m";
    case Level::unseen:
      return "\x1b[35m";
    case Level::fail:
      return "\x1b[31m";
  }
  return "";
}

std::ptrdiff_t count(const Findings& findings, Level level) {
  return std::ranges::count(findings, level, &Finding::level);
}

}  // namespace

std::string_view name(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::warn:
      return "warn";
    case Level::unseen:
      return "unseen";
    case Level::fail:
      return "fail";
  }
  return "?";
}

ExitCode exit_code(const Findings& findings) {
  if (count(findings, Level::fail) > 0) return ExitCode::fail;
  return count(findings, Level::unseen) > 0 ? ExitCode::inconclusive : ExitCode::pass;
}

std::string as_text(const Findings& findings, bool colour) {
  constexpr int kLevelWidth = 6;  // "unseen"
  std::size_t width = 0;
  for (const Finding& finding : findings)
    width = std::max(width, finding.what.size());
  std::string text, totals;
  for (const Finding& finding : findings) {
    const std::string level = fmt::format("{:<{}}", name(finding.level), kLevelWidth);
    text += fmt::format("{}{}{}  {:<{}}  {}\n", colour ? colour_of(finding.level) : "", level,
                        colour ? "\x1b[0m" : "", printable(finding.what, kLongest), width,
                        printable(finding.why, kLongest));
    if (!finding.remedy.empty())
      text +=
          fmt::format("{:{}}-> {}\n", "", kLevelWidth + 2 + width + 2, printable(finding.remedy, kLongest));
  }
  for (const Level level : kLevels)
    totals += fmt::format("{}{} {}", totals.empty() ? "" : ", ", count(findings, level), name(level));
  return text + totals + "\n";
}

Json as_json(const Findings& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings)
    all.push_back({{"level", name(finding.level)},
                   {"what", printable(finding.what, kLongest)},
                   {"why", printable(finding.why, kLongest)},
                   {"remedy", printable(finding.remedy, kLongest)}});
  return all;
}

}  // namespace netcheck::doctor
