// Which notices a step believes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "notice.h"

namespace netcheck::plugin {
namespace {

using testing::HasSubstr;

std::string this_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

TEST(Notice, BelongsToOneRunOnOneBoot) {
  Notice notice;
  notice.run = {"c", 17, 2};
  notice.boot_id = "b1";
  EXPECT_TRUE(belongs_to(notice, {17, 2}, "b1"));
  EXPECT_TRUE(belongs_to(notice, {17, std::nullopt}, "b1"));
  EXPECT_FALSE(belongs_to(notice, {18, 2}, "b1"));
  EXPECT_FALSE(belongs_to(notice, {17, 3}, "b1"));
  EXPECT_FALSE(belongs_to(notice, {17, 2}, "b2"));
  notice.boot_id.clear();
  EXPECT_FALSE(belongs_to(notice, {17, 2}, ""));
}

class NoticeFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/netcheck-notice-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(folder_ / "notices");
    notice_.run = {"c", 17, 0};
    notice_.boot_id = this_boot();
    notice_.line = "netcheck=pass";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(path()) << text; }
  std::filesystem::path path() { return folder_ / "notices/17"; }
  std::optional<Notice> load() {
    why_not_.clear();
    return load_notice(folder_, {17, 0}, why_not_);
  }

  std::filesystem::path folder_;
  Notice notice_;
  std::string why_not_;
};

TEST_F(NoticeFile, IsTakenWhenItIsRight) {
  write(write_notice(notice_));
  const auto notice = load();
  ASSERT_TRUE(notice) << why_not_;
  EXPECT_EQ(notice->line, "netcheck=pass");
}

TEST_F(NoticeFile, AbsentIsNothingToMention) {
  EXPECT_FALSE(load());
  EXPECT_EQ(why_not_, "");
}

TEST_F(NoticeFile, OfAnotherRunIsNotTaken) {
  notice_.run.restart = 1;
  write(write_notice(notice_));
  EXPECT_FALSE(load());
  EXPECT_THAT(why_not_, HasSubstr("another run"));
}

TEST_F(NoticeFile, OfAnotherBootIsNotTaken) {
  notice_.boot_id = "0d3ad1b1-5a5e-4dd5-8e1c-000000000000";
  write(write_notice(notice_));
  EXPECT_FALSE(load());
}

TEST_F(NoticeFile, ThatIsALinkIsNotTaken) {
  std::ofstream(folder_ / "real") << write_notice(notice_);
  std::filesystem::create_symlink(folder_ / "real", path());
  EXPECT_FALSE(load());
  EXPECT_NE(why_not_, "");
}

TEST_F(NoticeFile, ThatIsAPipeDoesNotHang) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(load());
  EXPECT_THAT(why_not_, HasSubstr("no regular file"));
}

TEST_F(NoticeFile, TooLargeOrMalformedIsNotTaken) {
  write(std::string(kNoticeMaxBytes + 1, 'x'));
  EXPECT_FALSE(load());
  EXPECT_THAT(why_not_, HasSubstr("too large"));
  write(write_notice(notice_) + "LD_PRELOAD=/tmp/x.so\n");
  EXPECT_FALSE(load());
  EXPECT_THAT(why_not_, HasSubstr("LD_PRELOAD"));
}

TEST_F(NoticeFile, OfSomebodyElseIsNotTaken) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can give files away";
  write(write_notice(notice_));
  constexpr uid_t kOther = 20'002;
  ASSERT_EQ(::chown(path().c_str(), kOther, kOther), 0);
  EXPECT_FALSE(load());
  EXPECT_THAT(why_not_, HasSubstr("somebody else"));
}

TEST_F(NoticeFile, IsShownOnce) {
  EXPECT_TRUE(claim_printing(folder_, 17));
  EXPECT_FALSE(claim_printing(folder_, 17));
  EXPECT_TRUE(claim_printing(folder_, 18));
}

TEST_F(NoticeFile, GoesWithItsMarker) {
  write(write_notice(notice_));
  static_cast<void>(claim_printing(folder_, 17));
  remove_notice(folder_, 17);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "notices"));
  remove_notice(folder_, 17);
}

}  // namespace
}  // namespace netcheck::plugin
