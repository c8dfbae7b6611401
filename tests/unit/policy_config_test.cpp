// netcheck.toml: the documented file against the built-in values, and what is refused.
#include <gmock/gmock.h>

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
  EXPECT_EQ(bare(as_shipped->defaults), Policy{});

  const std::string uncommented =
      std::regex_replace(text, std::regex("(^|\n)#([a-z_]+ = )", std::regex::ECMAScript), "$1$2");
  const auto spelled_out = parse_config(uncommented, "netcheck.toml");
  ASSERT_TRUE(spelled_out) << describe(spelled_out.error());
  EXPECT_EQ(bare(spelled_out->defaults), Policy{});
  // Every key that exists is in the document: each value came from a line of it.
  for (const auto& [key, source] : spelled_out->defaults.sources)
    EXPECT_TRUE(source.starts_with("netcheck.toml:")) << key << " is not documented";
  EXPECT_EQ(spelled_out->defaults.sources.size(), as_shipped->defaults.sources.size());
}

TEST(Config, KeyOfFiftyThousandPartsIsRefusedAndOverflowsNothing) {
  std::string parts;
  for (int i = 0; i < 50'000; ++i)
    parts += "a.";
  for (const std::string& text :
       {"\n" + parts + "a = 1\n", "\n[" + parts + "a]\n", "\nx = {" + parts + "a = 1}\n"}) {
    const auto site = parse_config(text, "netcheck.toml");
    ASSERT_FALSE(site);
    EXPECT_THAT(describe(site.error()),
                testing::HasSubstr("netcheck.toml:2: a key of more than a hundred parts"));
  }
  EXPECT_TRUE(parse_config("# " + std::string(200, '.') + "\n", "netcheck.toml"));
}

TEST(Config, EmptyFileIsBuiltIn) {
  const auto site = parse_config("", "f");
  ASSERT_TRUE(site);
  EXPECT_EQ(bare(site->defaults), Policy{});
  EXPECT_THAT(site->rules, testing::IsEmpty());
  EXPECT_EQ(site->defaults.sources.at("check.time"), "built-in");
}

TEST(Config, ValuesAreTakenWithTheirLine) {
  const auto site = parse_config(R"(
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
[when]
mode = "always"
shared = "measure"
min_walltime = "none"
min_interval = "10min"
allow_groups = ["hpc", "DOMAIN.users"]
kill_switch = "/shared/netcheck-off"
[users]
user_actions = ["hold", "requeue", "hold"]
[action]
action = "requeue"
drain = true
on_inconclusive = "requeue_once"
requeue_fallback = "cancel"
max_requeues = 0
max_drained_total = "2.5%"
)",
                                 "/etc/netcheck/netcheck.toml");
  ASSERT_TRUE(site) << describe(site.error());
  const Policy* policy = &site->defaults;
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
  EXPECT_EQ(policy->mode, Mode::always);
  EXPECT_EQ(policy->shared, Shared::measure);
  EXPECT_EQ(policy->min_walltime, Ns::zero());
  EXPECT_EQ(policy->min_interval, std::chrono::minutes(10));
  EXPECT_EQ(policy->allow_groups, (std::vector<std::string>{"hpc", "DOMAIN.users"}));
  EXPECT_EQ(policy->kill_switch, "/shared/netcheck-off");
  EXPECT_EQ(policy->user_actions, (std::vector{Action::hold, Action::requeue}));
  EXPECT_EQ(policy->action, Action::requeue);
  EXPECT_TRUE(policy->drain);
  EXPECT_EQ(policy->on_inconclusive, OnInconclusive::requeue_once);
  EXPECT_EQ(policy->requeue_fallback, Action::cancel);
  EXPECT_EQ(policy->max_requeues, 0u);
  EXPECT_EQ(policy->max_drained_total, Share{.percent = 2.5});
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
        Refused{"[check]\ntime='61s'", "f.toml:2: 'time' must be from 2s to 60s"},
        Refused{"[check]\nrendezvous='400ms'", "f.toml:2: 'rendezvous' must be from 500ms to 60s"},
        Refused{"[check]\ntime='1s'\nrendezvous='500ms'\nslice='100ms'", "f.toml:2"},
        Refused{"[check]\ntime='30s'", "above 'max_time'"},
        Refused{"[check]\nmax_time='5s'", "f.toml:2: 'time' (8s) is above 'max_time' (5s)"},
        Refused{"[check]\ntime='4s'",
                "f.toml:2: 'rendezvous' (3s) and 'slice' (1.5s) do not fit into 'time' (4s)"},
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
        Refused{"[nccl]\nlibrary='libnccl.so.2'", "f.toml:2: 'library' must be an absolute path"},
        Refused{"[nccl]\nenv='NCCL_IB_HCA=mlx5'", "f.toml:2: 'env' must be a table of NCCL_"},
        Refused{"[nccl]\nenv={NCCL_IB_TC=106}", "NCCL_IB_TC has no text in quotes"},
        Refused{"[nccl]\nenv={LD_PRELOAD='/tmp/x.so'}",
                "f.toml:2: 'env' has LD_PRELOAD: it is none of NCCL's"},
        Refused{"[nccl]\nenv={NCCL_DEBUG='INFO'}", "f.toml:2: 'env' has NCCL_DEBUG: netcheck sets it itself"},
        Refused{"[nccl]\nenv={NCCL_ALGO='Tree'}", "'env' has NCCL_ALGO: that is 'algorithm'"},
        Refused{"[nccl]\nenv={NCCL_IB_HCA=\"a\\nb\"}", "its value must be one line"},
        Refused{"[nccl]\nalgorithm='ring'", "f.toml:2: 'algorithm' must be one of \"Ring\", \"Tree\""},
        Refused{"[nccl]\nmax_world=1", "f.toml:2: 'max_world' must be a whole number from 2 to 4096"},
        Refused{"[nccl]\nmig='allow'", "f.toml:2: 'mig' must be \"refuse\" or \"measure\""},
        Refused{"[nccl]\nrequire_transport='IB/mlx5_0'",
                "'require_transport' must be the name of a transport"},
        Refused{"[[rule]]\npartition='a'\nlibrary='/opt/libnccl.so.2'",
                "f.toml:3: a rule cannot set 'library'"},
        Refused{"[threshold]\nprofile='h200'", "f.toml:2: 'profile' must be \"none\", \"llm\""},
        Refused{"[threshold]\nmin_per_rail=1", "f.toml:2: 'min_per_rail' must be a rate in quotes"},
        Refused{"[threshold]\nmin_fraction=1.5", "f.toml:2: 'min_fraction' must be above 0 and at most 1"},
        Refused{"[threshold]\nmin_fraction=nan", "f.toml:2"},
        Refused{"[threshold]\nmin_fraction='80%'", "f.toml:2: 'min_fraction' must be a number"},
        Refused{"[when]\nmode='allways'", "f.toml:2: 'mode' must be \"opt-in\" or \"always\""},
        Refused{"[when]\nmin_walltime='0s'", "f.toml:2"}, Refused{"[when]\nsettle=120", "f.toml:2"},
        Refused{"[when]\nallow_users='alice'", "f.toml:2: 'allow_users' must be a list"},
        Refused{"[when]\nallow_users=['a b']", "f.toml:2: 'allow_users' must be a list of user names"},
        Refused{"[when]\nkill_switch='off'", "f.toml:2: 'kill_switch' must be an absolute path"},
        Refused{"[users]\nuser_actions=['drain']",
                "f.toml:2: 'user_actions' must be a list of actions: annotate"},
        Refused{"[users]\nlowest_min='2Gbps'\nhighest_min='1Gbps'",
                "f.toml:2: 'lowest_min' (2Gbps) is above 'highest_min' (1Gbps)"},
        Refused{"[action]\naction='drain'",
                "f.toml:2: 'action' must be \"annotate\", \"hold\", \"requeue\" or \"cancel\""},
        Refused{"[action]\nrequeue_fallback='requeue'", "f.toml:2: 'requeue_fallback' must be"},
        Refused{"[action]\ndrain='yes'", "f.toml:2: 'drain' must be true or false"},
        Refused{"[action]\nmax_requeues=-1", "f.toml:2: 'max_requeues' must be a whole number from 0 to 16"},
        Refused{"[action]\nmax_drained_total='101%'", "f.toml:2"},
        Refused{"[action]\nmax_drained_total='-1%'", "f.toml:2"},
        Refused{"[action]\nmax_drained_total='1.1.1%'", "f.toml:2"},
        Refused{"[action]\nmax_requeue=1",
                "f.toml:2: unknown key 'max_requeue' (did you mean 'max_requeues'?)"},
        Refused{"[rule]\npartition='gpu'", "f.toml:1: a rule begins with [[rule]]"},
        Refused{"[[rules]]\npartition='gpu'", "f.toml:1: unknown section 'rules' (did you mean 'rule'?)"},
        Refused{"\n[[rule]]\nmin='1Gbps'", "f.toml:2: this rule has no condition"},
        Refused{"[[rule]]\npartition='gpu'", "f.toml:1: this rule sets nothing"},
        Refused{"[[rule]]\npartitoin='gpu'\nmin='1Gbps'",
                "f.toml:2: unknown key 'partitoin' (did you mean 'partition'?)"},
        Refused{"[[rule]]\nmodel='*H100*'\nmin='1Gbps'",
                "f.toml:2: unknown key 'model' (did you mean 'gpu'?)"},
        Refused{"[[rule]]\nmachine='DGX*'\nmin='1Gbps'",
                "f.toml:2: unknown key 'machine' (did you mean 'hardware'?)"},
        Refused{"[[rule]]\npartition='gpu'\nmni='1Gbps'",
                "f.toml:3: unknown key 'mni' (did you mean 'min'?)"},
        Refused{"[[rule]]\npartition='gpu'\nmin=1", "f.toml:3: 'min' must be a rate"},
        Refused{"[[rule]]\npartition=''\nmin='1Gbps'", "f.toml:2: 'partition' must be a name or glob"},
        Refused{"[[rule]]\npartition=[]\nmin='1Gbps'", "f.toml:2: 'partition' must not be empty"},
        Refused{"[[rule]]\nnodes='8-2'\nmin='1Gbps'", "f.toml:2: 'nodes' must be"},
        Refused{"[[rule]]\nnodes='-'\nmin='1Gbps'", "f.toml:2: 'nodes' must be"},
        Refused{"[[rule]]\nnodes=0\nmin='1Gbps'", "f.toml:2: 'nodes' must be"},
        Refused{"[[rule]]\nnodes='4294967296'\nmin='1Gbps'", "f.toml:2: 'nodes' must be"},
        Refused{"[[rule]]\npartition='a'\nprobe_user='x'",
                "f.toml:3: a rule cannot set 'probe_user' (it is the same for every job: it belongs under "
                "[probe])"},
        Refused{"[[rule]]\npartition='a'\nmin='1Gbps'\n[[rule]]\npartition='a'\nmin='2Gbps'",
                "f.toml:4: this rule sets 'threshold.min' for the very jobs of rule 1 at f.toml:1"},
        Refused{"[check]\ntime='8s'\ntime='9s'", "f.toml:3"}, Refused{"[check\ntime='8s'", "f.toml:1"},
        Refused{"[check]\ntime=\"8s", "f.toml:2"},
        Refused{"[threshold]\nmin = 400Mbps # slow\n[check]\n", "(put it in quotes: \"400Mbps\")"},
        Refused{"[action]\nmax_drained_total=1%\n", "(put it in quotes: \"1%\")"}));

