// The notice that the plugin reads as root in a job's step.
#include <gtest/gtest.h>

#include "contract/notice.h"

namespace netcheck {
namespace {

constexpr const char* kGood =
    "netcheck-notice=1\ncluster=c1\njob=17\nrestart=2\nboot=0d3ad1b1-5a5e\nleader=1\n"
    "line=netcheck=pass busbw=96.3Gbps\nNETCHECK_VERDICT=pass\n";

std::string with(std::string from, std::string to) {
  std::string text = kGood;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Notice, IsReadAsWritten) {
  const auto notice = read_notice(kGood);
  ASSERT_TRUE(notice) << describe(notice.error());
  EXPECT_EQ(notice->run, (JobRun{"c1", 17, 2}));
  EXPECT_EQ(notice->boot_id, "0d3ad1b1-5a5e");
  EXPECT_TRUE(notice->leader);
  EXPECT_EQ(notice->line, "netcheck=pass busbw=96.3Gbps");
  EXPECT_EQ(notice->environment.at("NETCHECK_VERDICT"), "pass");
  EXPECT_EQ(write_notice(*notice), kGood);
}

TEST(Notice, IsRefusedWhenAnythingIsAmiss) {
  for (const auto& text : {std::string(),
                           std::string("\n"),
                           with("job=17\n", ""),
                           with("job=17", "job=17\njob=17"),
                           with("job=17", "job=-1"),
                           with("job=17", "job=4294967296"),
                           with("job=17", "job=0"),
                           with("leader=1", "leader=yes"),
                           with("netcheck-notice=1", "netcheck-notice=2"),
                           with("NETCHECK_VERDICT=pass", "LD_PRELOAD=/tmp/x.so"),
                           with("NETCHECK_VERDICT=", "NETCHECK_="),
                           with("NETCHECK_VERDICT", "NETCHECK_verdict"),
                           with("VERDICT=pass", "V=1\nNETCHECK_V=2"),
                           with("pass\n", "pass"),
                           with("cluster=c1", "cluster=c1/.."),
                           with("busbw", "bus\x1b[2Jbw"),
                           with("busbw", std::string("bus\0bw", 6)),
                           with("VERDICT=pass", "VERDICT=pass\xff"),
                           with("restart=2", "restart=2\nsurprise=1"),
                           with("busbw", std::string(1'025, 'x')),
                           kGood + std::string(kNoticeMaxBytes, 'x') + "\n"})
    EXPECT_FALSE(read_notice(text)) << text.substr(0, 200);
  EXPECT_FALSE(read_notice(std::string(kGood).substr(0, 60)));
}

TEST(Notice, WrittenFromHostileTextIsStillReadable) {
  Notice notice;
  notice.run = {"c1", 17, 0};
  notice.boot_id = "b";
  notice.line = "one\nNETCHECK_VERDICT=pass\x1b";
  notice.environment = {{"NETCHECK_A", "x\ny"}, {"PATH", "/tmp"}, {"NETCHECK_B", std::string(5'000, 'b')}};
  for (int i = 0; i < 100; ++i)
    notice.environment["NETCHECK_N" + std::to_string(i)] = std::string(900, 'n');
  const auto back = read_notice(write_notice(notice));
  ASSERT_TRUE(back) << describe(back.error());
  EXPECT_EQ(back->line, "one NETCHECK_VERDICT=pass ");
  EXPECT_EQ(back->environment.at("NETCHECK_A"), "x y");
  EXPECT_FALSE(back->environment.contains("PATH"));
}

TEST(Notice, LiesUnderTheRunDirectory) {
  EXPECT_EQ(notice_path("/run/netcheck", 17), "/run/netcheck/notices/17");
}

TEST(Deadline, IsReadAsItWasAnnounced) {
  using std::chrono::milliseconds;
  EXPECT_EQ(announce_deadline(milliseconds(7'996)), "deadline 7996");
  EXPECT_EQ(read_announced("deadline 7996"), milliseconds(7'996));
  // What is over, or further away than any site's checks, is still a deadline.
  EXPECT_EQ(announce_deadline(milliseconds(-5)), "deadline 1");
  EXPECT_EQ(announce_deadline(std::chrono::hours(1)), "deadline 60000");
  EXPECT_EQ(read_announced("deadline 60000"), milliseconds(60'000));
}

TEST(Deadline, IsReadStrictly) {
  for (const char* line : {"", "deadline", "deadline ", "deadline 0", "deadline -1", "deadline +8",
                           "deadline 8000 ", "deadline  8000", " deadline 8000", "deadline 8000ms",
                           "deadline 8e3", "deadline 0x10", "deadline 60001", "deadline 4294967297",
                           "deadline 99999999999999999999", "Deadline 8000", "netcheck: deadline 8000"})
    EXPECT_EQ(read_announced(line), std::nullopt) << line;
}

}  // namespace
}  // namespace netcheck
