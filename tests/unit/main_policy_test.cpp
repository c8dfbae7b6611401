// `netcheck policy` as it is called: what is printed, and the exit code.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "contract/wire.h"
#include "main/policy.h"
#include "policy/policy.h"

namespace netcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class PrintPolicy : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "netcheck-policy-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    question_.config = folder_ / "netcheck.toml";
    question_.must_exist = true;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void config(const std::string& text, mode_t mode = 0644) {
    std::ofstream(question_.config) << text;
    ::chmod(question_.config.c_str(), mode);
  }

  int print() {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = print_policy(question_);
    std::fflush(stdout);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  std::filesystem::path folder_;
  PolicyQuestion question_;
  std::string out_, err_;
};

TEST_F(PrintPolicy, ShowsEachValueWithItsSource) {
  config("[threshold]\nmin = \"100Gbps\"\n[[rule]]\npartition = \"gpu\"\ntime = \"12s\"\n");
  question_.partition = "gpu";
  question_.spec = "400Gbps";
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_, HasSubstr("min = \"400Gbps\""));
  EXPECT_THAT(out_, testing::ContainsRegex("min = \"400Gbps\" +# the job's request\n"));
  EXPECT_THAT(out_, testing::ContainsRegex("time = \"12s\" +# rule 1 at .*netcheck.toml:5\n"));
  EXPECT_THAT(out_, testing::ContainsRegex("max_time = \"20s\" +# built-in\n"));
  EXPECT_THAT(out_, HasSubstr("netcheck.toml:3 applies\n"));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(PrintPolicy, SaysForWhichJobAndWhatThatLacks) {
  config("[[rule]]\ngpu = \"*H100*\"\ntime = \"12s\"\n");
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_, HasSubstr("netcheck.toml, for any job\n"));
  EXPECT_THAT(out_, HasSubstr("left out: gpu is not known\n"));
  question_.partition = "dgx";
  question_.gpu = "";
  question_.spec = "400Gbps";
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_, HasSubstr(", for a job with partition dgx, no GPU, --netcheck=400Gbps\n"));
  EXPECT_THAT(out_, HasSubstr("does not apply: its first node has no GPU\n"));
}

TEST_F(PrintPolicy, NotesAnActionThatNoThresholdCanBringAbout) {
  config("[action]\naction = \"hold\"\n");
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_, testing::ContainsRegex("# note: .*netcheck.toml:2: action follows only where a way"));
  question_.spec = "400Gbps";  // the job brings a threshold of its own
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_, testing::Not(HasSubstr("# note:")));
}

// What is printed is a file that means the same: read back, every value is the one in effect.
TEST_F(PrintPolicy, PrintsAFileThatMeansTheSame) {
  config(R"(
[threshold]
profile = "hdr"
min_fraction = 0.85
[when]
min_interval = "90s"
min_walltime = "none"
allow_users = ["alice", "bob"]
[users]
user_actions = ["hold"]
[action]
drain = true
max_drained_total = 4
[probe]
memory = "512MiB"
[peers]
addresses = { "n17.x" = "10.1.0.17", n18 = "n18-mgmt" }
[fabric]
devices = ["mlx5_[0-3]"]
)");
  EXPECT_EQ(print(), 0);
  const auto before = parse_config(
      [&] {
        std::ifstream file(question_.config);
        return std::string(std::istreambuf_iterator<char>(file), {});
      }(),
      "f");
  const auto after = parse_config(out_, "printed");
  ASSERT_TRUE(after) << describe(after.error()) << out_;
  Policy printed = after->defaults, meant = before->defaults;
  printed.sources.clear();
  meant.sources.clear();
  EXPECT_EQ(printed, meant) << out_;
}

TEST_F(PrintPolicy, IsJsonForPrograms) {
  config("[check]\nop = \"alltoall\"\n");
  question_.json = true;
  EXPECT_EQ(print(), 0);
  const Json all = Json::parse(out_);
  bool found = false;
  for (const Json& setting : all.at("settings")) {
    if (setting.at("section") != "check" || setting.at("key") != "op") continue;
    found = true;
    EXPECT_EQ(setting.at("value"), "alltoall");
    EXPECT_THAT(setting.at("source").get<std::string>(), testing::EndsWith("netcheck.toml:2"));
  }
  EXPECT_TRUE(found);
}

struct Bad {
  const char* toml;
  const char* spec;
  const char* line;
};
class BadQuestion : public PrintPolicy, public testing::WithParamInterface<Bad> {};

TEST_P(BadQuestion, IsOneClearLineAndExitCodeTwo) {
  config(GetParam().toml);
  question_.spec = GetParam().spec;
  EXPECT_EQ(print(), 2);
  EXPECT_THAT(err_, StartsWith("netcheck: "));
  EXPECT_THAT(err_, HasSubstr(GetParam().line));
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
  EXPECT_THAT(out_, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadQuestion,
    testing::Values(Bad{"[check]\ntimme='8s'", "",
                        "netcheck.toml:2: unknown key 'timme' (did you mean 'time'?)"},
                    Bad{"", "min=fast", "--netcheck=min=fast: min 'fast'"},
                    Bad{"[threshold]\nmin='100Gbps'", "50Gbps", "min=50Gbps: the site's minimum is 100Gbps"},
                    Bad{"", "action=cancel", "action=cancel: the site allows annotate"},
                    Bad{"", "action=drain", "action 'drain': they are annotate, hold, requeue, cancel"}));

TEST_F(PrintPolicy, NamesAFileThatIsNotThereOrThatOthersCanWrite) {
  EXPECT_EQ(print(), 2);
  EXPECT_THAT(err_, HasSubstr("netcheck.toml: there is no such file"));
  config("", 0666);
  EXPECT_EQ(print(), 2);
  EXPECT_THAT(err_, HasSubstr("netcheck.toml"));
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
  std::filesystem::remove(question_.config);
  question_.must_exist = false;  // nobody named it: built-in values, and said so
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_, HasSubstr("not there: built-in values"));
}

TEST_F(PrintPolicy, AtSubmissionSaysOnlyWhatConcernsTheRequest) {
  question_.submission = true;
  config("[threshold]\nmin='100Gbps'");
  question_.spec = "min=50Gbps,time=60s";
  EXPECT_EQ(print(), 0);
  EXPECT_EQ(out_,
            "refuse min=50Gbps: the site's minimum is 100Gbps\nnote time=60s: the site's maximum is 20s, so "
            "20s counts\nend\n");
  question_.spec = "200Gbps";
  EXPECT_EQ(print(), 0);
  EXPECT_EQ(out_, "end\n");
}

TEST_F(PrintPolicy, AtSubmissionHoldsNoBrokenFileAgainstTheUser) {
  question_.submission = true;
  question_.spec = "action=cancel";
  for (const char* broken : {"[check", "[check]\ntimme='8s'"}) {
    config(broken);
    EXPECT_EQ(print(), 0);
    EXPECT_THAT(out_ + err_, IsEmpty());
  }
  std::filesystem::remove(question_.config);
  EXPECT_EQ(print(), 0);
  EXPECT_THAT(out_ + err_, IsEmpty());
}

}  // namespace
}  // namespace netcheck
