// Node lists. The expansions were taken from `scontrol show hostnames` of Slurm 22.05.8.
#include <gmock/gmock.h>

#include "contract/job.h"

namespace netcheck {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

TEST(NodeList, ExpandsAsScontrolDoes) {
  const std::pair<const char*, Names> cases[] = {
      {"n1", {"n1"}},
      {"n[1-3,07-09],login1", {"n1", "n2", "n3", "n07", "n08", "n09", "login1"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[8-010]", {"n8", "n9", "n10"}},
      {"n[099-101]", {"n099", "n100", "n101"}},
      {"n[1,3-4],m[5],n9", {"n1", "n3", "n4", "m5", "n9"}},
      {"[1-3]", {"1", "2", "3"}},
      {"n[1-2][3-4]", {"n13", "n14", "n23", "n24"}},
      {"n[1-2]r[3-4]", {"n1r3", "n1r4", "n2r3", "n2r4"}},
      {"n[1-2]r[3-4],x", {"n1r3", "n1r4", "n2r3", "n2r4", "x"}},
      {"n[1-2]r[3-4]s[5-6]",
       {"n1r3s5", "n1r3s6", "n2r3s5", "n2r3s6", "n1r4s5", "n1r4s6", "n2r4s5", "n2r4s6"}},
      {",a,", {"a"}},
      {"a,,b", {"a", "b"}},
      {"gpu-node_a.cluster,n2", {"gpu-node_a.cluster", "n2"}},
  };
  for (const auto& [list, names] : cases) {
    const auto got = expand_node_list(list);
    ASSERT_TRUE(got) << list << ": " << describe(got.error());
    EXPECT_EQ(*got, names) << list;
  }
}

TEST(NodeList, IsRefusedWhenMalformed) {
  for (const char* list : {"",
                           ",",
                           "n[3-1]",
                           "n[1-2",
                           "n1-2]",
                           "n[]",
                           "n[a-c]",
                           "n[1-]",
                           "n[-3]",
                           "n[1--3]",
                           "n[1:2]",
                           "n[1-2]-ib",
                           "n[[1]]",
                           "n[1]]",
                           "n 1",
                           "n[1 -2]",
                           "n{1-2}",
                           "n1\n",
                           "n/1",
                           "n$(id)",
                           "n[1-16385]",
                           "n[1-99999999]",
                           "n[0-199]r[0-199]",
                           "n[1-99999999999999999999999]",
                           "n[18446744073709551615-18446744073709551615"})
    EXPECT_FALSE(expand_node_list(list)) << list;
  EXPECT_FALSE(expand_node_list(std::string(300, 'n')));
}

TEST(NodeList, TakesAsManyNodesAsTheLimit) {
  EXPECT_EQ(expand_node_list("n[1-16384]").value().size(), kMaxNodes);
  EXPECT_FALSE(expand_node_list("n[1-16384],m"));
}

TEST(NodeList, FoldsRunsOfNames) {
  EXPECT_EQ(fold_node_list({"n1", "n2", "n3"}), "n[1-3]");
  EXPECT_EQ(fold_node_list({"n1", "n3"}), "n1,n3");
  EXPECT_EQ(fold_node_list({"n08", "n09", "n10"}), "n[08-10]");
  EXPECT_EQ(fold_node_list({"n9", "n10"}), "n[9-10]");
  EXPECT_EQ(fold_node_list({"n9", "n010"}), "n9,n010");
  EXPECT_EQ(fold_node_list({"n1", "n02"}), "n1,n02");
  EXPECT_EQ(fold_node_list({"a", "b"}), "a,b");
  EXPECT_EQ(fold_node_list({"n2", "n1"}), "n2,n1");  // rank order is kept
  EXPECT_EQ(fold_node_list({}), "");
}

TEST(NodeList, FoldedFitsItsLimit) {
  EXPECT_EQ(fold_node_list({"a1", "b1", "c1", "d1"}, 14), "a1,b1,c1,d1");
  EXPECT_EQ(fold_node_list({"a1", "b1", "c1", "d1"}, 10), "a1…(+3)");
}

TEST(NodeList, SurvivesFoldingAndExpanding) {
  const Names names{"n1", "n2", "n3", "n07", "n08", "login", "r1n1", "r1n2", "x99", "x100"};
  EXPECT_EQ(expand_node_list(fold_node_list(names)).value(), names);
}

}  // namespace
}  // namespace netcheck
