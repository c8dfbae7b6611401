// What follows which verdict: rows of facts, and the words of the line that they come to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide_situation.h"

namespace netcheck::prolog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Decide : public testing::TestWithParam<Row> {};

TEST_P(Decide, ComesTo) {
  expect_outcome(GetParam());
}

const std::vector<Row> kRows = {
    // what is asked for
    {"requeue", [](Situation&) {}, Action::requeue, " action=requeue requeues=1 acted=1000000"},
    {"hold", [](Situation& s) { s.policy.action = Action::hold; }, Action::hold,
     " action=hold acted=1000000"},
    {"cancel", [](Situation& s) { s.policy.action = Action::cancel; }, Action::cancel,
     " action=cancel acted=1000000"},
    {"annotate", [](Situation& s) { s.policy.action = Action::annotate; }, Action::annotate, ""},
    {"pass", [](Situation& s) { s.finding.kind = Finding::Kind::pass; }, Action::annotate, ""},
    {"pass_after_requeue",
     [](Situation& s) {
       s.finding.kind = Finding::Kind::pass;
       s.own = {1, "fail(slow=n3)"};
     },
     Action::annotate, " requeues=1 prev=fail(slow=n3)"},
    // a user's own threshold for his own job: done, and not counted
    {"users_wish",
     [](Situation& s) {
       s.finding.site_fails = false;
       s.policy.action = Action::cancel;
       s.cluster.deeds = 1'000;
     },
     Action::cancel, " action=cancel"},
    // and so is an action that he asked for, whatever the threshold
    {"users_action",
     [](Situation& s) {
       s.policy.action = Action::hold;
       s.policy.sources["action.action"] = "the job's request";
       s.cluster.deeds = 1'000;
     },
     Action::hold, " action=hold"},
    {"users_action_beside_the_sites_drain",
     [](Situation& s) {
       s.policy.action = Action::hold;
       s.policy.sources["action.action"] = "the job's request";
       s.policy.drain = true;
     },
     Action::hold, " action=hold drain=n3 acted=1000000"},
    {"users_action_where_the_rate_holds_the_drain",
     [](Situation& s) {
       s.policy.action = Action::hold;
       s.policy.sources["action.action"] = "the job's request";
       s.policy.drain = true;
       s.cluster.deeds = 20;
     },
     Action::hold, " action=hold drain_brake=max_actions_per_hour=20"},
    // brakes
    {"no_culprit",
     [](Situation& s) {
       s.finding.culprits.clear();
       s.finding.no_culprit = "fabric-wide";
     },
     Action::annotate, " action=annotate wanted=requeue brake=fabric-wide"},
    {"salloc", [](Situation& s) { s.job.batch = false; }, Action::annotate,
     " action=annotate wanted=requeue brake=not-batch"},
    {"no_requeue", [](Situation& s) { s.cluster.standing->may_be_requeued = false; }, Action::annotate,
     " action=annotate wanted=requeue brake=no-requeue"},
    {"heterogeneous", [](Situation& s) { s.job.component = true; }, Action::annotate,
     " action=annotate wanted=requeue brake=heterogeneous"},
    {"heterogeneous_cancel",
     [](Situation& s) {
       s.job.component = true;
       s.policy.action = Action::cancel;
     },
     Action::annotate, " action=annotate wanted=cancel brake=heterogeneous"},
    {"second_refusal",
     [](Situation& s) {
       s.own = {1, "fail(slow=n4)"};
     },
     Action::requeue, " action=requeue requeues=2 acted=1000000 prev=fail(slow=n4)"},
    {"third_refusal",
     [](Situation& s) {
       s.own = {2, "fail(slow=n4)"};
     },
     Action::annotate, " action=annotate wanted=requeue brake=max_requeues=2 requeues=2 prev=fail(slow=n4)"},
    {"preempted_often", [](Situation& s) { s.cluster.standing->restarts = 5; }, Action::requeue,
     " action=requeue requeues=1 acted=1000000"},  // not ours: no matter
    {"restarted_without_end", [](Situation& s) { s.cluster.standing->restarts = 16; }, Action::annotate,
     " action=annotate wanted=requeue brake=restarts=16"},
    {"ends_meanwhile", [](Situation& s) { s.cluster.standing->state = "CG"; }, Action::annotate,
     " action=annotate wanted=requeue brake=state-CG"},
    {"unknown_state", [](Situation& s) { s.cluster.standing.reset(); }, Action::annotate,
     " action=annotate wanted=requeue brake=state-unknown"},
    {"refused_by_slurm",
     [](Situation& s) { s.cluster.refused = "Requested operation is presently disabled"; }, Action::annotate,
     " action=annotate wanted=requeue brake=refused"},
    // could it run elsewhere?
    {"required", [](Situation& s) { s.cluster.placement->required = {"n3"}; }, Action::annotate,
     " action=annotate wanted=requeue brake=nodelist-has-n3"},
    {"required_others", [](Situation& s) { s.cluster.placement->required = {"n1"}; }, Action::requeue,
     " action=requeue requeues=1 acted=1000000"},
    {"reservation", [](Situation& s) { s.cluster.placement->reserved = true; }, Action::annotate,
     " action=annotate wanted=requeue brake=reservation"},
    {"constraint_of_its_nodes_together",
     [](Situation& s) { s.cluster.standing->constrained_together = true; }, Action::annotate,
     " action=annotate wanted=requeue brake=constraint"},
    {"contiguous", [](Situation& s) { s.cluster.standing->contiguous = true; }, Action::annotate,
     " action=annotate wanted=requeue brake=contiguous"},
    {"one_spare", [](Situation& s) { s.node("n5").state = "drained"; }, Action::requeue,
     " action=requeue requeues=1 acted=1000000"},
    {"no_spare",
     [](Situation& s) {
       s.node("n4").state = "down*";
       s.node("n5").state = "drained";
     },
     Action::annotate, " action=annotate wanted=requeue brake=nodes-left=2"},
    {"users_exclusions_count",
     [](Situation& s) {
       s.cluster.placement->excluded = {"n4", "n5"};
     },
     Action::annotate, " action=annotate wanted=requeue brake=nodes-left=2"},
    {"smaller_nodes_do_not_count",
     [](Situation& s) {
       s.node("n4").cpus = 32;
       s.node("n5").memory = 500;
     },
     Action::annotate, " action=annotate wanted=requeue brake=nodes-left=2"},
    {"other_gres_counts_when_not_asked", [](Situation& s) { s.node("n4").gres = s.node("n5").gres = ""; },
     Action::requeue, " action=requeue requeues=1 acted=1000000"},
    {"other_gres_does_not_when_asked",
     [](Situation& s) {
       s.node("n4").gres = s.node("n5").gres = "";
       s.cluster.standing->wants_gres = true;
     },
     Action::annotate, " action=annotate wanted=requeue brake=nodes-left=2"},
    {"other_features_do_not_when_asked",
     [](Situation& s) {
       s.node("n4").features = s.node("n5").features = "rack2";
       s.cluster.standing->wants_features = true;
     },
     Action::annotate, " action=annotate wanted=requeue brake=nodes-left=2"},
    {"unknown_nodes", [](Situation& s) { s.cluster.nodes.reset(); }, Action::annotate,
     " action=annotate wanted=requeue brake=nodes-unknown"},
    {"unknown_placement", [](Situation& s) { s.cluster.placement.reset(); }, Action::annotate,
     " action=annotate wanted=requeue brake=placement-unknown"},
    {"unknown_partition", [](Situation& s) { s.cluster.partition = "elsewhere"; }, Action::annotate,
     " action=annotate wanted=requeue brake=nodes-unknown"},
    // fallbacks, each said
    {"fallback_hold",
     [](Situation& s) {
       s.policy.requeue_fallback = Action::hold;
       s.own.requeues = 2;
     },
     Action::hold, " action=hold wanted=requeue brake=max_requeues=2 requeues=2 acted=1000000"},
    {"fallback_cancel_of_salloc",
     [](Situation& s) {
       s.policy.requeue_fallback = Action::cancel;
       s.job.batch = false;
     },
     Action::cancel, " action=cancel wanted=requeue brake=not-batch acted=1000000"},
    {"fallback_that_cannot_be",
     [](Situation& s) {
       s.policy.requeue_fallback = Action::hold;
       s.cluster.standing->may_be_requeued = false;
     },
     Action::annotate, " action=annotate wanted=requeue brake=no-requeue,hold:no-requeue"},
    // could not measure
    {"not_measured",
     [](Situation& s) {
       s.finding.kind = Finding::Kind::not_measured;
       s.policy.on_inconclusive = OnInconclusive::requeue_once;
     },
     Action::annotate, ""},
    {"broken_off_by_default", [](Situation& s) { s.finding.kind = Finding::Kind::broken_off; },
     Action::annotate, ""},
    {"broken_off",
     [](Situation& s) {
       s.finding = {Finding::Kind::broken_off, s.finding.nodes, {}, "", true, false};
       s.policy.on_inconclusive = OnInconclusive::requeue_once;
       s.policy.action = Action::cancel;  // of a fail; nothing here is refused
     },
     Action::requeue, " action=requeue requeues=1 acted=1000000"},
    {"broken_off_with_the_users_operation",
     [](Situation& s) {
       s.finding = {Finding::Kind::broken_off, s.finding.nodes, {}, "", false, false};
       s.policy.on_inconclusive = OnInconclusive::requeue_once;
       s.cluster.deeds = 1'000;
     },
     Action::requeue, " action=requeue requeues=1"},
    {"broken_off_again",
     [](Situation& s) {
       s.finding = {Finding::Kind::broken_off, s.finding.nodes, {}, "", true, false};
       s.policy.on_inconclusive = OnInconclusive::requeue_once;
       s.policy.requeue_fallback = Action::cancel;
       s.own = {1, "inconclusive"};
     },
     Action::annotate, " action=annotate wanted=requeue brake=requeued-before requeues=1 prev=inconclusive"},
    // the cluster's rate
    {"under_the_rate", [](Situation& s) { s.cluster.deeds = 19; }, Action::requeue,
     " action=requeue requeues=1 acted=1000000"},
    {"at_the_rate", [](Situation& s) { s.cluster.deeds = 20; }, Action::annotate,
     " action=annotate wanted=requeue brake=max_actions_per_hour=20"},
    {"rate_not_known", [](Situation& s) { s.cluster.deeds_failed = true; }, Action::annotate,
     " action=annotate wanted=requeue brake=actions-uncounted"},
    {"no_rate",
     [](Situation& s) {
       s.policy.max_actions_per_hour = 0;
       s.cluster.deeds_failed = true;
     },
     Action::requeue, " action=requeue requeues=1 acted=1000000"},
    // dry run
    {"dry_run", [](Situation& s) { s.policy.dry_run = true; }, Action::requeue,
     " action=annotate would=requeue"},
    {"dry_run_braked",
     [](Situation& s) {
       s.policy.dry_run = true;
       s.own.requeues = 2;
     },
     Action::annotate, " action=annotate would=annotate wanted=requeue brake=max_requeues=2 requeues=2"},
    // drain beside it
    {"drain", [](Situation& s) { s.policy.drain = true; }, Action::requeue,
     " action=requeue drain=n3 requeues=1 acted=1000000"},
    {"drain_alone",
     [](Situation& s) {
       s.policy.drain = true;
       s.policy.action = Action::annotate;
     },
     Action::annotate, " action=annotate drain=n3 acted=1000000"},
    {"drain_dry",
     [](Situation& s) {
       s.policy.drain = s.policy.dry_run = true;
       s.policy.action = Action::annotate;
     },
     Action::annotate, " action=annotate would=annotate would_drain=n3"},
    {"drain_only_on_the_sites_thresholds",
     [](Situation& s) {
       s.policy.drain = true;
       s.finding.site_fails = false;
     },
     Action::requeue, " action=requeue requeues=1"},
    {"nothing_is_done_for_wrong_data",
     [](Situation& s) {
       s.policy.drain = true;
       s.finding.corrupt = true;
     },
     Action::annotate, " action=annotate wanted=requeue brake=corrupt-data drain_brake=corrupt-data"},
    {"drain_never_on_noisy_figures",
     [](Situation& s) {
       s.policy.drain = true;
       s.finding.noisy = true;
     },
     Action::requeue, " action=requeue drain_brake=noisy requeues=1 acted=1000000"},
    {"drain_never_over_a_reason",
     [](Situation& s) {
       s.policy.drain = true;
       s.node("n3").reason = "disk";
     },
     Action::requeue, " action=requeue drain_brake=n3:has-a-reason requeues=1 acted=1000000"},
    {"drain_never_a_reserved_node",
     [](Situation& s) {
       s.policy.drain = true;
       s.node("n3").state = "reserved";
     },
     Action::requeue, " action=requeue drain_brake=n3:reserved requeues=1 acted=1000000"},
    {"drain_at_the_clusters_limit",
     [](Situation& s) {
       s.policy.drain = true;
       s.cluster.nodes->push_back({"n8", "other", "drained", 64, 1000, "", "", "netcheck: job 5 mea"});
     },
     Action::requeue, " action=requeue drain_brake=max_drained_total=1 requeues=1 acted=1000000"},
    {"drain_at_the_clusters_limit_by_what_others_are_about_to_do",
     [](Situation& s) {
       s.policy.drain = true;
       s.cluster.announced = {{"n8"}};
     },
     Action::requeue, " action=requeue drain_brake=max_drained_total=1 requeues=1 acted=1000000"},
    {"drain_of_a_node_that_is_counted_already",
     [](Situation& s) {
       s.policy.drain = true;
       s.cluster.announced = {{"n3"}};
     },
     Action::requeue, " action=requeue drain=n3 requeues=1 acted=1000000"},
    {"drain_never_uncounted",
     [](Situation& s) {
       s.policy.drain = true;
       s.policy.max_actions_per_hour = 0;
       s.cluster.announced.reset();
     },
     Action::requeue, " action=requeue drain_brake=drains-unknown requeues=1 acted=1000000"},
    {"drain_never_where_nobody_answers",
     [](Situation& s) {
       s.policy.drain = true;
       s.policy.max_actions_per_hour = 0;
       s.cluster.deeds_failed = true;
     },
     Action::requeue, " action=requeue drain_brake=actions-uncounted requeues=1 acted=1000000"},
    {"drain_at_the_rate",
     [](Situation& s) {
       s.policy.drain = true;
       s.cluster.deeds = 20;
     },
     Action::annotate, " action=annotate wanted=requeue brake=max_actions_per_hour=20"},
};

