// A node whose kernel ran out of something moves bytes late or not at all, and whoever has an account there
// can bring that about: its figures accuse nobody, and the line says what it lacked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::asking;
using model::judged;
using model::named;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Lacking, ANodeIsNotNamedHoweverSlowItIs) {
  for (const double part : {0.5, 0.1, 0.02}) {
    const auto check = judged(asking(4), {.receive = {{{2, 0}, part}}, .lacks = {{2, Lack::tcp_memory}}});
    EXPECT_EQ(name(check.verdict), "inconclusive") << part << ": " << check.text;
    EXPECT_THAT(check.text, HasSubstr("but n2 ran out of memory for TCP (net.ipv4.tcp_mem)")) << part;
  }
}

TEST(Lacking, ANodeThatMovesNothingAtAllIsNotDead) {
  const auto check = judged(asking(4), {.cut = {{2, 2}}, .lacks = {{2, Lack::connections}}});
  EXPECT_EQ(name(check.verdict), "inconclusive") << check.text;
  EXPECT_THAT(check.text,
              HasSubstr("but n2 ran out of room for connections (net.netfilter.nf_conntrack_max)"));
}

TEST(Lacking, ANodeBesideItThatIsSlowWithTheOthersTooIsNamed) {
  // n1 is slow towards others as well, which lack nothing.
  const auto check = judged(asking(6), {.transmit = {{{1, 0}, 0.1}}, .lacks = {{2, Lack::neighbours}}});
  EXPECT_THAT(named(check.verdict, check.plan), ElementsAre("n1(tx)")) << check.text;
}

TEST(Lacking, ANodeWhoseWaysAreGoodPasses) {
  const auto check = judged(asking(4), {.lacks = {{2, Lack::tcp_memory}}});
  EXPECT_EQ(name(check.verdict), "pass") << check.text;
}

}  // namespace
}  // namespace netcheck::judge
