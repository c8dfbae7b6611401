// netcheck.toml: the documented file against the built-in values, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "policy/policy.h"

namespace netcheck {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string documented_file() {
  std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "../../etc/netcheck.toml");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Without where each value came from.
Policy bare(Policy policy) {
  policy.sources.clear();
  return policy;
}

TEST(Config, DocumentedFileIsTheBuiltInPolicy) {
  const std::string text = documented_file();
  ASSERT_FALSE(text.empty());
  const auto as_shipped = parse_config(text, "netcheck.toml");
  ASSERT_TRUE(as_shipped) << describe(as_shipped.error());
  EXPECT_EQ(bare(*as_shipped), Policy{});

  const std::string uncommented =
      std::regex_replace(text, std::regex("(^|\n)#([a-z_]+ = )", std::regex::ECMAScript), "$1$2");
  const auto spelled_out = parse_config(uncommented, "netcheck.toml");
  ASSERT_TRUE(spelled_out) << describe(spelled_out.error());
  EXPECT_EQ(bare(*spelled_out), Policy{});
  // Every key that exists is in the document: each value came from a line of it.
  for (const auto& [key, source] : spelled_out->sources)
    EXPECT_TRUE(source.starts_with("netcheck.toml:")) << key << " is not documented";
  EXPECT_EQ(spelled_out->sources.size(), as_shipped->sources.size());
}

TEST(Config, EmptyFileIsBuiltIn) {
  const auto policy = parse_config("", "f");
  ASSERT_TRUE(policy);
  EXPECT_EQ(bare(*policy), Policy{});
  EXPECT_EQ(policy->sources.at("check.time"), "built-in");
}

TEST(Config, ValuesAreTakenWithTheirLine) {
  const auto policy = parse_config(R"(
[threshold]
min = "50GB/s"
[check]
op = "all_reduce"
time = "10s"
slice = "2s"
group_size = 16
[probe]
memory = "256MiB"
[peers]
address = "{node}-ib0"
addresses = { n17 = "10.1.0.17", "n18.x" = "fe80::1%eth0" }
credential = "key"
key_file = "/etc/netcheck/key"
[fabric]
devices = ["mlx5_0", "mlx5_[3-6]"]
[record]
annotate = false
)",
                                   "/etc/netcheck/netcheck.toml");
  ASSERT_TRUE(policy) << describe(policy.error());
  EXPECT_EQ(policy->min, Rate{400e9});
  EXPECT_EQ(policy->site_min, Rate{400e9});
  EXPECT_EQ(policy->op, "all_reduce");
  EXPECT_EQ(policy->time, seconds(10));
  EXPECT_EQ(policy->slice, seconds(2));
  EXPECT_EQ(policy->group_size, 16u);
  EXPECT_EQ(policy->memory, 268'435'456u);
  EXPECT_EQ(policy->address, "{node}-ib0");
  EXPECT_EQ(policy->addresses.at("n18.x"), "fe80::1%eth0");
  EXPECT_EQ(policy->devices, (std::vector<std::string>{"mlx5_0", "mlx5_[3-6]"}));
  EXPECT_FALSE(policy->annotate);
  EXPECT_EQ(policy->sources.at("check.time"), "/etc/netcheck/netcheck.toml:6");
  EXPECT_EQ(policy->sources.at("check.max_time"), "built-in");
}

struct Refused {
  const char* toml;
  const char* line;
};

class RefusedConfig : public testing::TestWithParam<Refused> {};

TEST_P(RefusedConfig, IsNamedWithFileAndLine) {
  const auto policy = parse_config(GetParam().toml, "f.toml");
  ASSERT_FALSE(policy);
  const std::string line = describe(policy.error());
  EXPECT_NE(line.find(GetParam().line), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedConfig,
    testing::Values(
        Refused{"[treshold]\nmin='1Gbps'",
                "f.toml:1: unknown section 'treshold' (did you mean 'threshold'?)"},
        Refused{"[check]\n\ntimme='8s'", "f.toml:3: unknown key 'timme' (did you mean 'time'?)"},
        Refused{"[check]\nmin='1Gbps'", "f.toml:2: unknown key 'min' (it belongs under [threshold])"},
        Refused{"min='1Gbps'", "f.toml:1: 'min' stands outside its section (it belongs under [threshold])"},
        Refused{"[check]\nxyzzy=1", "f.toml:2: unknown key 'xyzzy' ([check] has op, time"},
        Refused{"check=1", "f.toml:1: 'check' is a section"},
        Refused{"[check]\ntime=8", "f.toml:2: 'time' must be"},
        Refused{"[check]\ntime='8'", "f.toml:2: 'time' read the time '8': it has no unit"},
        Refused{"[check]\ntime='61s'", "f.toml:2: 'time' must be from 1.0s to 60.0s"},
        Refused{"[check]\ntime='500ms'", "f.toml:2"}, Refused{"[check]\ntime='30s'", "above 'max_time'"},
        Refused{"[check]\nmax_time='5s'", "f.toml:2: 'time' (8.0s) is above 'max_time' (5.0s)"},
        Refused{"[check]\ntime='4s'", "f.toml:2: 'rendezvous' (3.0s) and 'slice' (1.5s) do not fit"},
        Refused{"[check]\nop='sum'", "f.toml:2: 'op' must be"},
        Refused{"[check]\ngroup_size=1", "f.toml:2: 'group_size' must be a whole number from 2 to 1024"},
        Refused{"[check]\ngroup_size=8.0", "f.toml:2"}, Refused{"[check]\ngroup_size='8'", "f.toml:2"},
        Refused{"[threshold]\nmin=400", "f.toml:2"}, Refused{"[threshold]\nmin='nan'", "f.toml:2"},
        Refused{"[threshold]\nmin=nan", "f.toml:2"}, Refused{"[threshold]\nmin='0Gbps'", "f.toml:2"},
        Refused{"[peers]\nfirst_port=0", "f.toml:2"}, Refused{"[peers]\nlast_port=65536", "f.toml:2"},
        Refused{"[peers]\nfirst_port=900", "f.toml:2: 'first_port' (900) is above 'last_port' (899)"},
        Refused{"[peers]\naddress='n1'", "must contain {node}"},
        Refused{"[peers]\naddress='{node} x'", "f.toml:2"}, Refused{"[peers]\naddresses={n1=3}", "f.toml:2"},
        Refused{"[peers]\ncredential='none'", "f.toml:2"},
        Refused{"[peers]\ncredential='key'", "f.toml:2: credential = \"key\" needs 'key_file'"},
        Refused{"[peers]\nkey_file='key'", "absolute path"},
        Refused{"[record]\nrun_directory=''", "absolute path"},
        Refused{"[record]\nrun_directory='/run/../etc'", "absolute path"},
        Refused{"[record]\nannotate='yes'", "true or false"},
        Refused{"[probe]\nprobe_user='nobody'", "not 'nobody'"},
        Refused{"[probe]\nprobe_user='root'", "not 'root'"}, Refused{"[probe]\nmemory='1MB'", "f.toml:2"},
        Refused{"[probe]\nmemory='99999GiB'", "f.toml:2"},
        Refused{"[fabric]\nfabric='../x'", "name of a module"}, Refused{"[fabric]\ndevices='eth0'", "list"},
        Refused{"[fabric]\ndevices=['a b']", "f.toml:2"},
        Refused{"[check]\ntime='8s'\ntime='9s'", "f.toml:3"}, Refused{"[check\ntime='8s'", "f.toml:1"},
        Refused{"[check]\ntime=\"8s", "f.toml:2"}));

}  // namespace
}  // namespace netcheck
