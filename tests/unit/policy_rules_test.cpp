// Rules, profiles, and what is told at submission where a job is not fully known.
#include <gmock/gmock.h>

#include "policy/policy.h"
#include "policy/profiles.h"

namespace netcheck {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Site site(const char* toml) {
  auto parsed = parse_config(toml, "f");
  EXPECT_TRUE(parsed) << describe(parsed.error());
  return parsed.value_or(Site{});
}

JobKind gpu_job(std::uint32_t nodes) {
  return {
      .partition = "gpu", .account = "ml", .nodes = nodes, .gpu = "NVIDIA H100 80GB HBM3", .hardware = "DGX"};
}

TEST(Rules, ApplyInOrderTheLastOneCounting) {
  const Site rules = site(R"(
[threshold]
min = "50Gbps"
[[rule]]
partition = "gpu"
min = "100Gbps"
time = "10s"
[[rule]]
nodes = "16-"
min = "400Gbps"
[[rule]]
partition = "debug"
min = "1Gbps"
)");
  const Policy small = resolve(rules, gpu_job(4)).value();
  EXPECT_EQ(small.min, Rate{100e9});
  EXPECT_EQ(small.site_min, Rate{100e9});
  EXPECT_EQ(small.time, seconds(10));
  EXPECT_EQ(small.sources.at("threshold.min"), "rule 1 at f:6");
  const Policy large = resolve(rules, gpu_job(16)).value();
  EXPECT_EQ(large.min, Rate{400e9});
  EXPECT_EQ(large.sources.at("threshold.min"), "rule 2 at f:10");
  EXPECT_EQ(large.sources.at("check.time"), "rule 1 at f:7");
  EXPECT_EQ(large.sources.at("check.op"), "built-in");
  EXPECT_EQ(resolve(rules, {.partition = "cpu", .account = "", .nodes = 2}).value().min, Rate{50e9});
}

struct Condition {
  const char* toml;
  JobKind kind;
  Match match;
};
class Conditions : public testing::TestWithParam<Condition> {};

TEST_P(Conditions, HoldOrDoNot) {
  const Site rules = site((std::string("[[rule]]\nop='alltoall'\n") + GetParam().toml).c_str());
  std::string why;
  EXPECT_EQ(matches(rules.rules.at(0), GetParam().kind, why), GetParam().match)
      << GetParam().toml << ": " << why;
  EXPECT_EQ(why.empty(), GetParam().match == Match::yes);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Conditions,
    testing::Values(
        Condition{"partition='gpu'", {.partition = "gpu"}, Match::yes},
        Condition{"partition='gpu'", {.partition = "gpu2"}, Match::no},
        Condition{"partition='gpu'", {}, Match::unknown},
        Condition{"partition=['dgx','gpu?']", {.partition = "gpu2"}, Match::yes},
        Condition{"partition=['dgx','gpu?']", {.partition = "gpu"}, Match::no},
        Condition{"partition='*u*2'", {.partition = "gpu-u-12"}, Match::yes},
        Condition{"partition='*u*2'", {.partition = "gpu-u-123"}, Match::no},
        Condition{"partition='*'", {.partition = ""}, Match::yes},
        Condition{"account='ml'", {.account = "ML"}, Match::yes},
        Condition{"nodes=8", {.nodes = 8}, Match::yes}, Condition{"nodes=8", {.nodes = 9}, Match::no},
        Condition{"nodes='2-8'", {.nodes = 2}, Match::yes},
        Condition{"nodes='2-8'", {.nodes = 8}, Match::yes}, Condition{"nodes='2-8'", {.nodes = 9}, Match::no},
        Condition{"nodes='2-8'", {.nodes = 1}, Match::no},
        Condition{"nodes='16-'", {.nodes = 16'384}, Match::yes},
        Condition{"nodes='-8'", {.nodes = 1}, Match::yes}, Condition{"nodes='-8'", {}, Match::unknown},
        Condition{"gpu='*H100*'", {.gpu = "NVIDIA H100 80GB HBM3"}, Match::yes},
        Condition{"gpu='*h100*'", {.gpu = "NVIDIA H100 80GB HBM3"}, Match::yes},
        Condition{"gpu='*H100*'", {.gpu = ""}, Match::no},
        Condition{"hardware='PowerEdge*'", {.hardware = "PowerEdge R760"}, Match::yes},
        // One that does not hold settles it, whatever is not known.
        Condition{"gpu='*H100*'\nnodes=8", {.nodes = 4}, Match::no},
        Condition{"gpu='*H100*'\nnodes=8", {.nodes = 8}, Match::unknown}));

TEST(Rules, ThatDoNotFitTogetherAreNamedWithTheirLine) {
  const Site rules = site("[[rule]]\npartition='gpu'\ntime='30s'");
  ASSERT_TRUE(resolve(rules, {.partition = "cpu"}));
  const auto wrong = resolve(rules, gpu_job(4));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(describe(wrong.error()),
            "read the configuration rule 1 at f:3: 'time' (30s) is above 'max_time' (20s)");
}

TEST(Profiles, AreBeneathWhatStandsBesideThem) {
  const Policy alone = site("[threshold]\nprofile='h100-8xndr'").defaults;
  EXPECT_EQ(alone.min, Rate{2'270e9});  // 356 GB/s × 8 × 0.8 = 2278 Gb/s
  EXPECT_EQ(alone.site_min, Rate{2'270e9});
  EXPECT_EQ(alone.min_per_rail, Rate{304e9});  // 380 Gb/s × 0.8
  EXPECT_EQ(alone.sources.at("threshold.min"), "profile h100-8xndr at f:2");
  const Policy beside = site("[threshold]\nmin='1Tbps'\nprofile='h100-8xndr'").defaults;
  EXPECT_EQ(beside.min, Rate{1e12});
  EXPECT_EQ(beside.min_per_rail, Rate{304e9});
  EXPECT_EQ(beside.sources.at("threshold.min"), "f:2");
}

TEST(Profiles, InARuleReplaceWhatTheFileSays) {
  const Site rules = site("[threshold]\nmin='1Gbps'\n[[rule]]\npartition='gpu'\nprofile='llm'");
  const Policy policy = resolve(rules, gpu_job(2)).value();
  EXPECT_EQ(policy.profile, "llm");
  EXPECT_EQ(policy.min, Rate{400e9});
  EXPECT_EQ(policy.sources.at("threshold.min"), "profile llm at rule 1 at f:5");
}

TEST(Profiles, AllSaySomething) {
  for (const Profile& profile : profiles()) {
    EXPECT_TRUE(profile.min || profile.min_per_rail) << profile.name;
    EXPECT_EQ(find_profile(profile.name), &profile);
    EXPECT_THAT(profile_names(), HasSubstr("\"" + std::string(profile.name) + "\""));
  }
}

std::vector<std::string> told(const char* toml, const JobKind& kind, const char* spec) {
  std::vector<std::string> lines;
  for (const Wish& wish : not_granted_for_sure(site(toml), kind, parse_request(spec).value()))
    lines.push_back(wish.forbidden() ? "refuse " + wish.text : "note " + wish.note());
  return lines;
}

TEST(AtSubmission, WhatTheFileForbidsIsSaid) {
  EXPECT_THAT(told("[threshold]\nmin='100Gbps'", {}, "50Gbps"),
              ElementsAre("refuse min=50Gbps: the site's minimum is 100Gbps"));
  EXPECT_THAT(told("", {}, "action=requeue,time=60s"),
              ElementsAre("refuse action=requeue: the site allows annotate",
                          "note time=60s: the site's maximum is 20s, so 20s counts"));
  EXPECT_THAT(told("[threshold]\nmin='100Gbps'", {}, "200Gbps"), IsEmpty());
}

TEST(AtSubmission, WhatARuleCouldGrantIsNotHeldAgainstTheUser) {
  constexpr const char* kSite =
      "[threshold]\nmin='100Gbps'\n"
      "[[rule]]\npartition='debug'\nmin='none'\n"
      "[[rule]]\naccount='net'\nuser_actions=['cancel']\nmax_time='60s'";
  EXPECT_THAT(told(kSite, {}, "50Gbps"), IsEmpty());
  EXPECT_THAT(told(kSite, {}, "action=cancel,time=60s"), IsEmpty());
  EXPECT_THAT(told(kSite, {}, "action=hold"), ElementsAre("refuse action=hold: the site allows annotate"));
  EXPECT_THAT(told(kSite, {.partition = "gpu"}, "50Gbps"),
              ElementsAre("refuse min=50Gbps: the site's minimum is 100Gbps"));
  EXPECT_THAT(told(kSite, {.partition = "debug", .account = "ml"}, "50Gbps"), IsEmpty());
}

TEST(AtSubmission, ARuleThatCouldForbidDoesNotYet) {
  constexpr const char* kSite = "[[rule]]\npartition='gpu'\nmin='400Gbps'";
  EXPECT_THAT(told(kSite, {}, "50Gbps"), IsEmpty());
  EXPECT_THAT(told(kSite, {.partition = "gpu"}, "50Gbps"),
              ElementsAre("refuse min=50Gbps: the site's minimum is 400Gbps"));
}

TEST(Fractions, AreSaidToCountWhereTheyDo) {
  EXPECT_EQ(where_fractions_count(site("").defaults), "");
  const Policy policy = site("[threshold]\nmin_fraction=0.8\nmin_fraction_per_rail=1").defaults;
  EXPECT_EQ(policy.min_fraction, 0.8);
  EXPECT_EQ(policy.min_fraction_per_rail, 1.0);
  EXPECT_THAT(without_effect(policy), IsEmpty());
  EXPECT_THAT(where_fractions_count(policy), HasSubstr("count where RDMA carries the bytes"));
}

TEST(Findings, AreWarningsUnlessTheSiteOrARuleSaysOtherwise) {
  const Site file = site(
      "[findings]\nport_down='fail'\niommu='ignore'\n"
      "[[rule]]\npartition='debug'\nport_down='warn'\nodd_gpus='ignore'");
  for (const Flaw flaw : kAllFlaws)
    EXPECT_EQ(site("").defaults.findings.of(flaw), Weight::warn);
  const Policy usual = resolve(file, {.partition = "gpu"}).value();
  EXPECT_EQ(usual.findings.of(Flaw::port_down), Weight::fail);
  EXPECT_EQ(usual.findings.of(Flaw::iommu), Weight::ignore);
  EXPECT_EQ(usual.findings.of(Flaw::odd_gpus), Weight::warn);
  const Policy debug = resolve(file, {.partition = "debug"}).value();
  EXPECT_EQ(debug.findings.of(Flaw::port_down), Weight::warn);
  EXPECT_EQ(debug.findings.of(Flaw::odd_gpus), Weight::ignore);
  EXPECT_EQ(debug.findings.of(Flaw::iommu), Weight::ignore);
  EXPECT_NE(agreement(usual), agreement(debug));
}

TEST(Findings, EachHasAKeyOfItsName) {
  for (const Flaw flaw : kAllFlaws) {
    const auto read = parse_config("[findings]\n" + key_of(flaw) + "='fail'", "f");
    ASSERT_TRUE(read) << key_of(flaw);
    for (const Flaw other : kAllFlaws)
      EXPECT_EQ(read->defaults.findings.of(other), other == flaw ? Weight::fail : Weight::warn);
    EXPECT_EQ(parse_flaw(name(flaw)), flaw);
  }
  EXPECT_FALSE(parse_config("[findings]\nport_down='drain'", "f"));
  EXPECT_FALSE(parse_config("[findings]\nport_down=true", "f"));
}

TEST(Share, OfACluster) {
  EXPECT_EQ((Share{.percent = 1}).of(500), 5u);
  EXPECT_EQ((Share{.percent = 1}).of(40), 1u);  // 0.4, and at least one
  EXPECT_EQ((Share{.count = 3}).of(500), 3u);
  EXPECT_EQ((Share{.count = 0}).of(500), 0u);
}

}  // namespace
}  // namespace netcheck
