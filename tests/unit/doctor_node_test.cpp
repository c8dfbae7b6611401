// The node itself: configuration, account, module, folders; and how findings are told.
#include <gmock/gmock.h>

#include "contract/wire.h"
#include "doctor/node.h"

namespace netcheck::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

FileFacts file(mode_t mode = 0644, uid_t owner = 0) {
  return {
      .path = "/etc/netcheck/netcheck.toml", .there = true, .regular = true, .owner = owner, .mode = mode};
}
FileFacts folder(mode_t mode = 0755, uid_t owner = 0) {
  return {.path = "/etc/netcheck", .there = true, .folder = true, .owner = owner, .mode = mode};
}

TEST(NcclTopology, IsLookedForWhereTheSiteSays) {
  EXPECT_EQ(check_nccl_topology(file())[0].level, Level::ok);
  EXPECT_THAT(check_nccl_topology({.path = "/none.xml"})[0].why, HasSubstr("/none.xml is not there"));
  EXPECT_EQ(check_nccl_topology({.path = "/none.xml"})[0].level, Level::warn);
  EXPECT_THAT(check_nccl_topology({.path = "/etc", .there = true, .folder = true})[0].why,
              HasSubstr("no file"));
  EXPECT_THAT(check_nccl_topology(file(0666))[0].remedy, HasSubstr("chmod go-w"));
}

TEST(DoctorTrust, IsInWhatRootAloneCanChange) {
  EXPECT_EQ(distrust(file()), std::nullopt);
  EXPECT_EQ(distrust(file(0400)), std::nullopt);
  EXPECT_EQ(distrust({.path = "/none"}), std::nullopt);
  EXPECT_EQ(distrust(file(0666))->remedy, "chmod go-w /etc/netcheck/netcheck.toml");
  EXPECT_THAT(distrust(file(0666))->reason, HasSubstr("mode 0666"));
  EXPECT_THAT(distrust(file(01777))->remedy, HasSubstr("root's own"));  // /tmp has to stay as it is
  EXPECT_TRUE(distrust(file(0664)).has_value());
  EXPECT_TRUE(distrust(file(0602)).has_value());
  EXPECT_EQ(distrust(file(0644, 1000))->remedy, "chown root /etc/netcheck/netcheck.toml");
}

TEST(DoctorConfig, NamesOwnerModeAndLine) {
  struct Case {
    ConfigFacts facts;
    Level level;
    const char* why;
    const char* remedy;
  };
  const std::vector<Case> cases{
      {{.file = file(), .folder = folder()}, Level::ok, "is valid", ""},
      {{.file = {.path = "/etc/netcheck/netcheck.toml"}, .folder = folder()},
       Level::ok,
       "built-in values",
       ""},
      {{.file = file(0666), .folder = folder()}, Level::fail, "no job is checked", "chmod go-w"},
      {{.file = file(0644, 1000), .folder = folder()}, Level::fail, "uid 1000", "chown root"},
      {{.file = file(), .folder = folder(0777)}, Level::fail, "/etc/netcheck", "chmod go-w /etc/netcheck"},
      {{.file = file(),
        .folder = folder(),
        .wrong = Error{"read the configuration", "/etc/netcheck/netcheck.toml:3", "unknown key 'treshold'",
                       "did you mean 'threshold'?"}},
       Level::fail,
       "netcheck.toml:3: unknown key 'treshold'",
       "did you mean"},
      {{.file = file(0600),
        .folder = folder(),
        .unreadable = Error{"read", "/etc/netcheck/netcheck.toml", "Permission denied", "run this as root"}},
       Level::unseen,
       "Permission denied",
       "as root"},
      {{.file = file(), .folder = folder(), .switches = {"/etc/netcheck/disabled"}},
       Level::warn,
       "nothing is checked",
       "rm /etc/netcheck/disabled"},
  };
  for (const Case& one : cases) {
    const Findings findings = check_config(one.facts);
    ASSERT_EQ(findings.size(), 1U) << one.why;
    EXPECT_EQ(name(findings[0].level), name(one.level)) << one.why;
    EXPECT_THAT(findings[0].why, HasSubstr(one.why));
    EXPECT_THAT(findings[0].remedy, HasSubstr(one.remedy));
  }
}

