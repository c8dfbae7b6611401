// What follows where Slurm's switches are known: ways between two of them prove nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide_situation.h"

namespace netcheck::prolog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Uplinks : public testing::TestWithParam<Row> {};

TEST_P(Uplinks, ComesTo) {
  expect_outcome(GetParam());
}

const std::vector<Row> kRows = {
    // n4 alone on its switch, or nothing slow within one
    {"slow_within_a_switch",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {{"n1", "n2"}});
     },
     Action::requeue, " action=requeue requeues=1 acted=1000000"},
    {"slow_between_switches_alone",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {{"n1", "n3"}, {"n3", "n2"}});
     },
     Action::annotate, " action=annotate wanted=requeue brake=between-switches"},
    {"slow_between_switches_and_cancel",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {{"n1", "n3"}});
       s.policy.action = Action::cancel;
     },
     Action::annotate, " action=annotate wanted=cancel brake=between-switches"},
    {"nor_by_the_fallback",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {{"n1", "n3"}});
       s.policy.requeue_fallback = Action::cancel;
     },
     Action::annotate, " action=annotate wanted=requeue brake=between-switches,cancel:between-switches"},
    {"slow_nowhere_that_was_tried", [](Situation& s) { s.leaves("n1,n2", "n3,n4", {}); }, Action::annotate,
     " action=annotate wanted=requeue brake=between-switches"},
    {"all_on_one_switch", [](Situation& s) { s.leaves("n1,n2,n3", "n4", {}); }, Action::requeue,
     " action=requeue requeues=1 acted=1000000"},
    {"where_the_site_wants_it",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {{"n1", "n3"}});
       s.policy.between_switches = true;
     },
     Action::requeue, " action=requeue requeues=1 acted=1000000"},
    {"where_the_user_wants_it",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {{"n1", "n3"}});
       s.policy.sources["action.action"] = "the job's request";
     },
     Action::requeue, " action=requeue requeues=1"},
    {"a_broken_part_needs_no_way",
     [](Situation& s) {
       s.leaves("n1,n2", "n3,n4", {});
       s.finding.flawed = true;
     },
     Action::requeue, " action=requeue requeues=1 acted=1000000"},
    {"switches_that_nobody_can_read", [](Situation& s) { s.cluster.switches.reset(); }, Action::annotate,
     " action=annotate wanted=requeue brake=switches-unknown"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Uplinks, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(UplinksDrain, DrainsNobodyForWaysBetweenSwitches) {
  Situation situation;
  situation.policy.drain = true;
  situation.policy.between_switches = true;  // of jobs alone
  situation.leaves("n1,n2", "n3,n4", {{"n1", "n3"}, {"n3", "n2"}});
  EXPECT_THAT(situation.decide().drain, IsEmpty());
  EXPECT_THAT(situation.decide().tail, HasSubstr("drain_brake=n3:alone-on-its-switch"));
  situation.finding.drainable.front().own_word = true;
  EXPECT_THAT(situation.decide().drain, ElementsAre("n3"));
}

TEST(UplinksDrain, DrainsForASlowWayWithinItsSwitch) {
  Situation situation;
  situation.policy.drain = true;
  situation.leaves("n1", "n2,n3", {{"n1", "n3"}, {"n3", "n2"}});
  EXPECT_THAT(situation.decide().drain, ElementsAre("n3"));
  situation.leaves("n1", "n2,n3", {{"n1", "n3"}, {"n2", "n1"}});  // what was slow there has not n3 in it
  EXPECT_THAT(situation.decide().drain, IsEmpty());
  situation.cluster.switches.reset();
  EXPECT_THAT(situation.decide().tail, HasSubstr("drain_brake=n3:switches-unknown"));
}

}  // namespace
}  // namespace netcheck::prolog
