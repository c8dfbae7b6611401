// What in the site's file names what is not there.
#include <gmock/gmock.h>

#include "doctor/site.h"

namespace netcheck::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Site site(const char* toml) {
  return parse_config(toml, "f").value();
}

constexpr const char* kAllowing =
    "[when]\nallow_users=['alice','bob']\nallow_groups=['hpc']\n[[rule]]\npartition='gpu*'\nallow_users=['"
    "bob',"
    "'carol']\nallow_accounts=['physics','chem']\n";

TEST(DoctorSite, NamesOfAllSectionsAndRulesAreLookedUpOnce) {
  const AllowedNames names = allowed_names(site(kAllowing));
  EXPECT_THAT(names.users, ElementsAre("alice", "bob", "carol"));
  EXPECT_THAT(names.groups, ElementsAre("hpc"));
  EXPECT_THAT(names.accounts, ElementsAre("physics", "chem"));
  EXPECT_THAT(lines_of("a\n\nb\nc"), ElementsAre("a", "b", "c"));
}

TEST(DoctorSite, WarnsOfNamesThatNobodyHas) {
  SiteFacts facts;
  EXPECT_THAT(check_site(site(kAllowing), facts), IsEmpty());  // nothing is known
  facts.accounts = {"physics", "root"};
  facts.partitions = {"cpu", "GPU2"};  // globs fit letters of any case
  auto findings = check_site(site(kAllowing), facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].level, Level::warn);
  EXPECT_THAT(findings[0].why, HasSubstr("allow_accounts names chem: no such account"));
  facts = {.unknown_users = {"carol"}, .unknown_groups = {"hpc"}};
  findings = check_site(site(kAllowing), facts);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0].why, HasSubstr("allow_users names carol: no such user"));
  EXPECT_THAT(findings[1].why, HasSubstr("allow_groups names hpc: no such group"));
}

TEST(DoctorSite, WarnsOfARuleForAPartitionThatIsNotThere) {
  const auto findings = check_site(site(kAllowing), {.partitions = {{"cpu", "debug"}}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].why, HasSubstr("rule 1 at f:4 is for partition gpu*"));
  EXPECT_THAT(findings[0].remedy, HasSubstr("cpu, debug"));
  EXPECT_THAT(check_site(site("[[rule]]\nnodes=4\nmin='1Gbps'"), {.partitions = {{"cpu"}}}), IsEmpty());
}

TEST(DoctorSite, WhatOnlyARuleNeedsFailsNoNode) {
  const Finding fine{Level::ok, "NCCL", "is here", ""}, odd{Level::unseen, "NCCL", "who knows", ""};
  const Findings found = for_rules_alone({fine, odd, {Level::fail, "NCCL", "is missing", "install it"}});
  EXPECT_EQ(found[0], fine);
  EXPECT_EQ(found[1], odd);
  EXPECT_EQ(found[2].level, Level::warn);
  EXPECT_EQ(found[2].why,
            "is missing; only rules of the configuration need it, which may be for other nodes");
  EXPECT_EQ(found[2].remedy, "install it");
}

TEST(DoctorSite, LooksForTheModulesOfRulesToo) {
  EXPECT_THAT(plain_modules(site("")), ElementsAre("ucx"));
  EXPECT_TRUE(measures_gpus(site("")));  // "auto": a job with GPUs is measured over them
  const Site over_nics = site("[fabric]\nfabric='ucx'");
  EXPECT_THAT(plain_modules(over_nics), ElementsAre("ucx"));
  EXPECT_FALSE(measures_gpus(over_nics));
  // A rule for nodes with GPUs: the others need no NCCL.
  const Site some = site("[fabric]\nfabric='ucx'\n[[rule]]\npartition='dgx'\nfabric='nccl'");
  EXPECT_THAT(plain_modules(some), ElementsAre("ucx"));
  EXPECT_TRUE(measures_gpus(some));
  EXPECT_TRUE(measures_gpus(site("[fabric]\nfabric='ucx'\n[[rule]]\npartition='dgx'\nfabric='auto'")));
  // One that sets something else says nothing of the module.
  EXPECT_FALSE(measures_gpus(site("[fabric]\nfabric='ucx'\n[[rule]]\npartition='dgx'\ntime='9s'")));
  EXPECT_THAT(plain_modules(site("[fabric]\nfabric='nccl'\n[[rule]]\npartition='cpu'\nfabric='ucx'")),
              ElementsAre("nccl", "ucx"));
}

TEST(DoctorSite, WarnsWhereSlurmRequeuesNothing) {
  const SlurmConfig never{{"JobRequeue", "0"}}, may{{"JobRequeue", "1"}};
  EXPECT_THAT(check_requeue(never, site("[action]\naction='cancel'")), IsEmpty());
  EXPECT_THAT(check_requeue(may, site("[action]\naction='requeue'")), IsEmpty());
  EXPECT_THAT(check_requeue({}, site("[action]\naction='requeue'")), IsEmpty());
  for (const char* toml : {"[action]\naction='requeue'", "[action]\naction='hold'",
                           "[action]\non_inconclusive='requeue_once'", "[[rule]]\nnodes=4\naction='hold'"}) {
    const auto findings = check_requeue(never, site(toml));
    ASSERT_EQ(findings.size(), 1U) << toml;
    EXPECT_EQ(findings[0].level, Level::warn);
    EXPECT_THAT(findings[0].why, HasSubstr("brake=no-requeue"));
  }
}

}  // namespace
}  // namespace netcheck::doctor