TEST(Config, HasWhatIsSaidOfNccl) {
  const auto site = parse_config(R"([nccl]
library = "/opt/nccl/libnccl.so.2"
env = { NCCL_IB_HCA = "mlx5_0,mlx5_1", NCCL_IB_TC = "106" }
max_world = 16
busy = "measure"
[[rule]]
partition = "gpu"
require_transport = "AWS Libfabric"
)",
                                 "f");
  ASSERT_TRUE(site) << describe(site.error());
  const Policy& policy = site->defaults;
  EXPECT_EQ(policy.nccl_library, "/opt/nccl/libnccl.so.2");
  EXPECT_EQ(policy.nccl_env,
            (std::map<std::string, std::string>{{"NCCL_IB_HCA", "mlx5_0,mlx5_1"}, {"NCCL_IB_TC", "106"}}));
  EXPECT_EQ(policy.nccl_algorithm, "Ring");
  EXPECT_EQ(policy.max_world, 16U);
  EXPECT_EQ(policy.mig, OnGpu::refuse);
  EXPECT_EQ(policy.busy, OnGpu::measure);
  EXPECT_EQ(resolve(*site, {.partition = "gpu"})->require_transport, "AWS Libfabric");
}

TEST(Fabric, IsWhatTheJobHasUnlessTheSiteSays) {
  Policy policy;
  EXPECT_EQ(fabric_of(policy, true), "nccl");
  EXPECT_EQ(fabric_of(policy, false), "ucx");
  policy.fabric = "ucx";
  EXPECT_EQ(fabric_of(policy, true), "ucx");
  policy.fabric = "nccl";
  EXPECT_EQ(fabric_of(policy, false), "nccl");
}

TEST(Config, SaysNothingOfQuotesWhereTheyAreNotTheMatter) {
  for (const char* toml : {"[check]\ntime='8s'\ntime='9s'", "[check\ntime='8s'", "[check]\ntime=", "=", "",
                           "[check]\ntime=true false"}) {
    const auto site = parse_config(toml, "f");
    if (site) continue;  // an empty file is one
    EXPECT_EQ(describe(site.error()).find("quotes"), std::string::npos) << describe(site.error());
  }
}

}  // namespace
}  // namespace netcheck
