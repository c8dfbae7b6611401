// What Slurm's settings mean for a check: from the text that scontrol prints to lines with a remedy. Expected
// levels are what these settings did on clusters of Slurm 22.05 and 25.11.
#include <gmock/gmock.h>

#include "doctor/slurm.h"

namespace netcheck::doctor {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// As 22.05 prints it.
constexpr const char* kShown =
    "Configuration data as of 2025-01-01T00:00:00\n"
    "AccountingStorageType   = accounting_storage/slurmdbd\n"
    "AuthInfo                = (null)\n"
    "AuthType                = auth/munge\n"
    "BatchStartTimeout       = 10 sec\n"
    "JobAcctGatherParams     = (null)\n"
    "MessageTimeout          = 10 sec\n"
    "Prolog                  = (null)\n"
    "PrologEpilogTimeout     = 65534\n"
    "PrologFlags             = Alloc,DeferBatch\n"
    "TaskPluginParam         = Cores=1, Verbose\n"
    "\n"
    "Slurmctld(primary) at ctl is UP\n";

SlurmConfig shown(const std::map<std::string, std::string>& changes = {}) {
  SlurmConfig config = parse_slurm_config(kShown);
  for (const auto& [key, value] : changes)
    config[key] = value;
  return config;
}

std::vector<Level> levels(const Findings& findings) {
  std::vector<Level> all;
  for (const Finding& finding : findings)
    all.push_back(finding.level);
  return all;
}

const Finding* find(const Findings& findings, std::string_view what) {
  const auto found = std::ranges::find(findings, what, &Finding::what);
  return found == findings.end() ? nullptr : &*found;
}

TEST(DoctorSlurmConfig, IsReadAsScontrolPrintsIt) {
  const SlurmConfig config = shown();
  EXPECT_EQ(value_of(config, "PrologFlags"), "Alloc,DeferBatch");
  EXPECT_EQ(value_of(config, "BatchStartTimeout"), "10 sec");
  EXPECT_EQ(value_of(config, "TaskPluginParam"), "Cores=1, Verbose");
  EXPECT_EQ(value_of(config, "Prolog"), "");  // (null)
  EXPECT_EQ(value_of(config, "NoSuchKey"), "");
  EXPECT_TRUE(parse_slurm_config("").empty());
}

TEST(DoctorSlurmVersion, IsReadFromWhatSinfoPrints) {
  struct Case {
    const char* text;
    std::optional<SlurmVersion> expected;
  };
  const std::vector<Case> cases{{"slurm-wlm 22.05.8\n", SlurmVersion{22, 5, 8}},
                                {"slurm 25.11.0-0rc1", SlurmVersion{25, 11, 0}},
                                {"slurm 23.11.4", SlurmVersion{23, 11, 4}},
                                {"slurm", std::nullopt},
                                {"slurm 23", std::nullopt},
                                {"slurm x.y.z", std::nullopt},
                                {"", std::nullopt},
                                {"sinfo: fatal: 22.05.8", std::nullopt}};
  for (const Case& one : cases)
    EXPECT_EQ(parse_slurm_version(one.text), one.expected) << one.text;
  // SLURM_VERSION_NUM(22,5,8) of slurm_version.h: 22 * 65536 + 5 * 256 + 8.
  EXPECT_EQ(unpack_slurm_version(1'443'080), (SlurmVersion{22, 5, 8}));
  EXPECT_EQ(text_of({22, 5, 8}), "22.05.8");
}

TEST(DoctorPrologFlags, FailsWhereTheNodesOfAJobNeverMeet) {
  struct Case {
    const char* flags;
    std::vector<Level> expected;
    const char* words;
  };
  const std::vector<Case> cases{
      {"Alloc,DeferBatch", {Level::ok}, "batch scripts wait"},
      {"deferbatch,alloc", {Level::ok}, ""},
      {"Alloc,Contain,DeferBatch,X11", {Level::ok}, ""},
      {"Contain", {Level::warn}, "without DeferBatch"},
      {"Alloc", {Level::warn}, "without DeferBatch"},
      {"Alloc,NoHold", {Level::warn}, "without DeferBatch"},
      {"(null)", {Level::fail}, "never meet"},
      {"Serial", {Level::fail}, "never meet"},
      {"Alloc,DeferBatch,Serial", {Level::warn}, "one after another"},
      {"Alloc,Serial", {Level::warn, Level::warn}, "one after another"},
      {"Alloc,Contain,RunInJob", {Level::fail}, "never calls a plugin's prolog"},
  };
  for (const Case& one : cases) {
    const Findings findings = check_prolog_flags(shown({{"PrologFlags", one.flags}}));
    EXPECT_EQ(levels(findings), one.expected) << one.flags;
    EXPECT_THAT(findings.front().why, HasSubstr(one.words));
    for (const Finding& finding : findings)
      EXPECT_EQ(finding.remedy.empty(), finding.level == Level::ok) << one.flags;
  }
}

TEST(DoctorPrologFlags, TakesRunInJobWithAPrologScriptForAWarning) {
  const auto findings = check_prolog_flags(
      shown({{"PrologFlags", "Alloc,Contain,RunInJob"}, {"Prolog", "/etc/slurm/prolog.sh"}}));
  EXPECT_EQ(levels(findings), std::vector{Level::warn});
  EXPECT_THAT(findings.front().remedy, HasSubstr("netcheck prolog"));
}

// A check of the built-in values takes 8 s, a user may make it 20, and 2 s come on top.
TEST(DoctorTimeouts, AreAllRightByDefault) {
  const auto findings = check_timeouts(shown(), Policy{}, 25s);
  EXPECT_EQ(levels(findings), (std::vector{Level::ok, Level::ok, Level::ok, Level::ok}));
}

TEST(DoctorTimeouts, MustLeaveRoomForTheLongestCheck) {
  struct Case {
    const char* limit;
    Ns plugin;
    Level expected;
  };
  const std::vector<Case> cases{{"22", 25s, Level::fail},    {"23", 25s, Level::warn},
                                {"25", 25s, Level::warn},    {"26", 25s, Level::ok},
                                {"300 sec", 25s, Level::ok}, {"65534", 25s, Level::ok},
                                {"65535", 25s, Level::ok}};
  for (const Case& one : cases) {
    const auto findings = check_timeouts(shown({{"PrologEpilogTimeout", one.limit}}), Policy{}, one.plugin);
    ASSERT_NE(find(findings, "prolog timeout"), nullptr);
    EXPECT_EQ(find(findings, "prolog timeout")->level, one.expected) << one.limit;
  }
  // Later versions of Slurm have one of its own for prologs.
  const auto own = check_timeouts(shown({{"PrologTimeout", "10"}}), Policy{}, 25s);
  EXPECT_EQ(find(own, "prolog timeout")->level, Level::fail);
  EXPECT_THAT(find(own, "prolog timeout")->remedy, HasSubstr("PrologTimeout above 25s"));
}

TEST(DoctorTimeouts, NameThePluginsOwnWhereItEndsChecks) {
  EXPECT_EQ(find(check_timeouts(shown(), Policy{}, 22s), "plugin timeout")->level, Level::ok);
  const auto findings = check_timeouts(shown(), Policy{}, 21s);
  EXPECT_EQ(find(findings, "plugin timeout")->level, Level::fail);
  EXPECT_THAT(find(findings, "plugin timeout")->remedy, HasSubstr("timeout=25"));
  EXPECT_EQ(find(check_timeouts(shown(), Policy{}, std::nullopt), "plugin timeout"), nullptr);
}

TEST(DoctorTimeouts, CountThePrologScriptsLimitToo) {
  const auto of = [](const char* slurm, Ns limit) {
    return check_timeouts(shown({{"PrologEpilogTimeout", slurm}}), Policy{}, std::nullopt, limit);
  };
  EXPECT_EQ(find(of("65534", 22s), "Prolog script's limit")->level, Level::ok);
  EXPECT_EQ(find(of("65534", 21s), "Prolog script's limit")->level, Level::fail);
  EXPECT_THAT(find(of("65534", 21s), "Prolog script's limit")->remedy, HasSubstr("limit=25"));
  // The script's outer timeout ends what the inner one does not: 25 s and 3.
  EXPECT_EQ(find(of("28", 25s), "prolog timeout")->level, Level::warn);
  EXPECT_THAT(find(of("28", 25s), "prolog timeout")->remedy, HasSubstr("above 28s"));
  EXPECT_EQ(find(of("29", 25s), "prolog timeout")->level, Level::ok);
  EXPECT_EQ(find(check_timeouts(shown(), Policy{}, 25s), "Prolog script's limit"), nullptr);
}

TEST(DoctorTimeouts, WarnWhereSlurmGetsImpatientWithAUsualCheck) {
  Policy policy;
  policy.time = 9s;
  auto findings = check_timeouts(shown(), policy, 25s);  // MessageTimeout 10 s: "Prolog hung" after 8
  EXPECT_EQ(find(findings, "MessageTimeout")->level, Level::warn);
  EXPECT_EQ(find(findings, "BatchStartTimeout")->level, Level::ok);
  policy.time = 11s;
  findings = check_timeouts(shown(), policy, 25s);
  EXPECT_EQ(find(findings, "BatchStartTimeout")->level, Level::warn);
  findings = check_timeouts(shown({{"MessageTimeout", "13 sec"}}), policy, 25s);
  EXPECT_EQ(find(findings, "MessageTimeout")->level, Level::ok);
}

TEST(DoctorAuthentication, WarnsWhereCheckAndSlurmAskDifferently) {
  Policy policy;
  EXPECT_TRUE(check_authentication(shown(), policy).empty());
  EXPECT_EQ(levels(check_authentication(shown({{"AuthType", "auth/slurm"}}), policy)),
            std::vector{Level::warn});
  const SlurmConfig elsewhere = shown({{"AuthInfo", "ttl=60,socket=/run/m/s.2,cred_expire=5"}});
  const auto findings = check_authentication(elsewhere, policy);
  ASSERT_EQ(levels(findings), std::vector{Level::warn});
  EXPECT_THAT(findings.front().remedy, HasSubstr("munge_socket = \"/run/m/s.2\""));
  policy.munge_socket = "/run/m/s.2";
  EXPECT_TRUE(check_authentication(elsewhere, policy).empty());
  policy.credential = "key";
  EXPECT_TRUE(check_authentication(shown({{"AuthType", "auth/slurm"}}), policy).empty());
}

TEST(DoctorAccounting, WarnsWhereTheLineIsLost) {
  Policy policy;
  EXPECT_EQ(check_accounting(shown(), policy).front().level, Level::ok);
  EXPECT_EQ(
      check_accounting(shown({{"AccountingStorageType", "accounting_storage/none"}}), policy).front().level,
      Level::warn);
  EXPECT_EQ(check_accounting(shown({{"AccountingStorageType", "(null)"}}), policy).front().level,
            Level::warn);
}

}  // namespace
}  // namespace netcheck::doctor
