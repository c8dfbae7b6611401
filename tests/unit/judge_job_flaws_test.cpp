// What is wrong with the hardware of a job's nodes, as verdict and line say it, and what a node that lies can
// make of it.
#include <gmock/gmock.h>

#include "contract/wire.h"
#include "judge/job_flaws.h"
#include "judge_model.h"
#include "machines.h"

namespace netcheck::judge {
namespace {

using model::plan_for;
using model::play;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

NodeHardware healthy() {
  return {.traits = {{"GPUs", "8", true}, {"MTU", "8 × 9000", false}}, .flaws = {}, .rails = {}};
}
Plan plan_with(std::uint32_t nodes) {
  Plan plan = plan_for(nodes);
  for (NodePlan& node : plan.nodes)
    node.hardware = healthy();
  return plan;
}
std::vector<std::string> words(const Plan& plan) {
  std::vector<std::string> all;
  for (const JobFlaw& flaw : flaws_of(plan))
    all.push_back(describe(flaw, plan));
  return all;
}
std::string line_of(const Plan& plan) {
  return line(decide(plan, play(plan, {}).history), plan, milliseconds(2'000));
}

TEST(JobFlaws, AreNoneOfHealthyNodesNorOfUnknownOnes) {
  EXPECT_THAT(words(plan_with(16)), IsEmpty());
  EXPECT_THAT(words(plan_for(4)), IsEmpty());
  Plan plan = plan_with(4);
  plan.nodes[2].hardware.reset();  // it could not look
  EXPECT_THAT(words(plan), IsEmpty());
  EXPECT_THAT(line_of(plan), Not(HasSubstr("warn=")));
}

TEST(JobFlaws, NameTheOddOneAlsoAmongAThousand) {
  Plan plan = plan_with(1'000);
  plan.nodes[2].hardware->traits[0].value = "7";
  plan.nodes[700].hardware->traits[1].value = "7 × 9000 + 1 × 1500";
  EXPECT_THAT(words(plan),
              ElementsAre("n2(odd-gpus: 7, others 8)", "n700(odd-mtu: 7x9000+1x1500, others 8x9000)"));
  EXPECT_EQ(flaws_of(plan).front().what, "n2 has 7 GPUs, the other 999 nodes 8");
}

TEST(JobFlaws, NameNobodyWhereNoMoreThanHalfAreAlike) {
  Plan plan = plan_with(2);
  plan.nodes[0].hardware->traits[1].value = "8 × 1500";
  EXPECT_THAT(words(plan), ElementsAre("odd-mtu(nodes differ)"));
  plan.weights.of(Flaw::odd_mtu) = Weight::fail;
  const Verdict verdict = decide(plan, play(plan, {}).history);
  ASSERT_EQ(name(verdict), "fail");
  EXPECT_THAT(std::get<Fail>(verdict).flawed.front().nodes, IsEmpty());
}

TEST(JobFlaws, CompareNodesOfOneClassAlone) {
  Plan plan = plan_with(4);
  plan.nodes[3].machine = "another model";
  plan.nodes[3].hardware->traits[0].value = "4";
  EXPECT_THAT(words(plan), IsEmpty());
}

TEST(JobFlaws, WarnFailOrAreIgnoredAsTheSiteSays) {
  Plan plan = plan_with(4);
  plan.nodes[3].hardware->flaws = {
      {Flaw::port_down, "mlx5_3", "mlx5_3 is down (1: DOWN): 1 of 8 rails lost"}};
  EXPECT_THAT(line_of(plan), HasSubstr("netcheck=pass "));
  EXPECT_THAT(line_of(plan), HasSubstr(" warn=n3(port-down: mlx5_3) time="));
  plan.weights.of(Flaw::port_down) = Weight::ignore;
  EXPECT_THAT(line_of(plan), Not(HasSubstr("warn=")));
  plan.weights.of(Flaw::port_down) = Weight::fail;
  EXPECT_THAT(line_of(plan), HasSubstr("netcheck=fail busbw="));
  EXPECT_THAT(line_of(plan), HasSubstr(" bad=n3(port-down: mlx5_3) time="));
  EXPECT_THAT(line_of(plan), Not(HasSubstr("warn=")));
  const Verdict verdict = decide(plan, play(plan, {}).history);
  ASSERT_EQ(std::get<Fail>(verdict).flawed.size(), 1u);
  EXPECT_THAT(std::get<Fail>(verdict).flawed[0].nodes, ElementsAre(3));
  EXPECT_TRUE(std::get<Fail>(verdict).flawed[0].broken_part);
}

TEST(JobFlaws, StandAlsoWhereNothingCouldBeMeasuredAndNotWhereSomebodyIsMissing) {
  Plan plan = plan_with(4);
  plan.nodes[3].hardware->flaws = {{Flaw::gpu_lost, "GPU 3", "it is lost"}};
  plan.weights.of(Flaw::gpu_lost) = Weight::fail;
  EXPECT_EQ(name(decide(plan, {})), "fail");
  History history;
  history.missing.push_back({.node = 1});
  EXPECT_EQ(name(decide(plan, history)), "inconclusive");
  history = {};
  history.refusal = Refusal{Phase::start, "not measured"};
  EXPECT_EQ(name(decide(plan, history)), "inconclusive");
}

TEST(JobFlaws, OfTheSameKindOnManyNodesAreToldOnce) {
  Plan plan = plan_with(16);
  for (NodePlan& node : plan.nodes)
    node.hardware->flaws = {{Flaw::iommu, "IOMMU", "it translates"}};
  EXPECT_THAT(words(plan), ElementsAre("n[0-15](iommu: IOMMU)"));
}

TEST(JobFlaws, ThatANodeSaysItselfAreNotToldAgainOfTheOdd) {
  Plan plan = plan_with(4);
  plan.nodes[1].hardware->traits[1].value = "1 × 1500 + 7 × 9000";
  plan.nodes[1].hardware->flaws = {{Flaw::mtu_uneven, "mlx5_0", "rails differ"}};
  EXPECT_THAT(words(plan), ElementsAre("n1(mtu-uneven: mlx5_0)"));
}

TEST(JobFlaws, OfOneCauseAreToldOnce) {
  Plan plan = plan_for(4);
  for (NodePlan& node : plan.nodes)
    node.hardware = hardware_of(fixture::machine("hgx"), {"mlx5_0:1"});
  Machine seven = fixture::machine("hgx");  // its NVLinks and PCIe links are counted as well
  seven.gpus.pop_back();
  seven.nvlinks.pop_back();
  plan.nodes[2].hardware = hardware_of(seven, {"mlx5_0:1"});
  EXPECT_THAT(words(plan), ElementsAre("n2(odd-gpus: 7, others 8)"));
  plan.weights.of(Flaw::odd_nvlink) = Weight::fail;  // what is worse is told all the same
  EXPECT_THAT(words(plan), ElementsAre("n2(odd-nvlink: 7x18, others 8x18)", "n2(odd-gpus: 7, others 8)"));
}

TEST(JobFlaws, AreAlsoWhatTheSiteMissesAndWhereItsFileIsAnothers) {
  Plan plan = plan_for(2);
  const Finding strange{Severity::warning, "nccl-differs", "0000:aa:00.0", "the file tells of another", ""};
  for (NodePlan& node : plan.nodes)
    node.hardware = hardware_of(fixture::machine("hgx"), {"mlx5_0:1"}, {9, std::nullopt}, {strange});
  plan.nodes[1].hardware = hardware_of(fixture::machine("hgx"), {"mlx5_0:1"}, {8, 8});
  EXPECT_THAT(words(plan), ElementsAre("n0(gpus-missing: 8of9)", "n0(nccl-differs: 0000:aa:00.0)"));
  EXPECT_TRUE(flaws_of(plan).front().broken_part);
  EXPECT_FALSE(flaws_of(plan).back().broken_part);
}

TEST(JobFlaws, NameTheVersionThatIsOdd) {
  Plan plan = plan_with(3);
  for (NodePlan& node : plan.nodes)
    node.hardware->traits.push_back({"NIC driver", "24.04-0.6.6", false});
  plan.nodes[2].hardware->traits.back().value = "23.10-1.1.9";
  EXPECT_THAT(words(plan), ElementsAre("n2(odd-driver: 23.10-1.1.9, others 24.04-0.6.6)"));
}

TEST(JobFlaws, FitIntoTheLineHoweverMany) {
  Plan plan = plan_with(200);
  for (std::uint32_t i = 0; i < 99; ++i)
    plan.nodes[2 * i].hardware->flaws = {{kAllFlaws[i % 17], "mlx5_" + std::to_string(i), "x"}};
  for (const Weight weight : {Weight::warn, Weight::fail}) {
    for (const Flaw flaw : kAllFlaws)
      plan.weights.of(flaw) = weight;
    const std::string text = line(decide(plan, {}), plan, milliseconds(2'000));
    EXPECT_LE(text.size(), 1'024u);
    EXPECT_THAT(text, HasSubstr(",+"));
    EXPECT_THAT(text, HasSubstr(" time=2.0s"));
  }
}

// --- a node that lies --------------------------------------------------------------------------------------

TEST(LyingNode, BringsUpNobodyElseByWhatItCallsItsDevices) {
  Plan plan = plan_with(4);
  plan.nodes[3].hardware->flaws = {{Flaw::port_down, "n1", "n1 is to blame"},
                                   {Flaw::port_slow, "x) slow=n1(tx: 1Mbps) min=1\"|\n", "a | b"}};
  plan.weights.of(Flaw::port_down) = Weight::fail;
  EXPECT_THAT(words(plan), ElementsAre("n3(port-down)", "n3(port-slow: xslown1tx:1Mbpsmin1)"));
  const Verdict verdict = decide(plan, play(plan, {}).history);
  for (const Flawed& flawed : std::get<Fail>(verdict).flawed)
    EXPECT_THAT(flawed.nodes, ElementsAre(3));
}

TEST(LyingNode, WritesNothingIntoTheLineByItsTraits) {
  Plan plan = plan_with(4);
  plan.nodes[3].hardware->traits[0].value = "8) slow=n1(tx: 0Mbps";
  EXPECT_THAT(words(plan), ElementsAre("n3(odd-gpus)"));
}

TEST(LyingNode, CountsOnceWhateverItRepeats) {
  Plan plan = plan_with(3);
  for (int i = 0; i < 9; ++i)
    plan.nodes[2].hardware->traits.push_back({"GPUs", "7", true});
  plan.nodes[2].hardware->traits.erase(plan.nodes[2].hardware->traits.begin());
  EXPECT_THAT(words(plan), ElementsAre("n2(odd-gpus: 7, others 8)"));
}

TEST(Hardware, GoesOverTheWireAndBack) {
  const NodeHardware hardware = hardware_of(fixture::machine("hgx"), {"mlx5_0:1"});
  EXPECT_EQ(hardware_from_json(to_json(hardware)), hardware);
  EXPECT_LT(to_cbor(to_json(hardware)).size(), 2'000u);
}

TEST(Hardware, ThatMakesNoSenseIsRefused) {
  const Json good = to_json(hardware_of(fixture::machine("hgx"), {"mlx5_0:1"}));
  const auto refused = [](const Json& value) {
    try {
      static_cast<void>(hardware_from_json(value));
      return false;
    } catch (const Malformed&) {
      return true;
    }
  };
  EXPECT_FALSE(refused(good));
  Json bad = good;
  bad["traits"].push_back(bad["traits"][0]);
  EXPECT_TRUE(refused(bad)) << "a trait twice";
  bad = good;
  bad["traits"][0]["key"] = "n1";
  EXPECT_TRUE(refused(bad)) << "no such trait";
  bad = good;
  bad["findings"].push_back({{"code", "odd-gpus"}, {"culprit", "n1"}, {"what", ""}});
  EXPECT_TRUE(refused(bad)) << "oddness of its own";
  for (const double rate : {0.0, -1.0, 1e16}) {
    bad = good;
    bad["rails"][0]["nominal_bps"] = rate;
    EXPECT_TRUE(refused(bad)) << rate;
  }
  bad = good;
  bad["traits"][0]["value"] = std::string(129, 'x');
  EXPECT_TRUE(refused(bad));
  bad = good;
  for (int i = 0; i < 9; ++i)
    bad["findings"].push_back({{"code", "port-down"}, {"culprit", "x"}, {"what", ""}});
  EXPECT_TRUE(refused(bad));
}

}  // namespace
}  // namespace netcheck::judge
