#include "main/policy.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "policy/idle.h"
#include "policy/policy.h"
#include "policy/show.h"
#include "prolog/premises.h"

namespace netcheck {

namespace {

struct Answer {
  Site site;
  bool exists = false;
  Policy policy;
  std::vector<Wish> forbidden;
  std::vector<std::string> notes;
};

Result<Site> site_of(const PolicyQuestion& question) {
  std::error_code error;
  if (question.must_exist && !std::filesystem::exists(question.config, error) && !error)
    return fail("read the configuration", question.config, "there is no such file");
  return prolog::read_site(question.config);
}

JobKind kind_of(const PolicyQuestion& question) {
  return {.partition = question.partition,
          .account = question.account,
          .nodes = question.nodes,
          .gpu = question.gpu,
          .hardware = question.hardware};
}

Result<Answer> answer(const PolicyQuestion& question) {
  const auto request = parse_request(question.spec.value_or(""));
  if (!request) return tl::unexpected(request.error());
  auto site = site_of(question);
  if (!site) return tl::unexpected(site.error());
  auto policy = resolve(*site, kind_of(question));
  if (!policy) return tl::unexpected(policy.error());
  Answer result;
  std::error_code error;
  result.exists = std::filesystem::exists(question.config, error);
  std::vector<Wish> wishes;
  result.policy = apply(*policy, *request, wishes);
  for (const Wish& wish : not_granted_for_sure(*site, kind_of(question), *request))
    if (wish.forbidden()) result.forbidden.push_back(wish);
  for (const Wish& wish : wishes)
    result.notes.push_back(wish.note());
  for (std::string& line : without_effect(result.policy))
    result.notes.push_back(std::move(line));
  if (std::string where = where_fractions_count(result.policy); !where.empty())
    result.notes.push_back(std::move(where));
  if (std::string idle = action_without_threshold(result.policy); !idle.empty())
    result.notes.push_back(std::move(idle));
  result.site = std::move(*site);
  return result;
}

std::string rule_words(Match match, const std::string& why) {
  if (match == Match::yes) return "applies";
  return fmt::format("{}: {}", match == Match::no ? "does not apply" : "left out", why);
}

std::string job_words(const PolicyQuestion& question) {
  std::string words;
  const auto add = [&](const char* what, const std::optional<std::string>& value) {
    if (!value) return;
    words += words.empty() ? "" : ", ";
    words += value->empty() ? fmt::format("no {}", what) : fmt::format("{} {}", what, printable(*value, 64));
  };
  add("partition", question.partition);
  add("account", question.account);
  if (question.nodes) add("nodes", std::to_string(*question.nodes));
  add("GPU", question.gpu);
  add("class of hardware", question.hardware);
  if (question.spec)
    words += fmt::format("{}--netcheck={}", words.empty() ? "" : ", ", printable(*question.spec, 64));
  return words.empty() ? "any job" : "a job with " + words;
}

void print_text(const Answer& answer, const PolicyQuestion& question) {
  fmt::print("# {}{}, for {}\n", question.config, answer.exists ? "" : " (not there: built-in values)",
             job_words(question));
  for (const Rule& rule : answer.site.rules) {
    std::string why;
    const Match match = matches(rule, kind_of(question), why);
    fmt::print("# {} {}\n", rule.source, rule_words(match, why));
  }
  for (const std::string& note : answer.notes)
    fmt::print("# note: {}\n", note);
  fmt::print("\n{}", as_toml(answer.policy));
}

void print_json(const Answer& answer, const PolicyQuestion& question) {
  Json rules = Json::array(), settings = Json::array();
  for (const Rule& rule : answer.site.rules) {
    std::string why;
    const Match match = matches(rule, kind_of(question), why);
    rules.push_back({{"rule", rule.source},
                     {"applies", match == Match::yes  ? Json(true)
                                 : match == Match::no ? Json(false)
                                                      : Json()},
                     {"why", why}});
  }
  for (const Shown& shown : show(answer.policy))
    settings.push_back({{"section", shown.section},
                        {"key", shown.key},
                        {"value", shown.value},
                        {"source", shown.source},
                        {"form", shown.form},
                        {"about", shown.about}});
  const Json all{{"config", question.config},
                 {"exists", answer.exists},
                 {"rules", rules},
                 {"notes", answer.notes},
                 {"settings", settings}};
  fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

/// One line each; printable, since the plugin shows them as they are.
void print_for_submission(const PolicyQuestion& question) {
  const auto request = parse_request(question.spec.value_or(""));
  const auto site = site_of(question);
  if (!request || !site) return;  // the first the plugin has said itself, the second is not the user's fault
  for (const Wish& wish : not_granted_for_sure(*site, kind_of(question), *request))
    fmt::print("{}\n", printable(wish.forbidden() ? "refuse " + wish.text : "note " + wish.note()));
  fmt::print("end\n");
}

int refuse(const std::string& text) {
  fmt::print(stderr, "netcheck: {}\n", text);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

int print_policy(const PolicyQuestion& question) {
  if (question.submission) {
    print_for_submission(question);
    return 0;
  }
  const auto found = answer(question);
  if (!found) return refuse(describe(found.error()));
  if (!found->forbidden.empty()) return refuse(fmt::format("--netcheck: {}", found->forbidden.front().text));
  question.json ? print_json(*found, question) : print_text(*found, question);
  return 0;
}

}  // namespace netcheck
