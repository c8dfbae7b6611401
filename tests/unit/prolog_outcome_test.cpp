// From what a probe reports to what is known for actions: the site's thresholds beside a user's own.
#include <gtest/gtest.h>

#include "judge_model.h"
#include "prolog/act.h"
#include "prolog/outcome.h"

namespace netcheck::prolog {
namespace {

constexpr Rate kSites{800e6};

// A check of n0 to n3, 1 Gb/s each, of which the site asks for 800 Mb/s and the job for `asked`.
Finding finding(Rate asked, const judge::model::Network& network) {
  Record record;
  record.job.roster = {{"demo", 17, 0}, {"n0", "n1", "n2", "n3"}, 0};
  record.assignment.roster = record.job.roster;
  record.assignment.policy.fabric = "ucx";
  record.assignment.policy.site_min = kSites;
  record.assignment.policy.min = asked;
  session::Report report;
  report.leader = true;
  report.plan = judge::model::plan_for(4);
  report.plan.thresholds.min = asked;
  report.plan.thresholds.site_floor = kSites;
  report.history = judge::model::play(report.plan, network).history;
  report.claimed = "fail";
  ProbeEnd end;
  end.report = to_json(report).dump();
  end.in_time = true;
  const Outcome outcome = outcome_of(end, record.assignment, std::chrono::seconds(1));
  EXPECT_EQ(outcome.verdict, "fail") << outcome.line;
  record.judged = outcome.judged;
  record.report = outcome.report;
  return case_of(record, outcome, {}, {}).finding;
}

TEST(OutcomeOf, KnowsWhatIsNearlyEnough) {  // 770 of 800, of which 6 % less are 752
  const Finding found = finding(kSites, {.rate = 0.77e9});
  EXPECT_TRUE(found.site_fails);
  EXPECT_TRUE(found.nearly_enough);
  EXPECT_TRUE(found.nearly_by_site);
}

TEST(OutcomeOf, KnowsWhatIsFarFromEnough) {
  const Finding found = finding(kSites, {.rate = 0.5e9});
  EXPECT_TRUE(found.site_fails);
  EXPECT_FALSE(found.nearly_enough);
  EXPECT_FALSE(found.nearly_by_site);
}

TEST(OutcomeOf, HoldsTheSitesThresholdApartFromAUsersHigherOne) {
  const Finding found = finding(Rate{950e6}, {.rate = 0.77e9});
  EXPECT_TRUE(found.site_fails);
  EXPECT_FALSE(found.nearly_enough);
  EXPECT_TRUE(found.nearly_by_site);
}

TEST(OutcomeOf, FindsNothingNearWhereTheSitesThresholdIsMet) {
  const Finding found = finding(Rate{950e6}, {.rate = 0.92e9});
  EXPECT_FALSE(found.site_fails);
  EXPECT_TRUE(found.nearly_enough);
  EXPECT_FALSE(found.nearly_by_site);
}

}  // namespace
}  // namespace netcheck::prolog
