// The request on top of the site's policy: more is granted, less is not.
#include <gmock/gmock.h>

#include "policy/policy.h"

namespace netcheck {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

Policy site(const char* toml) {
  return parse_config(toml, "f").value().defaults;
}

struct Applied {
  Policy policy;
  std::vector<std::string> notes;
};

Applied apply_to(Policy policy, const char* spec) {
  Applied applied;
  std::vector<Wish> wishes;
  applied.policy = apply(std::move(policy), parse_request(spec).value(), wishes);
  for (const Wish& wish : wishes)
    applied.notes.push_back(wish.forbidden() ? "forbidden: " + wish.text : wish.note());
  return applied;
}

TEST(Apply, HigherThresholdIsGranted) {
  const auto [policy, notes] = apply_to(site("[threshold]\nmin='100Gbps'"), "400Gbps");
  EXPECT_EQ(policy.min, Rate{400e9});
  EXPECT_EQ(policy.site_min, Rate{100e9});
  EXPECT_EQ(policy.sources.at("threshold.min"), "the job's request");
  EXPECT_THAT(notes, IsEmpty());
}

TEST(Apply, LowerThresholdIsNot) {
  const auto [policy, notes] = apply_to(site("[threshold]\nmin='100Gbps'"), "50Gbps");
  EXPECT_EQ(policy.min, Rate{100e9});
  EXPECT_EQ(policy.sources.at("threshold.min"), "f:2");
  EXPECT_THAT(notes, ElementsAre("forbidden: min=50Gbps: the site's minimum is 100Gbps"));
}

TEST(Apply, AnyThresholdIsGrantedWhereTheSiteHasNone) {
  const auto [policy, notes] = apply_to(site(""), "800Mbps");
  EXPECT_EQ(policy.min, Rate{800e6});
  EXPECT_FALSE(policy.site_min);
  EXPECT_THAT(notes, IsEmpty());
}

TEST(Apply, LongerTimeIsGrantedUpToTheSitesMaximum) {
  EXPECT_EQ(apply_to(site(""), "time=12s").policy.time, seconds(12));
  const auto [policy, notes] = apply_to(site(""), "time=60s");
  EXPECT_EQ(policy.time, seconds(20));
  EXPECT_EQ(policy.sources.at("check.time"), "the job's request");
  EXPECT_THAT(notes, ElementsAre("time=60s: the site's maximum is 20s, so 20s counts"));
}

TEST(Apply, ShorterTimeIsNot) {
  const auto [policy, notes] = apply_to(site(""), "time=5s");
  EXPECT_EQ(policy.time, seconds(8));
  EXPECT_EQ(policy.sources.at("check.time"), "built-in");
  EXPECT_THAT(notes, ElementsAre("time=5s: the site's time is 8s, so 8s counts"));
}

TEST(Apply, OperationIsTheUsersChoice) {
  const auto [policy, notes] = apply_to(site(""), "op=all_reduce");
  EXPECT_EQ(policy.op, "all_reduce");
  EXPECT_EQ(policy.sources.at("check.op"), "the job's request");
  EXPECT_THAT(notes, IsEmpty());
}

TEST(Apply, ThresholdStaysBetweenWhatTheSiteTakes) {
  constexpr const char* kSite = "[users]\nlowest_min='10Gbps'\nhighest_min='800Gbps'";
  EXPECT_EQ(apply_to(site(kSite), "10Gbps").policy.min, Rate{10e9});
  EXPECT_EQ(apply_to(site(kSite), "800Gbps").policy.min, Rate{800e9});
  const auto [low, low_notes] = apply_to(site(kSite), "1Gbps");
  EXPECT_FALSE(low.min);
  EXPECT_THAT(low_notes, ElementsAre("forbidden: min=1Gbps: the lowest that the site takes is 10Gbps"));
  const auto [high, high_notes] = apply_to(site(kSite), "10Tbps");
  EXPECT_FALSE(high.min);
  EXPECT_THAT(high_notes,
              ElementsAre("forbidden: min=10000Gbps: the highest that the site takes is 800Gbps"));
}

TEST(Apply, ActionIsTheSitesOrOneThatItAllows) {
  const auto [same, same_notes] = apply_to(site("[action]\naction='requeue'"), "action=requeue");
  EXPECT_EQ(same.action, Action::requeue);
  EXPECT_EQ(same.sources.at("action.action"), "f:2");
  EXPECT_THAT(same_notes, IsEmpty());
  const auto [allowed, allowed_notes] =
      apply_to(site("[users]\nuser_actions=['hold','cancel']"), "action=cancel");
  EXPECT_EQ(allowed.action, Action::cancel);
  EXPECT_EQ(allowed.sources.at("action.action"), "the job's request");
  EXPECT_THAT(allowed_notes, IsEmpty());
  const auto [not_allowed, why] = apply_to(
      site("[action]\naction='requeue'\n[users]\nuser_actions=['hold','requeue']"), "action=annotate");
  EXPECT_EQ(not_allowed.action, Action::requeue);
  EXPECT_THAT(why, ElementsAre("forbidden: action=annotate: the site allows requeue, hold"));
}

// What a job is told that slips past the refusal at submission.
TEST(Apply, SaysWhatCountsInPlaceOfEachWish) {
  const auto note_of = [](const char* toml, const char* spec) {
    std::vector<Wish> wishes;
    static_cast<void>(apply(site(toml), parse_request(spec).value(), wishes));
    return wishes.empty() ? "" : wishes.front().note();
  };
  EXPECT_EQ(note_of("[threshold]\nmin='100Gbps'", "50Gbps"),
            "min=50Gbps: the site's minimum is 100Gbps, so 100Gbps counts");
  EXPECT_EQ(note_of("[threshold]\nmin='100Gbps'\n[users]\nhighest_min='200Gbps'", "1Tbps"),
            "min=1000Gbps: the highest that the site takes is 200Gbps, so 100Gbps counts");
  EXPECT_EQ(note_of("[users]\nlowest_min='10Gbps'", "1Gbps"),
            "min=1Gbps: the lowest that the site takes is 10Gbps, so no threshold counts");
  EXPECT_EQ(note_of("[action]\naction='requeue'", "action=cancel"),
            "action=cancel: the site allows requeue, so requeue counts");
}

TEST(WithoutEffect, NamesActionsThatNoCommentCanAnnounce) {
  const auto lines_of = [](const char* toml) { return without_effect(parse_config(toml, "f").value()); };
  EXPECT_THAT(lines_of("[record]\nannotate=false"), IsEmpty());  // nothing is asked for
  EXPECT_THAT(lines_of("[action]\naction='requeue'\ndrain=true"), IsEmpty());
  EXPECT_THAT(lines_of("[record]\nannotate=false\n[action]\naction='requeue'\ndrain=true\n[users]\n"
                       "user_actions=['hold']"),
              ElementsAre(testing::StartsWith("f:4: action has no effect: annotate = false"),
                          testing::StartsWith("f:5: drain has no effect: annotate = false"),
                          testing::StartsWith("f:7: user_actions has no effect: annotate = false")));
  EXPECT_THAT(lines_of("[action]\naction='hold'\n[[rule]]\npartition='a'\nannotate=false"),
              ElementsAre(testing::StartsWith("f:2: action has no effect: annotate = false")));
}

TEST(MeasuredWith, DiffersWithWhatIsMeasuredOverWhat) {
  const std::string usual = measured_with(site(""));
  for (const char* toml :
       {"[check]\nop='alltoall'", "[check]\nslice='1s'", "[check]\ngroup_size=4", "[fabric]\nfabric='nccl'",
        "[fabric]\ndevices=['mlx5_1']", "[fabric]\nexclude=['eno*']", "[probe]\nmemory='1MiB'",
        "[nccl]\nalgorithm='Tree'"})
    EXPECT_NE(usual, measured_with(site(toml))) << toml;
  for (const char* toml : {"[check]\ntime='9s'", "[threshold]\nmin='1Gbps'", "[action]\naction='hold'"})
    EXPECT_EQ(usual, measured_with(site(toml))) << toml;
}

TEST(Apply, EmptyRequestChangesNothing) {
  EXPECT_EQ(apply_to(site("[check]\ntime='9s'"), "(null)").policy, site("[check]\ntime='9s'"));
}

TEST(Agreement, DiffersWithWhatAllNodesMustShare) {
  const std::string usual = agreement(site(""));
  EXPECT_EQ(usual, agreement(site("# the same\n[check]\ntime='8s'")));
  for (const char* toml :
       {"[check]\ntime='9s'", "[check]\nop='alltoall'", "[check]\nslice='1s'", "[check]\nrendezvous='2s'",
        "[check]\ngroup_size=4", "[threshold]\nmin='1Gbps'", "[threshold]\nmin_per_rail='1Gbps'",
        "[threshold]\nmin_per_pair='1Gbps'", "[fabric]\nfabric='nccl'", "[probe]\nmemory='1MiB'",
        "[nccl]\nenv={NCCL_IB_TC='106'}", "[nccl]\nmax_world=8", "[nccl]\nrequire_transport='IB'"})
    EXPECT_NE(usual, agreement(site(toml))) << toml;
  // What may differ from node to node.
  for (const char* toml :
       {"[peers]\nmunge_socket='/run/m'", "[fabric]\nexclude=['eno*']", "[record]\nrun_directory='/tmp/x'",
        "[probe]\nmodule_directory='/opt'", "[nccl]\nlibrary='/opt/libnccl.so.2'"})
    EXPECT_EQ(usual, agreement(site(toml))) << toml;
}

TEST(Agreement, HasATermForEachDifference) {
  const auto terms = agreement_terms(site("[check]\ngroup_size=4"));
  EXPECT_THAT(terms, testing::Contains("check.group_size=4"));
}

}  // namespace
}  // namespace netcheck
