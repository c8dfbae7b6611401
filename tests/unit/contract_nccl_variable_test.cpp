// Which of NCCL's settings a site may set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/nccl_variable.h"

namespace netcheck {
namespace {

TEST(NcclVariable, IsTakenWhereItIsOneOfNccls) {
  EXPECT_EQ(wrong_nccl_variable("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1"), "");
  EXPECT_EQ(wrong_nccl_variable("NCCL_SOCKET_IFNAME", "^docker,lo"), "");
  EXPECT_EQ(wrong_nccl_variable("NCCL_NET_PLUGIN", ""), "");
}

TEST(NcclVariable, IsRefusedWhereItIsNoneOrNetchecksOwn) {
  for (const char* name :
       {"", "NCCL_", "LD_PRELOAD", "nccl_ib_hca", "NCCL_IB HCA", "NCCL_A=B", "XNCCL_IB_HCA"})
    EXPECT_NE(wrong_nccl_variable(name, "1"), "") << name;
  for (const char* name : {"NCCL_COMM_ID", "NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_COMM_BLOCKING"})
    EXPECT_EQ(wrong_nccl_variable(name, "1"), "netcheck sets it itself") << name;
  EXPECT_NE(wrong_nccl_variable("NCCL_IB_HCA", "a\nb"), "");
  EXPECT_NE(wrong_nccl_variable("NCCL_IB_HCA", std::string(1, '\0')), "");
  EXPECT_NE(wrong_nccl_variable("NCCL_IB_HCA", std::string(256, 'x')), "");
}

}  // namespace
}  // namespace netcheck
