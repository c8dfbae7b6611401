// The plugin's line in plugstack.conf.
#include <gmock/gmock.h>

#include "settings.h"

namespace netcheck::plugin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Parsed {
  Settings settings;
  std::vector<std::string> complaints;
};

Parsed parse(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments)
    pointers.push_back(argument.data());
  Parsed parsed;
  parsed.settings = parse_settings(pointers, parsed.complaints);
  return parsed;
}

TEST(PluginSettings, AreBuiltInWithoutArguments) {
  const auto [settings, complaints] = parse({});
  EXPECT_EQ(settings.config, "/etc/netcheck/netcheck.toml");
  EXPECT_EQ(settings.run_directory, "/run/netcheck");
  EXPECT_EQ(settings.timeout, std::chrono::seconds(25));
  EXPECT_THAT(complaints, IsEmpty());
}

TEST(PluginSettings, AreTaken) {
  const auto [settings, complaints] =
      parse({"program=/opt/netcheck", "config=/opt/n.toml", "run_directory=/run/n",
             "slurm_bin=/opt/slurm/bin", "timeout=30"});
  EXPECT_EQ(settings.program, "/opt/netcheck");
  EXPECT_EQ(settings.config, "/opt/n.toml");
  EXPECT_EQ(settings.run_directory, "/run/n");
  EXPECT_EQ(settings.slurm_bin, "/opt/slurm/bin");
  EXPECT_EQ(settings.timeout, std::chrono::seconds(30));
  EXPECT_THAT(complaints, IsEmpty());
}

TEST(PluginSettings, ASlipIsNamedAndLeavesTheDefault) {
  const auto [settings, complaints] = parse(
      {"programm=/opt/netcheck", "config=n.toml", "timeout=0", "timeout=25s", "timeout=99999", "xyzzy"});
  EXPECT_EQ(settings.program, Settings{}.program);
  EXPECT_EQ(settings.config, Settings{}.config);
  EXPECT_EQ(settings.timeout, std::chrono::seconds(25));
  EXPECT_THAT(complaints,
              ElementsAre(HasSubstr("unknown argument 'programm', did you mean 'program='?"),
                          HasSubstr("config= must be an absolute path"), HasSubstr("timeout= must be"),
                          HasSubstr("timeout= must be"), HasSubstr("timeout= must be"),
                          HasSubstr("unknown argument 'xyzzy': they are program=, config=, run_directory=, "
                                    "slurm_bin=, timeout=")));
}

}  // namespace
}  // namespace netcheck::plugin
