// Which modules the fabric child agrees to open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "fabric/loading.h"
#include "own_tree.h"

namespace netcheck::fabric {
namespace {

using testing::HasSubstr;

class FabricLoading : public testing::Test {
 protected:
  FabricLoading() {
    std::string pattern = (std::filesystem::temp_directory_path() / "modules-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::copy_file(own(NETCHECK_TEST_MODULES) + "/netcheck-fabric-fake.so", file());
    ::chmod(file().c_str(), 0755);
  }
  ~FabricLoading() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string file() const { return directory_ + "/netcheck-fabric-fake.so"; }
  std::string refusal(const std::string& name = "fake") {
    auto loaded = load_module(name, directory_, {&sink_, &pulse_, {}, {}});
    return loaded ? "" : describe(loaded.error());
  }

  std::string directory_;
  Sink sink_;
  Pulse pulse_;
};

TEST_F(FabricLoading, TakesAModuleThatOnlyItsOwnerMayWrite) {
  EXPECT_EQ(refusal(), "");
}

TEST_F(FabricLoading, RefusesAFileThatOthersMayWrite) {
  ::chmod(file().c_str(), 0757);
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr(file() + " may be written"), HasSubstr("chmod go-w")));
}

TEST_F(FabricLoading, RefusesADirectoryThatItsGroupMayWrite) {
  ::chmod(directory_.c_str(), 0775);
  EXPECT_THAT(refusal(), HasSubstr(directory_ + " may be written"));
}

TEST_F(FabricLoading, RefusesAnotherUsersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(file().c_str(), 12345, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("belongs to uid 12345"));
}

TEST_F(FabricLoading, RefusesNamesThatLeadElsewhere) {
  for (const std::string name : {"", "../fake", "Fake", "a b", "fake\n"})
    EXPECT_THAT(refusal(name), HasSubstr("no such module name")) << name;
}

TEST_F(FabricLoading, NamesAMissingModule) {
  EXPECT_THAT(refusal("nccl"),
              testing::AllOf(HasSubstr("netcheck-fabric-nccl.so: "), HasSubstr("No such file or directory")));
}

TEST_F(FabricLoading, RefusesARelativeDirectory) {
  directory_ = "modules";
  EXPECT_THAT(refusal(), HasSubstr("is not absolute"));
}

}  // namespace
}  // namespace netcheck::fabric
