// netcheck.toml(5) and netcheck-job(1) against what the program knows: a key, a form or a default that
// changes must change there as well.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "policy/policy.h"
#include "policy/profiles.h"
#include "policy/settings.h"
#include "policy/show.h"

namespace netcheck {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

std::string text_of(const std::string& name) {
  std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "../.." / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) return {};
  return text.substr(from, text.find(end, from + begin.size()) - from);
}

const std::string& toml_page() {
  static const std::string page = text_of("docs/man/netcheck.toml.5.scd");
  return page;
}

/// What matches the first group of `pattern` in each line.
std::vector<std::string> all(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  for (auto at = std::sregex_iterator(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
    found.push_back((*at)[1].str());
  return found;
}

TEST(Manual, HasEveryKeyWithItsDefaultItsFormAndWhoMaySetIt) {
  const std::string settings = between(toml_page(), "\n# SETTINGS\n", "\n# RULES\n");
  ASSERT_FALSE(settings.empty());
  std::vector<std::string> keys;
  const std::vector<Shown> shown = show(Policy{});
  const auto& known = policy::all_settings();
  ASSERT_EQ(shown.size(), known.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Shown& one = shown[i];
    keys.push_back(one.key);
    const char* who = known[i].scope == policy::Scope::job ? "a rule may set it" : "same for every job";
    const std::string section = between(settings, fmt::format("\n## [{}]\n", one.section), "\n## ");
    EXPECT_THAT(section, HasSubstr(fmt::format("\n*{}* = {}\n\t{}; {}\n\n\t", one.key, one.value.dump(),
                                               one.form, who)));
  }
  // In the order of the file, and no other.
  EXPECT_THAT(all(settings, "^\\*([a-z_]+)\\* = "), ElementsAreArray(keys));
}

TEST(Manual, HasEveryProfileWithItsThresholds) {
  const std::string page = between(toml_page(), "\n# PROFILES\n", "\n# EXAMPLE\n");
  std::vector<std::string> names;
  for (const Profile& profile : profiles()) {
    names.emplace_back(profile.name);
    std::string values;
    if (profile.min) values += fmt::format("min = \"{}\"", format_rate(*profile.min, true));
    if (profile.min_per_rail)
      values += fmt::format("{}min_per_rail = \"{}\"", values.empty() ? "" : ", ",
                            format_rate(*profile.min_per_rail, true));
    EXPECT_THAT(page, HasSubstr(fmt::format("\n*{}*\n\t{}; ", profile.name, values)));
  }
  EXPECT_THAT(all(page, "^\\*([a-z0-9-]+)\\*$"), ElementsAreArray(names));
}

TEST(Manual, ItsExampleIsTakenAndSoIsThatOfTheFile) {
  std::string example = between(toml_page(), "\n```\n[threshold]", "\n```\n");
  ASSERT_FALSE(example.empty());
  example.erase(0, std::string_view("\n```\n").size());
  const auto site = parse_config(example, "example");
  ASSERT_TRUE(site) << describe(site.error());
  EXPECT_EQ(site->rules.size(), 3);

  std::string rules;
  const std::string file = text_of("etc/netcheck.toml");
  for (const std::string& line : all(file.substr(file.find("# [[rule]]")), "^# (.*)$"))
    rules += line + "\n";
  const auto shipped = parse_config(rules, "netcheck.toml");
  ASSERT_TRUE(shipped) << describe(shipped.error());
  EXPECT_EQ(shipped->rules.size(), 3);
}

TEST(Manual, TellsUsersEveryKeyOfARequest) {
  const auto refused = parse_request("zzzzzz=1");
  ASSERT_FALSE(refused);
  // "unknown key 'zzzzzz': they are min, op, time, action"
  std::string listed = refused.error().reason;
  listed.erase(0, listed.find("they are ") + std::string_view("they are ").size());
  const std::string page = between(text_of("docs/man/netcheck-job.1.scd"), "\n# ASKING\n", "\n# ");
  EXPECT_THAT(all(page, "^\\*([a-z]+)\\*=_[A-Z]+_$"), ElementsAreArray(all(listed, "([a-z]+)")));
}

}  // namespace
}  // namespace netcheck