AccountFacts account() {
  return {.name = "netcheck", .uid = 990, .shell = "/usr/sbin/nologin"};
}

TEST(DoctorAccount, IsUnprivilegedAndNetchecksOwn) {
  EXPECT_EQ(check_account(account()).front().level, Level::ok);
  struct Case {
    std::function<void(AccountFacts&)> spoil;
    Level level;
    const char* why;
    const char* remedy;
  };
  const std::vector<Case> cases{
      {[](AccountFacts& f) {
         f.missing = Error{"find the account", "netcheck", "no such account", ""};
       },
       Level::fail, "no such account",
       "useradd --system --no-create-home --shell /usr/sbin/nologin netcheck"},
      {[](AccountFacts& f) {
         f.missing = Error{"ask", "account", "no answer within 3.0s", ""};
         f.unknown = true;
       },
       Level::unseen, "no answer", ""},
      {[](AccountFacts& f) { f.uid = 0; }, Level::fail, "root's rights", "probe_user"},
      {[](AccountFacts& f) { f.name = "nobody"; }, Level::fail, "not netcheck's own", "probe_user"},
      {[](AccountFacts& f) { f.same_uid = {"munge"}; }, Level::fail, "shares uid 990 with munge",
       "probe_user"},
      {[](AccountFacts& f) { f.processes = {"17 sleep"}; }, Level::warn, "17 sleep", "nothing else"},
      {[](AccountFacts& f) { f.shell = "/bin/bash"; }, Level::warn, "/bin/bash", "usermod"},
      {[](AccountFacts& f) { f.shell = ""; }, Level::warn, "/bin/sh", "usermod"},
  };
  for (const Case& one : cases) {
    AccountFacts facts = account();
    one.spoil(facts);
    const Findings findings = check_account(facts);
    ASSERT_EQ(findings.size(), 1U) << one.why;
    EXPECT_EQ(name(findings[0].level), name(one.level)) << one.why;
    EXPECT_THAT(findings[0].why, HasSubstr(one.why));
    EXPECT_THAT(findings[0].remedy, HasSubstr(one.remedy));
  }
}

TEST(DoctorModule, IsThereTrustedAndLoads) {
  const FileFacts there{
      .path = "/lib/netcheck/netcheck-fabric-ucx.so", .there = true, .regular = true, .mode = 0644};
  ModuleFacts facts{.name = "ucx", .file = there, .folder = folder(), .as = "netcheck"};
  EXPECT_EQ(check_module(facts).front().level, Level::ok);
  facts.load = Error{"", "netcheck-fabric-ucx.so", "libucp.so.0: cannot open shared object file", ""};
  EXPECT_THAT(check_module(facts).front().why, HasSubstr("libucp.so.0"));
  EXPECT_THAT(check_module(facts).front().remedy, HasSubstr("install the libraries"));
  facts.file.owner = 33;  // not loaded then, whatever it says
  EXPECT_EQ(check_module(facts).front().level, Level::fail);
  EXPECT_EQ(check_module(facts).front().remedy, "chown root /lib/netcheck/netcheck-fabric-ucx.so");
  facts.file.there = false;
  EXPECT_THAT(check_module(facts).front().why, HasSubstr("every check is inconclusive"));
}

TEST(DoctorFolder, IsRootsAndHasRoom) {
  const auto facts = [](FileFacts at, std::optional<std::uint64_t> mebibytes) {
    return FolderFacts{.what = "record folder",
                       .file = std::move(at),
                       .free_bytes = mebibytes ? std::optional(*mebibytes << 20U) : std::nullopt};
  };
  EXPECT_EQ(check_folder(facts(folder(), 64)).front().level, Level::ok);
  EXPECT_EQ(check_folder(facts(folder(), 63)).front().level, Level::warn);
  EXPECT_EQ(check_folder(facts(folder(), 0)).front().level, Level::fail);
  EXPECT_EQ(check_folder(facts(folder(), std::nullopt)).front().level, Level::unseen);
  EXPECT_EQ(check_folder(facts({.path = "/run/netcheck"}, std::nullopt)).front().level, Level::ok);
  EXPECT_EQ(check_folder(facts(folder(0775), 64)).front().remedy, "chmod go-w /etc/netcheck");
  EXPECT_EQ(check_folder(facts(file(), 64)).front().level, Level::fail);  // no folder
  FileFacts hidden{.path = "/run/netcheck", .why_not = "Permission denied"};
  EXPECT_EQ(check_folder(facts(hidden, std::nullopt)).front().level, Level::unseen);
}

