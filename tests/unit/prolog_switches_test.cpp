// Which nodes share a leaf switch, by topology.conf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "prolog/switches.h"

namespace netcheck::prolog {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The example of topology.conf(5), made smaller: two leaves under a spine.
constexpr const char* kTree = R"(# rack by rack
SwitchName=leaf1 LinkSpeed=100 Nodes=n[1-3]   # the first rack
switchname=leaf2	nodes=n4,\
n[05-06] \
  LinkSpeed=100
SwitchName=spine Switches=leaf[1-2]
)";

TEST(Switches, KnowsWhoSharesALeaf) {
  const auto switches = Switches::parse(kTree);
  ASSERT_TRUE(switches);
  EXPECT_TRUE(switches->share("n1", "n3"));
  EXPECT_TRUE(switches->share("n4", "n06"));
  EXPECT_FALSE(switches->share("n3", "n4"));
  EXPECT_FALSE(switches->part({"n1", "n2", "n3"}));
  EXPECT_TRUE(switches->part({"n1", "n2", "n4"}));
}

TEST(Switches, KnowsNothingOfANodeThatIsNotThere) {
  const auto switches = Switches::parse(kTree);
  ASSERT_TRUE(switches);
  EXPECT_FALSE(switches->share("n1", "n9"));
  EXPECT_TRUE(switches->part({"n1", "n9"}));
}

TEST(Switches, TakesAllNodesForOneWhereNobodyToldOfAny) {
  for (const char* text : {"", "# none\n", "SwitchName=spine Switches=leaf[1-2]\n"}) {
    const auto switches = Switches::parse(text);
    ASSERT_TRUE(switches) << text;
    EXPECT_TRUE(switches->share("n1", "n2")) << text;
    EXPECT_FALSE(switches->part({"n1", "n2"})) << text;
  }
}

TEST(Switches, ReadsBlocksLikeLeaves) {
  const auto switches =
      Switches::parse("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n");
  ASSERT_TRUE(switches);
  EXPECT_TRUE(switches->share("n1", "n2"));
  EXPECT_FALSE(switches->share("n2", "n3"));
}

TEST(Switches, ANodeOnTwoLeavesSharesBoth) {
  const auto switches = Switches::parse("SwitchName=a Nodes=n1,n2\nSwitchName=b Nodes=n2,n3\n");
  ASSERT_TRUE(switches);
  EXPECT_TRUE(switches->share("n2", "n1"));
  EXPECT_TRUE(switches->share("n2", "n3"));
  EXPECT_FALSE(switches->share("n1", "n3"));
}

TEST(Switches, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"Include racks.conf\n", "SwitchName=a Nodes=n[1-\n", "SwitchName=a Nodes=n[3-1]\n"})
    EXPECT_FALSE(Switches::parse(text)) << text;
}

TEST(SwitchesFile, IsReadWhereItIsAndAbsentOtherwise) {
  std::string name = (fs::temp_directory_path() / "netcheck-switches-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const fs::path base = name;
  const auto absent = read_switches(base / "topology.conf");
  ASSERT_TRUE(absent);
  EXPECT_FALSE(absent->part({"n1", "n2"}));
  std::ofstream(base / "topology.conf") << kTree;
  const auto there = read_switches(base / "topology.conf");
  ASSERT_TRUE(there);
  EXPECT_TRUE(there->part({"n3", "n4"}));
  const auto folder = read_switches(base);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().reason, HasSubstr("no file"));
  std::ofstream(base / "large").seekp(2 << 20).put('\n');
  EXPECT_FALSE(read_switches(base / "large"));
  fs::remove_all(base);
}

}  // namespace
}  // namespace netcheck::prolog
