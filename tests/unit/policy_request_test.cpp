// The value of --netcheck: what is taken, and what is refused with which words.
#include <gtest/gtest.h>

#include "policy/request.h"

namespace netcheck {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Request, WithoutValueAsksForTheSitesCheck) {
  EXPECT_EQ(parse_request("").value(), Request{});
  EXPECT_EQ(parse_request("(null)").value(), Request{});  // Slurm's word for no value
}

TEST(Request, WithoutValueIsAnEmptyOneWhateverSlurmCallsIt) {
  EXPECT_EQ(given_spec("(null)"), "");
  EXPECT_EQ(carry_spec("(null)"), "");
  for (const char* other : {"", "null", "(null", "(null),op=auto", "400Gbps"})
    EXPECT_EQ(given_spec(other), other);
}

TEST(Request, IsARateOrKeysAndValues) {
  EXPECT_EQ(parse_request("400Gbps").value(), (Request{Rate{400e9}, {}, {}}));
  EXPECT_EQ(parse_request("50GB/s").value(), (Request{Rate{400e9}, {}, {}}));
  EXPECT_EQ(parse_request("min=400Gbps").value(), (Request{Rate{400e9}, {}, {}}));
  EXPECT_EQ(parse_request("min=800Mbps,op=all_reduce,time=10s").value(),
            (Request{Rate{800e6}, "all_reduce", seconds(10)}));
  EXPECT_EQ(parse_request("time=2500ms,op=auto").value(), (Request{{}, "auto", milliseconds(2'500)}));
  for (const char* op : {"auto", "all_gather", "all_reduce", "reduce_scatter", "alltoall", "broadcast"})
    EXPECT_EQ(parse_request(std::string("op=") + op).value().op, op);
  for (const Action action : {Action::annotate, Action::hold, Action::requeue, Action::cancel})
    EXPECT_EQ(parse_request("action=" + std::string(name(action))).value().action, action);
}

struct Refused {
  std::string spec, because;
};

class RefusedRequest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedRequest, IsNamedInOneLineWithARightExample) {
  const auto request = parse_request(GetParam().spec);
  ASSERT_FALSE(request);
  const std::string line = describe(request.error());
  EXPECT_NE(line.find(GetParam().because), std::string::npos) << line;
  EXPECT_NE(line.find("for example --netcheck, --netcheck=400Gbps or --netcheck=min=400Gbps"),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find_first_of("\n\r\x1b"), std::string::npos);
  EXPECT_LT(line.size(), 400u);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, RefusedRequest,
    testing::Values(
        Refused{"fast", "does not begin with a number"}, Refused{"400", "no unit"},
        Refused{"400Gbps,", "nothing stands after its last comma: take that comma out"},
        Refused{"op=auto,50GB/s", "write min=50GB/s"}, Refused{"400Gb,op=auto", "'400Gb' is no key=value"},
        Refused{"min=400Gbps,", "--netcheck=min=400Gbps,: nothing stands after its last comma"},
        Refused{",min=400Gbps", "nothing stands before its first comma"},
        Refused{"op=auto,,time=5s", "nothing stands between two of its commas"},
        Refused{",", "nothing stands before its first comma"}, Refused{"=", "unknown key ''"},
        Refused{"=400Gbps", "unknown key ''"}, Refused{"min", "does not begin with a number"},
        Refused{"min=", "it is empty"}, Refused{"mim=400Gbps", "unknown key 'mim', did you mean 'min'?"},
        Refused{"drain=yes", "unknown key 'drain': they are min, op, time, action"},
        Refused{"action=drain", "action 'drain': they are annotate, hold, requeue, cancel"},
        Refused{"action=", "they are annotate"}, Refused{"action=requeu", "did you mean 'requeue'?"},
        Refused{"action=hold,action=hold", "'action' is given twice"},
        Refused{"Min=400Gbps", "unknown key 'Min'"}, Refused{"min=1Gbps,min=2Gbps", "'min' is given twice"},
        Refused{"time=5s,op=auto,time=5s", "'time' is given twice"}, Refused{"min=-1Gbps", "it is negative"},
        Refused{"-400Gbps", "it is negative"}, Refused{"min=0Gbps", "above zero"},
        Refused{"0Gbps", "above zero"}, Refused{"min=nan", "does not begin with a number"},
        Refused{"nan", "does not begin with a number"}, Refused{"inf", "does not begin with a number"},
        Refused{"1e400", "no unit"}, Refused{"min=1e400", "no unit"}, Refused{"1e400Gbps", "no unit"},
        Refused{"time=0s", "above zero"}, Refused{"time=-3s", "negative"}, Refused{"time=10", "no unit"},
        Refused{"time=1900ms", "at least 2s"}, Refused{"time=2days", "no unit"},
        Refused{"op=allreduce", "did you mean 'all_reduce'?"}, Refused{"op=", "they are auto"},
        Refused{"op=rm -rf", "they are auto"}, Refused{std::string(10'240, '9'), "longer than 256 bytes"},
        Refused{std::string(257, 'm'), "longer than 256 bytes"},
        Refused{"min=400Gbps\nop=auto", "control characters"}, Refused{"400Gbps\n", "control characters"},
        Refused{std::string("400Gbps\0", 8), "control characters"}, Refused{"\x1b[2J", "control characters"},
        Refused{"400Gbps\xff", "no UTF-8"}, Refused{"min==400Gbps", "does not begin with a number"},
        Refused{"$(reboot)", "does not begin with a number"}, Refused{"(NULL)", "does not begin"}));

TEST(Request, UnfitForAnArgumentListIsCarriedAsItsRefusal) {
  EXPECT_EQ(carry_spec("min=400Gbps"), "min=400Gbps");
  EXPECT_EQ(carry_spec(""), "");
  for (const auto& [spec, because] :
       {std::pair<std::string, std::string>{std::string(10'240, 'x'), "longer than 256"},
        {"400Gbps\nPATH=/tmp", "control characters"},
        {std::string("a\0b", 3), "control characters"}}) {
    const std::string carried = carry_spec(spec);
    EXPECT_LT(carried.size(), 64u);
    EXPECT_EQ(printable(carried), carried);
    const auto request = parse_request(carried);
    ASSERT_FALSE(request);
    EXPECT_NE(request.error().reason.find(because), std::string::npos) << describe(request.error());
  }
  EXPECT_FALSE(parse_request("(refused: "));
}

}  // namespace
}  // namespace netcheck
