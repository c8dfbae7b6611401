// Assignment and report: through JSON and back, and what a supervisor must not believe.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "contract/wire.h"
#include "session/handover.h"
#include "session/plan.h"
#include "session/report.h"
#include "session_cast.h"
#include "system/loop.h"

namespace netcheck::session::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

Assignment full_assignment() {
  Assignment given = assignment(3, 2);
  given.policy.min = Rate{4e11};
  given.policy.site_min = Rate{3.5e11};
  given.policy.op = "all_reduce";
  given.policy.addresses = {{"n1", "10.0.0.1"}};
  given.policy.devices = {"mlx5_*"};
  given.policy.exclude = {"eth9"};
  given.policy.memory = UINT64_MAX;
  given.policy.first_port = 65'535;
  given.policy.annotate = false;
  given.agreement = agreement(given.policy);
  return given;
}

TEST(AssignmentJson, ArrivesAsItWasSent) {
  Assignment sent = full_assignment();
  sent.declined = "busy";
  const Assignment got = assignment_from_json(Json::parse(to_json(sent).dump()));
  EXPECT_EQ(got.roster.run, sent.roster.run);
  EXPECT_EQ(got.roster.nodes, sent.roster.nodes);
  EXPECT_EQ(got.roster.self, 2U);
  EXPECT_EQ(got.deadline, sent.deadline);
  EXPECT_EQ(got.rendezvous_deadline, sent.rendezvous_deadline);
  EXPECT_EQ(got.agreement, sent.agreement);
  EXPECT_EQ(got.declined, "busy");
  // Every setting that nodes must share has survived, or the hash would be another.
  EXPECT_EQ(agreement(got.policy), sent.agreement);
  EXPECT_EQ(got.policy.min, sent.policy.min);
  EXPECT_EQ(got.policy.addresses, sent.policy.addresses);
  EXPECT_EQ(got.policy.devices, sent.policy.devices);
  EXPECT_EQ(got.policy.exclude, sent.policy.exclude);
  EXPECT_EQ(got.policy.memory, UINT64_MAX);
  EXPECT_EQ(got.policy.first_port, 65'535);
  EXPECT_FALSE(got.policy.annotate);
}

TEST(AssignmentJson, NamesNoNodeTwiceAndIsOneOfThem) {
  Json value = to_json(full_assignment());
  value["self"] = 3;
  EXPECT_THROW(static_cast<void>(assignment_from_json(value)), Malformed);
  value = to_json(full_assignment());
  value["nodes"] = {"n1", "n1", "n3"};
  EXPECT_THROW(static_cast<void>(assignment_from_json(value)), Malformed);
  value["nodes"] = Json::array();
  EXPECT_THROW(static_cast<void>(assignment_from_json(value)), Malformed);
}

Report some_report(const Assignment& given) {
  Report report;
  report.leader = true;
  report.plan = plan_of(given);
  report.history.refusal = judge::Refusal{judge::Phase::open, "n2 differs"};
  report.claimed = "inconclusive";
  report.line = "netcheck=inconclusive";
  report.reached = judge::Phase::open;
  report.reason = "n2 differs";
  report.phases = {{"rendezvous", milliseconds(12)}};
  report.inventory = inventory("n3");
  report.log = {"10.9.9.9: no hello"};
  return report;
}

TEST(ReportJson, ArrivesAsItWasSent) {
  const Assignment given = full_assignment();
  const Report got = report_from_json(Json::parse(to_json(some_report(given)).dump()), given);
  EXPECT_TRUE(got.leader);
  EXPECT_EQ(got.history.refusal, (judge::Refusal{judge::Phase::open, "n2 differs"}));
  EXPECT_EQ(got.claimed, "inconclusive");
  EXPECT_EQ(got.line, "netcheck=inconclusive");
  EXPECT_EQ(got.reached, judge::Phase::open);
  EXPECT_EQ(got.phases.at("rendezvous"), milliseconds(12));
  EXPECT_EQ(got.inventory.node, "n3");
  EXPECT_EQ(got.log, std::vector<std::string>{"10.9.9.9: no hello"});
}

TEST(ReportJson, MustNameExactlyThisJobsNodes) {
  const Assignment given = full_assignment();
  Report report = some_report(given);
  report.plan.nodes.back().name = "victim";
  EXPECT_THROW(static_cast<void>(report_from_json(to_json(report), given)), Malformed);
  report.plan.nodes.pop_back();
  EXPECT_THROW(static_cast<void>(report_from_json(to_json(report), given)), Malformed);
}

TEST(ReportJson, CannotBringControlCharactersToATerminal) {
  const Assignment given = full_assignment();
  Report report = some_report(given);
  report.line = "netcheck=pass\nnetcheck=fail \x1b[2J";
  const std::string line = report_from_json(to_json(report), given).line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

TEST(ReportJson, OfAnUnknownPhaseIsRefused) {
  const Assignment given = full_assignment();
  Json value = to_json(some_report(given));
  value["phases"] = {{"lunch", 1}};
  EXPECT_THROW(static_cast<void>(report_from_json(value, given)), Malformed);
}

TEST(ReportLog, EndsAtItsLimit) {
  Report report;
  for (int i = 0; i < 1'000; ++i)
    note(report, "a stranger\n");
  EXPECT_THAT(report.log, SizeIs(kMaxLogLines));
  EXPECT_EQ(report.log.front(), "a stranger ");
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  system::Descriptor out, in;
};

TEST(Handover, GivesUpOnAnAssignmentThatDoesNotEnd) {
  const Pipe pipe;
  const auto got = read_assignment(pipe.out);
  ASSERT_FALSE(got);
  EXPECT_THAT(describe(got.error()), HasSubstr("netcheck prolog"));
}

TEST(Handover, ReadsWhatTheSupervisorWrites) {
  Pipe pipe;
  const std::string text = to_json(full_assignment()).dump();
  ASSERT_EQ(::write(pipe.in.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  pipe.in.reset();
  const auto got = read_assignment(pipe.out);
  ASSERT_TRUE(got) << describe(got.error());
  EXPECT_EQ(got->roster.nodes, full_assignment().roster.nodes);
}

TEST(Handover, GivesUpOnASupervisorThatDoesNotRead) {
  Pipe pipe;
  Report report = some_report(full_assignment());
  report.reason = std::string(1u << 20, 'x');  // more than a pipe holds
  const auto written = write_report(std::move(pipe.in), report, system::now() + milliseconds(20));
  ASSERT_FALSE(written);
  EXPECT_THAT(describe(written.error()), HasSubstr("did not take it"));
}

}  // namespace
}  // namespace netcheck::session::test
