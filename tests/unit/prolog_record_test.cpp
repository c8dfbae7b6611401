// Records and notices as files: rotation, and attacks through symbolic links. The folder is the test's own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "contract/wire.h"
#include "prolog/folder.h"
#include "prolog/guard.h"
#include "prolog/premises.h"
#include "prolog/record.h"
#include "prolog/spool.h"
#include "system/process.h"

namespace netcheck::prolog {
namespace {

namespace fs = std::filesystem;

class RunFolder : public testing::Test {
 protected:
  RunFolder() {
    std::string name = (fs::temp_directory_path() / "netcheck-record-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
    run_ = (base_ / "run").string();
  }
  ~RunFolder() override { fs::remove_all(base_); }

  [[nodiscard]] Record record(std::uint32_t job) const {
    Record record;
    record.job.roster = {{"demo", job, 0}, {"n1", "n2"}, 0};
    record.job.uid = ::getuid();
    record.assignment.roster = record.job.roster;
    record.assignment.policy.run_directory = run_;
    record.verdict = "inconclusive";
    record.judged = judge::Inconclusive{judge::Phase::start, {}, "a test", std::nullopt};
    record.line = "netcheck=inconclusive phase=start reason=\"a test\"";
    return record;
  }
  [[nodiscard]] Notice notice(std::uint32_t job) const {
    return {{"demo", job, 0}, "0d3ad1b1-0000-4000-8000-000000000000", true, "netcheck=pass", {}};
  }
  [[nodiscard]] std::size_t count(const std::string& folder) const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(fs::path(run_) / folder))
      ++count;
    return count;
  }
  // A record of `bytes` that is `seconds` old.
  void old_file(const std::string& name, std::size_t bytes, int seconds) const {
    const fs::path path = fs::path(run_) / "records" / name;
    std::ofstream(path) << std::string(bytes, 'x');
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  fs::path base_;
  std::string run_;
};

std::string content(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(RunFolder, KeepsARecordThatOnlyRootReads) {
  const auto path = write_record(record(17));
  ASSERT_TRUE(path) << describe(path.error());
  EXPECT_EQ(*path, run_ + "/records/demo-17-0.json");
  EXPECT_EQ(mode_of(*path), 0600u);
  EXPECT_EQ(mode_of(run_ + "/records"), 0700u);
  EXPECT_EQ(mode_of(run_), 0755u);
  const Json value = Json::parse(content(*path));
  EXPECT_EQ(value.at("schema"), 5);
  EXPECT_EQ(value.at("job"), 17);
  EXPECT_EQ(value.at("verdict"), "inconclusive");
  EXPECT_EQ(value.at("node"), "n1");
  EXPECT_EQ(value.at("nodes"), Json({"n1", "n2"}));
}

TEST_F(RunFolder, HasNoFieldThatTheManualDoesNotExplain) {
  const std::string page = content(fs::path(__FILE__).parent_path() / "../../docs/man/netcheck.8.scd");
  const std::size_t begin = page.find("\n# RECORDS\n"), end = page.find("\n# ", begin + 1);
  ASSERT_NE(begin, std::string::npos);
  const std::string section = page.substr(begin, end - begin);
  Record whole = record(17);
  whole.report.emplace();
  const Json value = to_json(whole);
  for (const auto& [key, of] : value.items())
    EXPECT_THAT(section, testing::HasSubstr("*" + key + "*"));
  for (const auto& [key, of] : value.at("report").items())
    EXPECT_THAT(section, testing::HasSubstr("*" + key + "*"));
}

TEST_F(RunFolder, BeginsOneRecordForEachRun) {
  Record first = record(17);
  first.line = "netcheck=inconclusive";
  EXPECT_TRUE(begin_record(first)->whose == Begun::Whose::first);
  EXPECT_EQ(Json::parse(content(run_ + "/records/demo-17-0.json")).at("line"), first.line);
  EXPECT_EQ(mode_of(run_ + "/records/demo-17-0.json"), 0600u);
  Record second = record(17);
  second.line = "netcheck=pass";
  EXPECT_TRUE(begin_record(second)->whose == Begun::Whose::this_runs);
  EXPECT_EQ(Json::parse(content(run_ + "/records/demo-17-0.json")).at("line"), first.line);
  second.job.roster.run.restart = 1;
  EXPECT_TRUE(begin_record(second)->whose == Begun::Whose::first);
  EXPECT_EQ(count("records"), 2u);  // and no temporary file
}

TEST_F(RunFolder, TakesAnOldRecordForAnotherJobs) {
  ASSERT_TRUE(write_record(record(1)));
  old_file("demo-17-0.json", 10, 3'000);
  EXPECT_TRUE(begin_record(record(17))->whose == Begun::Whose::this_runs);
  old_file("demo-17-0.json", 10, 4'000);
  EXPECT_TRUE(begin_record(record(17))->whose == Begun::Whose::first);
  EXPECT_EQ(Json::parse(content(run_ + "/records/demo-17-0.json")).at("job"), 17);
}

TEST_F(RunFolder, KnowsTheRecordOfAnotherNodeOfTheSameRun) {
  ASSERT_TRUE(begin_record(record(17)));  // n1's
  Record other = record(17);
  other.job.roster.self = 1;
  const auto begun = begin_record(other);
  ASSERT_TRUE(begun);
  EXPECT_TRUE(begun->whose == Begun::Whose::another_nodes);
  EXPECT_EQ(begun->node, "n1");
}

TEST_F(RunFolder, KeepsRecordsForGoodUnderANameForEachNode) {
  Record kept = record(17);
  kept.assignment.policy.spool_dir = (base_ / "spool").string();
  const auto missing = write_to_spool(kept);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, "No such file or directory");
  EXPECT_FALSE(fs::exists(base_ / "spool"));
  fs::create_directory(base_ / "spool");
  fs::permissions(base_ / "spool", fs::perms(0755));
  std::ofstream(base_ / "precious") << "kept";
  fs::create_symlink(base_ / "precious", base_ / "spool/demo-17-0-n1.json");
  ASSERT_TRUE(write_to_spool(kept));
  kept.job.roster.self = 1;
  ASSERT_TRUE(write_to_spool(kept));
  for (const char* name : {"demo-17-0-n1.json", "demo-17-0-n2.json"}) {
    EXPECT_EQ(mode_of(base_ / "spool" / name), 0600u);
    EXPECT_EQ(Json::parse(content(base_ / "spool" / name)).at("job"), 17);
  }
  EXPECT_EQ(content(base_ / "precious"), "kept");
  fs::permissions(base_ / "spool", fs::perms::all);
  EXPECT_FALSE(write_to_spool(kept));
  fs::permissions(base_ / "spool", fs::perms(0755));
  fs::rename(base_ / "spool", base_ / "elsewhere");
  fs::create_directory_symlink(base_ / "elsewhere", base_ / "spool");
  EXPECT_FALSE(write_to_spool(kept));
}

TEST_F(RunFolder, SaysWhyNoRecordCanBegin) {
  std::ofstream(run_) << "a file in the way";
  EXPECT_FALSE(begin_record(record(17)));
}

TEST_F(RunFolder, SurvivesARequestThatIsNoUtf8) {
  Record odd = record(17);
  odd.request = "min=\xff\xfe\n";
  odd.remarks = {"\xc3\x28"};
  const auto path = write_record(odd);
  ASSERT_TRUE(path) << describe(path.error());
  EXPECT_FALSE(Json::parse(content(*path)).is_discarded());
}

TEST_F(RunFolder, RemovesTheOldestBeyondAThousandRecords) {
  ASSERT_TRUE(write_record(record(1)));
  for (int i = 0; i < 999; ++i)
    old_file("demo-" + std::to_string(1'000 + i) + "-0.json", 10, 10'000 - i);
  ASSERT_EQ(count("records"), 1'000u);
  ASSERT_TRUE(write_record(record(2)));
  EXPECT_EQ(count("records"), 1'000u);
  EXPECT_FALSE(fs::exists(run_ + "/records/demo-1000-0.json"));  // the oldest
  EXPECT_TRUE(fs::exists(run_ + "/records/demo-1001-0.json"));
  EXPECT_TRUE(fs::exists(run_ + "/records/demo-2-0.json"));
}

TEST_F(RunFolder, RemovesTheOldestBeyond64MiB) {
  ASSERT_TRUE(write_record(record(1)));
  old_file("a.json", 33u << 20, 300);
  old_file("b.json", 31u << 20, 200);  // 64 MiB with a.json; one byte more does not fit
  ASSERT_TRUE(write_record(record(2)));
  EXPECT_FALSE(fs::exists(run_ + "/records/a.json"));
  EXPECT_TRUE(fs::exists(run_ + "/records/b.json"));
}

TEST_F(RunFolder, SweepsWhatAKilledWriterLeftButNotWhatAnotherIsWriting) {
  ASSERT_TRUE(write_record(record(1)));
  old_file(".new-1-demo-9-0.json", 10, 100);
  old_file(".new-2-demo-9-0.json", 10, 1);
  ASSERT_TRUE(write_record(record(2)));
  EXPECT_FALSE(fs::exists(run_ + "/records/.new-1-demo-9-0.json"));
  EXPECT_TRUE(fs::exists(run_ + "/records/.new-2-demo-9-0.json"));
}

TEST_F(RunFolder, RefusesAFolderThatIsASymbolicLink) {
  const fs::path target = base_ / "etc";
  fs::create_directory(target);
  fs::create_directory(run_);
  fs::create_directory_symlink(target, fs::path(run_) / "records");
  fs::create_directory_symlink(target, fs::path(run_) / "notices");
  EXPECT_FALSE(write_record(record(17)));
  EXPECT_FALSE(write_notice_file(run_, notice(17)));
  EXPECT_TRUE(fs::is_empty(target));
}

TEST_F(RunFolder, RefusesARunFolderThatIsASymbolicLink) {
  const fs::path target = base_ / "etc";
  fs::create_directory(target);
  fs::create_directory_symlink(target, run_);
  const auto written = write_record(record(17));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().subject, run_);
  EXPECT_TRUE(fs::is_empty(target));
}

TEST_F(RunFolder, RefusesAFolderThatOthersCanWriteTo) {
  fs::create_directory(run_);
  fs::permissions(run_, fs::perms::all);
  EXPECT_FALSE(write_record(record(17)));
}

TEST_F(RunFolder, ReplacesASymbolicLinkByTheFileAndLeavesItsTargetAlone) {
  const fs::path passwd = base_ / "passwd";
  std::ofstream(passwd) << "root:x:0:0\n";
  ASSERT_TRUE(write_record(record(1)));
  ASSERT_TRUE(write_notice_file(run_, notice(1)));
  fs::create_symlink(passwd, fs::path(run_) / "records" / "demo-17-0.json");
  fs::create_symlink(passwd, fs::path(run_) / "notices" / "17");
  ASSERT_TRUE(write_record(record(17)));
  ASSERT_TRUE(write_notice_file(run_, notice(17)));
  EXPECT_EQ(content(passwd), "root:x:0:0\n");
  EXPECT_FALSE(fs::is_symlink(fs::path(run_) / "records" / "demo-17-0.json"));
  EXPECT_FALSE(fs::is_symlink(fs::path(run_) / "notices" / "17"));
}

TEST_F(RunFolder, KeepsTheNoticeFromTheJobsUser) {
  ASSERT_TRUE(write_notice_file(run_, notice(17)));
  struct stat status {};
  ASSERT_EQ(::stat((run_ + "/notices/17").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());
  EXPECT_EQ(status.st_mode & 07777u, 0400u);
  const auto read = read_notice(content(run_ + "/notices/17"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->line, "netcheck=pass");
}

TEST_F(RunFolder, TakesAStaleNoticeAway) {
  ASSERT_TRUE(write_notice_file(run_, notice(17)));
  remove_notice(run_, 17);
  EXPECT_FALSE(fs::exists(run_ + "/notices/17"));
  remove_notice(run_, 17);  // and none is no error
}

TEST_F(RunFolder, SaysThatTheDiskIsFullAndKeepsWhatWasThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small filesystem";
  fs::create_directory(run_);
  if (::mount("tmpfs", run_.c_str(), "tmpfs", 0, "size=64k,mode=0755") != 0) GTEST_SKIP() << "no mount here";
  EXPECT_TRUE(write_record(record(1)));
  std::ofstream(fs::path(run_) / "fill") << std::string(1u << 20, 'x');
  Record large = record(2);
  large.remarks = {std::string(60'000, 'x')};
  const auto written = write_record(large);
  EXPECT_FALSE(written);
  if (!written) {
    EXPECT_EQ(written.error().reason, "No space left on device");
  }
  EXPECT_EQ(count("records"), 1u);  // no half of it
  ::umount2(run_.c_str(), MNT_DETACH);
}

TEST_F(RunFolder, ReadsOnlyConfigurationThatRootAloneCanChange) {
  const fs::path config = base_ / "netcheck.toml";
  EXPECT_EQ(read_trusted(config.string(), 100, "none").value(), "none");
  std::ofstream(config) << "[check]\n";
  fs::permissions(config, fs::perms(0644));
  EXPECT_EQ(read_trusted(config.string(), 100, "none").value(), "[check]\n");
  EXPECT_FALSE(read_trusted(config.string(), 4, "none"));  // too large
  fs::permissions(config, fs::perms(0664));
  EXPECT_FALSE(read_trusted(config.string(), 100, "none"));
  fs::permissions(config, fs::perms(0644));
  fs::permissions(base_, fs::perms::all);
  EXPECT_FALSE(read_trusted(config.string(), 100, "none"));
  fs::permissions(base_, fs::perms::owner_all);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(config.c_str(), 12'345, 0), 0);
    EXPECT_FALSE(read_trusted(config.string(), 100, "none"));
  }
  EXPECT_FALSE(read_trusted(base_.string(), 100, "none"));  // a folder
}

TEST_F(RunFolder, LetsOneCheckInAtATimeAndNamesItsJob) {
  const auto folder = Folder::open(run_, 0755);
  ASSERT_TRUE(folder);
  {
    const auto first = try_lock(*folder, {17, "n1"});
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->taken);
    const auto second = try_lock(*folder, {18, "n1"});
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->taken);
    EXPECT_EQ(second->holder, (Holder{17, "n1"}));
    EXPECT_EQ(last_holder(*folder), (Holder{17, "n1"}));
  }
  EXPECT_TRUE(try_lock(*folder, {18, "n1"})->taken);
}

TEST_F(RunFolder, TellsABusyNodeFromAFolderThatIsShared) {
  const Claim first = claim_node(run_, 17, "n1");
  EXPECT_EQ(first.busy, "");
  EXPECT_EQ(claim_node(run_, 18, "n1").busy, "another check is running on n1 (job 17)");
  EXPECT_EQ(claim_node(run_, 17, "n2").busy,
            "run_directory " + run_ + " is that of n1 as well: each node needs its own, best on a tmpfs");
  // As an earlier version left it.
  ASSERT_TRUE(Folder::open(run_, 0755)->write("other", "17\n", 0600, {::geteuid(), ::getegid()}));
  fs::rename(fs::path(run_) / "other", fs::path(run_) / "lock");
  EXPECT_EQ(last_holder(*Folder::open(run_, 0755)), (Holder{17, ""}));
}

TEST_F(RunFolder, RemembersAProcessOnlyWhileItLives) {
  const auto folder = Folder::open(run_, 0755);
  ASSERT_TRUE(folder);
  EXPECT_TRUE(living_remains(*folder).empty());
  const pid_t self = ::getpid();
  const std::uint64_t started = system::start_time_of(self).value();
  // Ourselves, and one that had our pid before us.
  ASSERT_TRUE(remember(*folder, {{self, started}, {self, started - 1}}));
  EXPECT_THAT(living_remains(*folder), testing::ElementsAre(std::pair(self, started)));
  ASSERT_TRUE(folder->write("stuck", std::to_string(self) + " 1\n", 0600, {::geteuid(), ::getegid()}));
  EXPECT_TRUE(living_remains(*folder).empty());
  EXPECT_FALSE(fs::exists(run_ + "/stuck"));
}

}  // namespace
}  // namespace netcheck::prolog