INSTANTIATE_TEST_SUITE_P(Rows, Decide, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

// His own threshold, which is higher, is missed by far, and the site's by little.
TEST(DecideAction, DrainsNobodyForAUsersWishWhereTheSitesThresholdIsNearlyMet) {
  Situation situation;
  situation.finding.nearly_by_site = true;
  situation.policy.drain = true;
  const ActionPlan plan = situation.decide();
  EXPECT_EQ(plan.tail, " action=requeue drain_brake=nearly-enough requeues=1");  // not counted: no acted=
  EXPECT_THAT(plan.drain, IsEmpty());
}

// Others may carry some of a link, and no counter tells.
TEST(DecideAction, DoesNothingToAJobThatHasNearlyEnough) {
  Situation situation;
  situation.finding.nearly_enough = situation.finding.nearly_by_site = true;
  situation.policy.drain = true;
  ActionPlan plan = situation.decide();
  EXPECT_EQ(plan.action, Action::annotate);
  EXPECT_EQ(plan.tail, " action=annotate wanted=requeue brake=nearly-enough drain_brake=nearly-enough");
  EXPECT_THAT(plan.drain, IsEmpty());
  situation.policy.sources["action.action"] = "the job's request";  // his own job, his own word
  EXPECT_EQ(situation.decide().action, Action::requeue);
}

TEST(DecideAction, RequeuesAwayFromTheCulpritsAndKeepsTheUsersList) {
  Situation situation;
  situation.add("n6", "idle");
  situation.cluster.placement->excluded_list = "n5";
  situation.cluster.placement->excluded = {"n5"};
  const ActionPlan plan = situation.decide();
  EXPECT_THAT(plan.exclude, ElementsAre("n5", "n3"));
  EXPECT_TRUE(plan.start_early);
}

TEST(DecideAction, LetsLaterRequeuesWaitSlurmsTime) {
  Situation situation;
  situation.own.requeues = 1;
  EXPECT_FALSE(situation.decide().start_early);
}

TEST(DecideAction, LetsTheFirstRequeueWaitSlurmsTimeWhereTheSiteSaysSo) {
  Situation situation;
  situation.policy.early_start = false;
  const ActionPlan plan = situation.decide();
  EXPECT_EQ(plan.action, Action::requeue);
  EXPECT_FALSE(plan.start_early);
}

TEST(DecideAction, ExcludesNobodyForACheckThatBrokeOff) {
  Situation situation;
  situation.finding = {Finding::Kind::broken_off, {"n1", "n2", "n3"}, {}, "", false, {}};
  situation.policy.on_inconclusive = OnInconclusive::requeue_once;
  const ActionPlan plan = situation.decide();
  EXPECT_THAT(plan.exclude, IsEmpty());
  EXPECT_FALSE(plan.start_early);
}

TEST(DecideAction, DrainsAtMostMaxDrainForOneJob) {
  Situation situation;
  situation.policy.drain = true;
  situation.policy.max_drained_total = {.percent = 0, .count = 5};
  situation.finding.drainable = {{"n2", "n2(rx: 1.0Gbps)"}, {"n3", "n3(tx: 96.0Mbps)"}};
  ActionPlan plan = situation.decide();
  EXPECT_THAT(plan.drain, ElementsAre("n2"));
  EXPECT_EQ(plan.drain_reason, "netcheck: job 17 measured n2(rx: 1.0Gbps)");
  EXPECT_THAT(plan.tail, HasSubstr("drain_brake=max_drain=1"));
  situation.policy.max_drain = 2;
  plan = situation.decide();
  EXPECT_THAT(plan.drain, ElementsAre("n2", "n3"));
  EXPECT_THAT(plan.tail, HasSubstr(" drain=n[2-3]"));
}

TEST(DecideAction, DrainsNobodyWhoIsAsFastAsTheSiteAsks) {
  Situation situation;
  situation.policy.drain = true;
  situation.policy.max_drained_total = {.percent = 0, .count = 5};
  situation.finding.drainable = {{"n2", "n2(rx: 1.0Gbps)", true}, {"n3", "n3(tx: 96.0Mbps)"}};
  const ActionPlan plan = situation.decide();
  EXPECT_THAT(plan.drain, ElementsAre("n3"));
  EXPECT_THAT(plan.tail, HasSubstr("drain_brake=n2:fast-enough"));
}

TEST(DecideAction, DrainsNobodyWhereTheSiteAllowsNone) {
  Situation situation;
  situation.policy.drain = true;
  situation.policy.max_drained_total = {.percent = 0, .count = 0};
  EXPECT_THAT(situation.decide().drain, IsEmpty());
}

TEST(Questions, AsksNothingWhereNothingFollows) {
  Situation s;
  s.finding.kind = Finding::Kind::pass;
  s.policy.drain = true;
  EXPECT_FALSE(questions(s.policy, s.finding, s.job, s.own).any());
  s.finding.kind = Finding::Kind::fail;
  s.policy = {};
  EXPECT_FALSE(questions(s.policy, s.finding, s.job, s.own).any());
}

TEST(Questions, AsksForNodesOnlyWhenItMatters) {
  Situation s;
  EXPECT_TRUE(questions(s.policy, s.finding, s.job, s.own).nodes);
  s.policy.action = Action::hold;
  EXPECT_FALSE(questions(s.policy, s.finding, s.job, s.own).nodes);
  s.policy.drain = true;
  EXPECT_TRUE(questions(s.policy, s.finding, s.job, s.own).nodes);
  s.finding.site_fails = false;
  EXPECT_FALSE(questions(s.policy, s.finding, s.job, s.own).nodes);
}

}  // namespace
}  // namespace netcheck::prolog