TEST(DoctorFolder, IsEachNodesOwn) {
  FolderFacts facts{.what = "record folder", .file = folder(), .free_bytes = 64U << 20U};
  facts.network = "NFS";
  EXPECT_EQ(check_folder(facts).front().level, Level::warn);
  EXPECT_THAT(check_folder(facts).front().why, HasSubstr("lies on NFS"));
  facts.other_node = "n7";
  EXPECT_EQ(check_folder(facts).front().level, Level::fail);
  EXPECT_THAT(check_folder(facts).front().why, HasSubstr("n7 checks in"));
  EXPECT_THAT(check_folder(facts).front().remedy, HasSubstr("run_directory"));
}

TEST(DoctorFolder, OfRecordsKeptForGoodIsMadeByTheSiteAndStopsNoCheck) {
  FolderFacts facts{.what = "spool folder", .file = folder(), .free_bytes = 64U << 20U, .spool = true};
  EXPECT_EQ(check_folder(facts).front().level, Level::ok);
  facts.free_bytes = 0;
  EXPECT_EQ(check_folder(facts).front().level, Level::warn);
  facts.file = folder(0777);
  EXPECT_EQ(check_folder(facts).front().level, Level::warn);
  facts.file = {.path = "/archive/netcheck"};
  EXPECT_EQ(check_folder(facts).front().level, Level::warn);
  EXPECT_THAT(check_folder(facts).front().remedy, HasSubstr("/archive/netcheck"));
}

TEST(DoctorBudget, IsTheLongestOfAnyRule) {
  const auto site = parse_config(
      "[check]\ntime = \"6s\"\n[[rule]]\npartition = \"a\"\ntime = \"12s\"\n"
      "[[rule]]\npartition = \"b\"\nmax_time = \"40s\"\n[[rule]]\npartition = \"c\"\nop = \"alltoall\"\n",
      "f");
  ASSERT_TRUE(site) << describe(site.error());
  EXPECT_EQ(longest(*site).time, std::chrono::seconds(12));
  EXPECT_EQ(longest(*site).max_time, std::chrono::seconds(40));
}

TEST(DoctorReport, ExitsAsTheWorstLineSays) {
  const Finding ok{Level::ok, "a", "well", ""}, warn{Level::warn, "b", "odd", "mend"};
  const Finding unseen{Level::unseen, "c", "hidden", ""}, bad{Level::fail, "d", "broken", "mend"};
  EXPECT_EQ(exit_code({}), ExitCode::pass);
  EXPECT_EQ(exit_code({ok, warn}), ExitCode::pass);
  EXPECT_EQ(exit_code({ok, unseen, warn}), ExitCode::inconclusive);
  EXPECT_EQ(exit_code({unseen, bad, ok}), ExitCode::fail);
}

TEST(DoctorReport, AlignsLevelsAndColoursOnlyATerminal) {
  const Findings findings{{Level::ok, "munge", "well", ""},
                          {Level::fail, "own name", "broken\nline", "mend it"}};
  EXPECT_EQ(as_text(findings, false),
            "ok      munge     well\n"
            "fail    own name  broken line\n"
            "                  -> mend it\n"
            "1 ok, 0 warn, 0 unseen, 1 fail\n");
  EXPECT_THAT(as_text(findings, true), HasSubstr("\x1b[31mfail  \x1b[0m"));
  EXPECT_THAT(as_text(findings, false), Not(HasSubstr("\x1b")));
  const Json json = as_json(findings);
  EXPECT_EQ(json.at(1).at("level"), "fail");
  EXPECT_EQ(json.at(1).at("why"), "broken line");
  EXPECT_EQ(json.at(1).at("remedy"), "mend it");
}

}  // namespace
}  // namespace netcheck::doctor
