// An action that nothing measured can bring about.
#include <gmock/gmock.h>

#include "policy/idle.h"
#include "policy/policy.h"

namespace netcheck {
namespace {

using testing::StartsWith;

std::string said(const char* toml) {
  return action_without_threshold(parse_config(toml, "f").value());
}

TEST(Idle, AnActionIsNamedWhereNoThresholdIsSet) {
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(said("[threshold]\nmin='1Gbps'\n[action]\naction='hold'"), "");
  EXPECT_EQ(said("[threshold]\nmin_per_rail='1Gbps'\n[action]\ndrain=true"), "");
  EXPECT_THAT(said("[action]\naction='hold'\ndrain=true"),
              StartsWith("f:2: action follows only where a way carries nothing at all"));
  EXPECT_THAT(said("[action]\ndrain=true"), StartsWith("f:2: drain follows only"));
  EXPECT_EQ(said("[threshold]\nmin_fraction=0.8\n[action]\naction='cancel'"), "");
  EXPECT_EQ(said("[findings]\nport_down='fail'\n[action]\ndrain=true"), "");
}

TEST(Idle, ARuleMayBringTheThresholdOrTheAction) {
  EXPECT_EQ(said("[action]\naction='hold'\n[[rule]]\npartition='a'\nmin='1Gbps'"), "");
  EXPECT_EQ(said("[threshold]\nmin='1Gbps'\n[[rule]]\npartition='a'\naction='hold'"), "");
  EXPECT_THAT(said("[[rule]]\npartition='a'\naction='hold'"),
              StartsWith("rule 1 at f:1: action follows only"));
}

}  // namespace
}  // namespace netcheck
