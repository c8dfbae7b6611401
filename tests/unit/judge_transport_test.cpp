// What carries the bytes, against what the site demands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge/transport.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::play;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Plan demanding(const std::string& transport) {
  Plan plan = model::plan_for(3, 2);
  plan.teaming = Teaming::over_lanes;
  plan.thresholds.transport = transport;
  return plan;
}

/// A whole check whose teams' bytes go over `transport`.
History over(const std::string& transport) {
  History history = play(demanding(""), {}).history;
  for (Done& done : history.done)
    if (form_of(done) != nullptr) done.transport = transport;
  return history;
}

std::string line_of(const std::string& wanted, const History& history) {
  return line(decide(demanding(wanted), history), demanding(wanted), Ns(0));
}

TEST(Transport, IsReadFromTheWaysBetweenNodes) {
  EXPECT_THAT(ways_between_nodes("IB/mlx5_0+GDR,P2P/CUMEM,SHM, RoCE/mlx5_1,NVLS,CollNet,NET"),
              ElementsAre("IB/mlx5_0+GDR", "RoCE/mlx5_1"));
  EXPECT_THAT(ways_between_nodes("AWS Libfabric/rdmap0"), ElementsAre("AWS Libfabric/rdmap0"));
  EXPECT_THAT(ways_between_nodes(""), IsEmpty());
}

TEST(Transport, FailsTheCheckWhereItIsNotTheOneDemandedAndBlamesNobody) {
  const History sockets = over("Socket/eth0,P2P/CUMEM");
  const std::string line = line_of("IB", sockets);
  EXPECT_THAT(line, StartsWith("netcheck=fail "));
  EXPECT_THAT(line, HasSubstr(" transport=Socket/eth0 required=IB"));
  const Verdict verdict = decide(demanding("IB"), sockets);
  EXPECT_THAT(std::get<Fail>(verdict).blame.culprits, IsEmpty());
  EXPECT_EQ(to_json(verdict, demanding("IB")).at("transport"), "Socket/eth0");
  EXPECT_THAT(line_of("Socket", sockets), StartsWith("netcheck=pass "));
  EXPECT_THAT(line_of("socket", sockets), StartsWith("netcheck=pass "));
  EXPECT_THAT(line_of("", sockets), StartsWith("netcheck=pass "));
}

TEST(Transport, OfOneNodeThatFallsBackCountsToo) {
  History history = over("IB/mlx5_0+GDR");
  EXPECT_THAT(line_of("IB", history), StartsWith("netcheck=pass "));
  history.done.front().outcomes[2].transport = "IB/mlx5_0,Socket/eth0";
  EXPECT_THAT(line_of("IB", history), HasSubstr(" transport=Socket/eth0 required=IB"));
}

TEST(Transport, EndsTheCheckWhereItIsTheWrongOne) {
  History history = over("Socket/eth0");
  history.done.resize(1);
  EXPECT_TRUE(std::holds_alternative<Stop>(next(demanding("IB"), history, Ns(0))));
  EXPECT_FALSE(std::holds_alternative<Stop>(next(demanding("Socket"), history, Ns(0))));
  EXPECT_THAT(line_of("IB", history), HasSubstr("netcheck=fail op="));
}

TEST(Transport, ThatNobodyTellsIsNoPass) {
  EXPECT_THAT(line_of("IB", over("P2P/CUMEM,SHM")), HasSubstr("netcheck=inconclusive phase=connect"));
  EXPECT_THAT(line_of("IB", {}), Not(HasSubstr("require_transport")));
}

TEST(Transport, IsOneWordOfTheLine) {
  EXPECT_THAT(line_of("AWS Libfabric", over("Evil | Plugin\"x/eth0")),
              HasSubstr(" transport=Evil_/_Plugin'x/eth0 required=AWS_Libfabric"));
}

TEST(Transport, IsKeptInRecords) {
  History history = over("IB/mlx5_0");
  history.done.front().outcomes[1].transport = "Socket/eth0";
  const Plan plan = plan_from_json(to_json(demanding("IB")));
  EXPECT_EQ(plan.thresholds.transport, "IB");
  const History read = history_from_json(to_json(history), plan);
  EXPECT_EQ(other_transport(plan, read), "Socket/eth0");
}

}  // namespace
}  // namespace netcheck::judge
