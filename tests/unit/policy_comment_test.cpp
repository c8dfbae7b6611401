// What a comment asks for, hostile ones included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "policy/comment.h"
#include "policy/request.h"

namespace netcheck {
namespace {

using testing::HasSubstr;

struct Row {
  std::string comment;
  std::optional<std::string> spec;
};
class Comment : public testing::TestWithParam<Row> {};

TEST_P(Comment, AsksForWhatItsWordsSay) {
  EXPECT_EQ(request_in_comment(GetParam().comment), GetParam().spec) << "'" << GetParam().comment << "'";
}

INSTANTIATE_TEST_SUITE_P(
    ThatAsks, Comment,
    testing::Values(Row{"netcheck", ""}, Row{"netcheck=", ""}, Row{"netcheck=400Gbps", "400Gbps"},
                    Row{"netcheck=min=400Gbps,op=all_reduce", "min=400Gbps,op=all_reduce"},
                    Row{"project=x netcheck run 7", ""}, Row{"a\tnetcheck=1Gbps\tb", "1Gbps"},
                    Row{"first line\nnetcheck=1Gbps\nJobId=9 netcheckx", "1Gbps"}, Row{"  netcheck  ", ""},
                    Row{"netcheck\r\n", ""}, Row{"netcheck netcheck=1Gbps", "1Gbps"},
                    Row{"netcheck=1Gbps netcheck", "1Gbps"},
                    Row{"netcheck=min=1Gbps netcheck=time=10s", "min=1Gbps,time=10s"},
                    // what the word holds is the request's to refuse
                    Row{"netcheck=\"1Gbps\"", "\"1Gbps\""}, Row{"netcheck=1Gbps;", "1Gbps;"}));

INSTANTIATE_TEST_SUITE_P(ThatDoesNotAsk, Comment,
                         testing::Values(Row{"", {}}, Row{" \n\t ", {}}, Row{"netcheckx", {}},
                                         Row{"xnetcheck", {}}, Row{"my-netcheck", {}},
                                         Row{"netcheck-off", {}}, Row{"netcheck:400Gbps", {}},
                                         Row{"netcheck,other", {}}, Row{"\"netcheck\"", {}},
                                         Row{"'netcheck=1Gbps'", {}}, Row{"--netcheck", {}},
                                         Row{"Netcheck NETCHECK", {}}, Row{"net check", {}},
                                         Row{"net\ncheck", {}}, Row{"netchec", {}},
                                         Row{"x=netcheck=1Gbps", {}}, Row{"netcheck\x01", {}},
                                         Row{"netcheck\xC2\xA0", {}}, Row{std::string("netcheck\0", 9), {}}));

// What parse_request says of a comment's request; "" when it takes it.
std::string refusal_of(const std::string& comment) {
  const auto spec = request_in_comment(comment);
  if (!spec) return "nothing asked";
  const auto request = parse_request(*spec);
  return request ? "" : describe(request.error());
}

TEST(RequestOfAComment, IsRefusedInOneLineThatSaysWhy) {
  EXPECT_EQ(refusal_of("netcheck"), "");
  EXPECT_EQ(refusal_of("netcheck netcheck=time=10s netcheck=min=1Gbps"), "");
  EXPECT_THAT(refusal_of("netcheck=fast"), HasSubstr("min 'fast'"));
  EXPECT_THAT(refusal_of("netcheck=\"1Gbps\""), HasSubstr("min '\"1Gbps\"'"));
  EXPECT_THAT(refusal_of("netcheck=min=1Gbps netcheck=min=2Gbps"), HasSubstr("'min' is given twice"));
  EXPECT_THAT(refusal_of("netcheck=1Gbps netcheck=2Gbps"), HasSubstr("write min=1Gbps"));
  EXPECT_THAT(refusal_of("netcheck=1Gbps\x1b[2J"), HasSubstr("control characters"));
  EXPECT_THAT(refusal_of("netcheck=\xff"), HasSubstr("no UTF-8"));
}

TEST(RequestOfAComment, IsNoLongerThanARequestMayBe) {
  EXPECT_EQ(request_in_comment(std::string(10'000, 'x')), std::nullopt);
  EXPECT_EQ(request_in_comment(std::string(10'000, 'x') + " netcheck=1Gbps"), "1Gbps");
  std::string often;
  for (int i = 0; i < 1'000; ++i)
    often += "netcheck=1Gbps ";
  for (const std::string& comment : {"netcheck=" + std::string(10'000, '9'), often}) {
    EXPECT_LE(request_in_comment(comment)->size(), kMaxSpecBytes);
    EXPECT_THAT(refusal_of(comment), HasSubstr("longer than 256 bytes"));
  }
}

}  // namespace
}  // namespace netcheck
