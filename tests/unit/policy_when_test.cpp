// When a job is checked: one row a case.
#include <gmock/gmock.h>

#include "policy/when.h"

namespace netcheck {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// "check", "warn: REASON", "skip: REASON", "silent: REASON".
std::string words(const Conduct& conduct) {
  if (const auto* warn = std::get_if<WarnOnly>(&conduct)) return "warn: " + warn->reason;
  if (const auto* skip = std::get_if<Skip>(&conduct))
    return (skip->said ? "skip: " : "silent: ") + skip->reason;
  return "check";
}

struct Case {
  const char* name;
  const char* toml;
  Circumstances job;
  std::optional<PastPass> history;
  const char* expected;
};

// With the built-in settings.
PastPass passed(Ns ago, Rate busbw, const char* op, std::optional<Rate> per_rail,
                std::optional<Rate> per_pair) {
  return {ago, busbw, op, per_rail, per_pair, measured_with(Policy{})};
}

Circumstances asked(Circumstances job = {}) {
  job.asked = true;
  return job;
}

class When : public testing::TestWithParam<Case> {};

TEST_P(When, DecidesAsTheTableSays) {
  const Policy policy = parse_config(GetParam().toml, "f").value().defaults;
  EXPECT_EQ(words(when(policy, GetParam().job, GetParam().history)), GetParam().expected);
}

constexpr const char* kAllow = "[when]\nallow_users=['alice']\nallow_accounts=['ml']\nallow_groups=['hpc']";
constexpr const char* kInterval = "[threshold]\nmin='400Gbps'\n[when]\nmin_interval='10min'";

INSTANTIATE_TEST_SUITE_P(
    Table, When,
    testing::Values(
        Case{"asked", "", asked(), {}, "check"}, Case{"not_asked", "", {}, {}, "silent: nobody asked"},
        Case{"always", "[when]\nmode='always'", {}, {}, "check"},
        Case{"always_but_one_node", "[when]\nmode='always'", {.nodes = 1}, {}, "silent: one node"},
        Case{"asked_for_one_node", "", asked({.nodes = 1}), {}, "check"},
        Case{"switched_off",
             "[when]\nmode='always'",
             asked({.switched_off = true}),
             {},
             "silent: it is switched off"},
        Case{"shared",
             "",
             asked({.owns_nodes = false}),
             {},
             "skip: the job does not own its nodes: submit it with --exclusive"},
        Case{"shared_not_asked",
             "[when]\nmode='always'",
             {.owns_nodes = false},
             {},
             "silent: the job does not own its nodes: submit it with --exclusive"},
        Case{"shared_measured", "[when]\nshared='measure'", asked({.owns_nodes = false}), {}, "check"},
        Case{"shared_unknown", "", asked({.owns_nodes = std::nullopt}), {}, "check"},
        Case{"short",
             "",
             asked({.owns_nodes = true, .walltime = seconds(30)}),
             {},
             "skip: its time limit of 30s is under the site's 60s"},
        Case{"long_enough", "", asked({.walltime = seconds(60)}), {}, "check"},
        Case{"unlimited", "[when]\nmin_walltime='1440min'", asked({.walltime = kUnlimited}), {}, "check"},
        Case{"short_is_fine", "[when]\nmin_walltime='none'", asked({.walltime = seconds(1)}), {}, "check"},
        Case{"allowed_user", kAllow, asked({.user = "alice"}), {}, "check"},
        Case{"allowed_account", kAllow, asked({.user = "bob", .account = "ml"}), {}, "check"},
        Case{"allowed_group", kAllow, asked({.user = "bob", .groups = {"users", "hpc"}}), {}, "check"},
        Case{"not_allowed",
             kAllow,
             asked({.user = "bob", .account = "bio", .groups = {"users"}}),
             {},
             "skip: the site checks no jobs of user bob, account bio"},
        Case{"not_allowed_first",
             kAllow,
             asked({.user = "bob", .owns_nodes = false}),
             {},
             "skip: the site checks no jobs of user bob, account none"},
        Case{"passed_lately", kInterval, asked(), passed(minutes(3), Rate{500e9}, "auto", {}, {}),
             "skip: its nodes passed together 3min ago, with 500.0Gbps"},
        Case{"passed_long_ago", kInterval, asked(), passed(minutes(10), Rate{500e9}, "auto", {}, {}),
             "check"},
        Case{"passed_with_less", kInterval, asked(), passed(minutes(3), Rate{399e9}, "auto", {}, {}),
             "check"},
        Case{"passed_another_op", kInterval, asked(), passed(minutes(3), Rate{500e9}, "alltoall", {}, {}),
             "check"},
        Case{"passed_over_other_devices",
             "[threshold]\nmin='400Gbps'\n[when]\nmin_interval='10min'\n[fabric]\ndevices=['mlx5_1']",
             asked(), passed(minutes(3), Rate{500e9}, "auto", {}, {}), "check"},
        Case{"passed_in_larger_groups", "[when]\nmin_interval='10min'\n[check]\ngroup_size=4", asked(),
             passed(minutes(3), Rate{500e9}, "auto", {}, {}), "check"},
        Case{"interval_off", "", asked(), passed(seconds(1), Rate{500e9}, "auto", {}, {}), "check"},
        Case{"rails_not_held_then", "[threshold]\nmin_per_rail='50Gbps'\n[when]\nmin_interval='10min'",
             asked(), passed(minutes(3), Rate{500e9}, "auto", {}, {}), "check"},
        Case{"rails_held_then", "[threshold]\nmin_per_rail='50Gbps'\n[when]\nmin_interval='10min'", asked(),
             passed(minutes(3), Rate{500e9}, "auto", Rate{50e9}, {}),
             "skip: its nodes passed together 3min ago, with 500.0Gbps"},
        Case{"just_booted",
             "",
             asked({.up = seconds(30)}),
             {},
             "warn: the node booted 30s ago, the site waits 2min"},
        Case{"settled", "", asked({.up = minutes(2)}), {}, "check"},
        Case{"booted_is_fine", "[when]\nsettle='none'", asked({.up = seconds(1)}), {}, "check"},
        Case{"short_beats_settling",
             "",
             asked({.walltime = seconds(30), .up = seconds(30)}),
             {},
             "skip: its time limit of 30s is under the site's 60s"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(OnlyWarning, LeavesNothingToDoAndSaysWhy) {
  const Policy site =
      parse_config("[action]\naction='cancel'\ndrain=true\non_inconclusive='requeue_once'", "f")
          .value()
          .defaults;
  const Policy policy = only_warning(site, "settle at f:9: the node booted 30s ago");
  EXPECT_EQ(policy.action, Action::annotate);
  EXPECT_FALSE(policy.drain);
  EXPECT_EQ(policy.on_inconclusive, OnInconclusive::annotate);
  EXPECT_EQ(policy.sources.at("action.action"), "settle at f:9: the node booted 30s ago");
  EXPECT_EQ(policy.sources.at("action.max_requeues"), "built-in");
}

}  // namespace
}  // namespace netcheck
