// The callbacks as Slurm calls them, against a stand-in for Slurm's side of SPANK. What the stand-in does was
// seen on Slurm 22.05: values of options, order of calls, items by context.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "contract/notice.h"
#include "options.h"
#include "policy/request.h"

namespace {

struct Host {
  spank_context_t context = S_CTX_ERROR;
  std::uint32_t job = 17, step = 0, restart = 0;
  uid_t uid = 0;
  std::optional<std::string> option;  ///< of the job
  spank_option* registered = nullptr;
  std::vector<std::string> errors, infos, log;
  std::map<std::string, std::string> environment;
  char** job_environment = nullptr;
};

constexpr auto kDone = static_cast<spank_err_t>(ESPANK_SUCCESS);
Host* host = nullptr;

std::string formatted(const char* format, va_list arguments) {
  char text[16'384];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

}  // namespace

extern "C" {
#define NETCHECK_TEST_LOG(function, where)               \
  void function(const char* format, ...) {               \
    va_list arguments;                                   \
    va_start(arguments, format);                         \
    host->where.push_back(formatted(format, arguments)); \
    va_end(arguments);                                   \
  }
NETCHECK_TEST_LOG(slurm_error, errors)
NETCHECK_TEST_LOG(slurm_info, infos)
NETCHECK_TEST_LOG(slurm_spank_log, log)

const char* spank_strerror(spank_err_t) {
  return "an error";
}
spank_context_t spank_context() {
  return host->context;
}
spank_err_t spank_option_register(spank_t, spank_option* option) {
  host->registered = option;
  return kDone;
}
spank_err_t spank_option_getopt(spank_t, spank_option*, char** value) {
  if (!host->option) return ESPANK_ERROR;
  *value = host->option->data();
  return kDone;
}
spank_err_t spank_setenv(spank_t, const char* name, const char* value, int) {
  host->environment[name] = value;
  return kDone;
}
spank_err_t spank_unsetenv(spank_t, const char* name) {
  host->environment.erase(name);
  return kDone;
}
spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
  va_list arguments;
  va_start(arguments, item);
  void* out = va_arg(arguments, void*);
  va_end(arguments);
  switch (item) {
    case S_JOB_ID:
      *static_cast<std::uint32_t*>(out) = host->job;
      break;
    case S_JOB_UID:
      *static_cast<uid_t*>(out) = host->uid;
      break;
    case S_JOB_STEPID:
      *static_cast<std::uint32_t*>(out) = host->step;
      break;
    case S_JOB_ENV:
      *static_cast<char***>(out) = host->job_environment;
      break;
    case S_SLURM_RESTART_COUNT:
      *static_cast<std::uint32_t*>(out) = host->restart;
      break;
    default:
      return ESPANK_BAD_ARG;
  }
  return kDone;
}
int slurm_spank_init(spank_t, int, char**);
int slurm_spank_init_post_opt(spank_t, int, char**);
int slurm_spank_user_init(spank_t, int, char**);
int slurm_spank_job_prolog(spank_t, int, char**);
int slurm_spank_job_epilog(spank_t, int, char**);
}

namespace netcheck::plugin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kBatch = 0xfffffffb, kExtern = 0xfffffffc;

class Spank : public testing::Test {
 protected:
  void SetUp() override {
    host = &host_;
    host_.uid = ::getuid();
    std::string pattern = testing::TempDir() + "/netcheck-spank-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(folder_ / "notices");
    program_ = folder_ / "program";
    std::ofstream(program_) << "#!/bin/sh\nshift $(($# - 1)); printf '%s' \"$1\" >"
                            << (folder_ / "request").string() << "\n";
    ::chmod(program_.c_str(), 0755);
    arguments_ = {"run_directory=" + folder_.string(), "program=" + program_.string()};
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    host = nullptr;
  }

  int call(int (*callback)(spank_t, int, char**)) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments_)
      pointers.push_back(argument.data());
    return callback(nullptr, static_cast<int>(pointers.size()), pointers.data());
  }
  void leave_notice(bool leader, std::uint32_t restart = 0, const char* fabric = nullptr) {
    Notice notice;
    notice.run = {"c", 17, restart};
    std::ifstream("/proc/sys/kernel/random/boot_id") >> notice.boot_id;
    notice.leader = leader;
    notice.line = "netcheck=pass busbw=1.0Gbps 100%s";
    notice.environment = {{"NETCHECK_VERDICT", "pass"}};
    if (fabric != nullptr) notice.environment["NETCHECK_FABRIC"] = fabric;
    std::ofstream(folder_ / "notices/17") << write_notice(notice);
  }
  /// One step's life in slurmstepd.
  void step(std::uint32_t id) {
    host_.context = S_CTX_REMOTE;
    host_.step = id;
    host_.log.clear();
    host_.environment.clear();
    EXPECT_EQ(call(slurm_spank_init), 0);
    EXPECT_EQ(call(slurm_spank_init_post_opt), 0);
    EXPECT_EQ(call(slurm_spank_user_init), 0);
  }
  std::string request() {
    std::ifstream file(folder_ / "request");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Host host_;
  std::filesystem::path folder_, program_;
  std::vector<std::string> arguments_;
};

TEST_F(Spank, OptionIsRegisteredWhereOptionsAreRead) {
  for (const spank_context_t context : {S_CTX_ALLOCATOR, S_CTX_LOCAL, S_CTX_REMOTE}) {
    host_.registered = nullptr;
    host_.context = context;
    EXPECT_EQ(call(slurm_spank_init), 0);
    ASSERT_NE(host_.registered, nullptr);
    EXPECT_STREQ(host_.registered->name, "netcheck");
  }
  host_.registered = nullptr;
  host_.context = S_CTX_SLURMD;
  EXPECT_EQ(call(slurm_spank_init), 0);
  EXPECT_EQ(host_.registered, nullptr);
}

TEST_F(Spank, MalformedOptionIsRefusedWithOneLine) {
  host_.context = S_CTX_ALLOCATOR;
  call(slurm_spank_init);
  const auto option = host_.registered->cb;
  for (const char* fine : {static_cast<const char*>(nullptr), "(null)", "400Gbps", "min=1Gbps,time=9s"})
    EXPECT_EQ(option(0, fine, 0), 0);
  EXPECT_THAT(host_.errors, IsEmpty());
  EXPECT_EQ(option(0, "mim=400Gbps", 0), -1);
  EXPECT_THAT(
      host_.errors,
      ElementsAre("netcheck: --netcheck=mim=400Gbps: unknown key 'mim', did you mean 'min'? (for example "
                  "--netcheck, --netcheck=400Gbps or --netcheck=min=400Gbps,op=all_reduce,time=10s)"));
  EXPECT_EQ(option(0, "", 0), -1);  // --netcheck=$MIN, and MIN is empty
  EXPECT_THAT(host_.errors.back(),
              testing::StartsWith("netcheck: --netcheck=: no value after the '=' (for ex"));
  EXPECT_EQ(option(0, std::string(10'240, 'x').c_str(), 0), -1);
  EXPECT_LT(host_.errors.back().size(), 400u);
}

TEST_F(Spank, WhatTheSiteForbidsIsRefusedAtSubmission) {
  std::ofstream(program_) << "#!/bin/sh\necho \"refuse $4: the site's minimum is 100Gbps\"; echo end\n";
  for (const spank_context_t context : {S_CTX_ALLOCATOR, S_CTX_LOCAL}) {
    host_.context = context;
    host_.errors.clear();
    call(slurm_spank_init);
    EXPECT_EQ(host_.registered->cb(0, "50Gbps", 0), -1);
    EXPECT_THAT(host_.errors,
                ElementsAre("netcheck: --netcheck: --spec=50Gbps: the site's minimum is 100Gbps"));
    EXPECT_EQ(host_.registered->cb(0, "(null)", 0), 0);  // wants nothing: nobody is asked
  }
}

TEST_F(Spank, WhatTheSiteGrantsInPartIsSaidAtSubmission) {
  std::ofstream(program_) << "#!/bin/sh\necho \"note time=60s: the site's maximum is 20s\"; echo end\n";
  host_.context = S_CTX_ALLOCATOR;
  call(slurm_spank_init);
  EXPECT_EQ(host_.registered->cb(0, "time=60s", 0), 0);
  EXPECT_THAT(host_.log, ElementsAre("netcheck: time=60s: the site's maximum is 20s"));
  EXPECT_THAT(host_.errors, IsEmpty());
}

TEST_F(Spank, ASubmissionIsNotHeldUpByABrokenProgram) {
  host_.context = S_CTX_ALLOCATOR;
  for (const char* broken : {"exit 2", "echo refuse it", "kill -9 $$"}) {
    std::ofstream(program_) << "#!/bin/sh\n" << broken << "\n";
    call(slurm_spank_init);
    EXPECT_EQ(host_.registered->cb(0, "50Gbps", 0), 0) << broken;
  }
  EXPECT_THAT(host_.errors, IsEmpty());
}

TEST_F(Spank, AnSrunInsideAJobAsksNobodyAgain) {
  std::ofstream(program_) << "#!/bin/sh\necho 'refuse it'; echo end\n";
  ::setenv("SLURM_JOB_ID", "17", 1);
  host_.context = S_CTX_LOCAL;
  call(slurm_spank_init);
  EXPECT_EQ(host_.registered->cb(0, "50Gbps", 0), 0);
  host_.context = S_CTX_ALLOCATOR;  // an sbatch there does submit a job
  call(slurm_spank_init);
  EXPECT_EQ(host_.registered->cb(0, "50Gbps", 0), -1);
  ::unsetenv("SLURM_JOB_ID");
}

TEST_F(Spank, PrologStartsTheProgramForEveryJobWhereTheFileMayWantIt) {
  const std::filesystem::path config = folder_ / "netcheck.toml";
  arguments_.push_back("config=" + config.string());
  std::ofstream(program_) << "#!/bin/sh\necho \"$*\" >" << (folder_ / "request").string() << "\n";
  host_.context = S_CTX_JOB_SCRIPT;
  std::ofstream(config) << "[when]\n#mode = \"always\"\n";
  EXPECT_EQ(call(slurm_spank_job_prolog), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "request"));
  std::ofstream(config) << "[when]\nmode = \"always\"\n";
  EXPECT_EQ(call(slurm_spank_job_prolog), 0);
  EXPECT_THAT(request(), testing::StartsWith("prolog "));
  EXPECT_THAT(request(), testing::EndsWith(" --config " + config.string() + "\n"));
}

TEST_F(Spank, ValueSmuggledPastTheClientDoesNoHarmInAStep) {
  host_.context = S_CTX_REMOTE;
  call(slurm_spank_init);
  EXPECT_EQ(host_.registered->cb(0, "\x1b[2J", 1), 0);
  EXPECT_THAT(host_.errors, IsEmpty());
}

TEST_F(Spank, PrologDoesNothingForAJobWithoutTheOption) {
  host_.context = S_CTX_JOB_SCRIPT;
  EXPECT_EQ(call(slurm_spank_job_prolog), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "request"));
  EXPECT_THAT(host_.infos, IsEmpty());
}

TEST_F(Spank, PrologPassesTheRequestOn) {
  host_.context = S_CTX_JOB_SCRIPT;
  host_.option = "(null)";
  EXPECT_EQ(call(slurm_spank_job_prolog), 0);
  EXPECT_EQ(request(), "--request=");
  host_.option = "min=400Gbps";
  EXPECT_EQ(call(slurm_spank_job_prolog), 0);
  EXPECT_EQ(request(), "--request=min=400Gbps");
}

TEST_F(Spank, PrologPassesAHostileRequestOnAsARefusal) {
  host_.context = S_CTX_JOB_SCRIPT;
  for (const std::string& hostile :
       {std::string(10'240, '9'), std::string("a\nb"), std::string("\xff\xfe")}) {
    host_.option = hostile;
    EXPECT_EQ(call(slurm_spank_job_prolog), 0);
    EXPECT_THAT(request(), testing::StartsWith("--request=(refused: "));
    EXPECT_FALSE(parse_request(request().substr(std::string("--request=").size())));
  }
}

TEST_F(Spank, PrologSucceedsWithoutAProgram) {
  std::filesystem::remove(program_);
  host_.context = S_CTX_JOB_SCRIPT;
  host_.option = "";
  EXPECT_EQ(call(slurm_spank_job_prolog), 0);
  EXPECT_THAT(host_.errors, ElementsAre(HasSubstr("the job runs unchecked")));
}

TEST_F(Spank, PrologAndEpilogRemoveWhatAnEarlierRunLeft) {
  for (const auto callback : {slurm_spank_job_prolog, slurm_spank_job_epilog}) {
    leave_notice(true);
    std::ofstream(folder_ / "notices/17.shown");
    host_.context = S_CTX_JOB_SCRIPT;
    EXPECT_EQ(call(callback), 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "notices"));
  }
}

TEST_F(Spank, LineIsPrintedOncePerJobAndVariablesReachEveryStep) {
  leave_notice(true);
  step(kBatch);
  EXPECT_THAT(host_.log, ElementsAre("netcheck=pass busbw=1.0Gbps 100%s"));
  EXPECT_EQ(host_.environment.at("NETCHECK_VERDICT"), "pass");
  step(0);
  EXPECT_THAT(host_.log, IsEmpty());
  EXPECT_EQ(host_.environment.at("NETCHECK_VERDICT"), "pass");
}

TEST_F(Spank, FiguresOfTheJobThatSubmittedThisOneAreNotShown) {
  host_.environment = {{"NETCHECK_VERDICT", "pass"}, {"NETCHECK_BUSBW_GBPS", "0.955"}, {"OTHER", "stays"}};
  host_.context = S_CTX_REMOTE;
  EXPECT_EQ(call(slurm_spank_init_post_opt), 0);
  EXPECT_EQ(call(slurm_spank_user_init), 0);
  EXPECT_THAT(host_.environment, ElementsAre(testing::Pair("OTHER", "stays")));
}

TEST_F(Spank, TellsWhichOfTheJobsNcclSettingsWereNotApplied) {
  std::string algo = "NCCL_ALGO=Tree", path = "PATH=/bin", hca = "NCCL_IB_HCA=mlx5";
  std::array<char*, 4> environment{algo.data(), path.data(), hca.data(), nullptr};
  host_.job_environment = environment.data();
  leave_notice(true, 0, "nccl");
  step(0);
  ASSERT_EQ(host_.log.size(), 2u);
  EXPECT_THAT(
      host_.log.back(),
      testing::EndsWith("not applied to the check, which goes by the site's: NCCL_ALGO, NCCL_IB_HCA"));
}

TEST_F(Spank, TellsNothingOfNcclWhereTheCheckWasOverAnotherFabric) {
  std::string algo = "NCCL_ALGO=Tree";
  std::array<char*, 2> environment{algo.data(), nullptr};
  host_.job_environment = environment.data();
  leave_notice(true, 0, "ucx");
  step(0);
  EXPECT_EQ(host_.log.size(), 1u);
}

TEST_F(Spank, OtherNodesPrintNothing) {
  leave_notice(false);
  step(0);
  EXPECT_THAT(host_.log, IsEmpty());
  EXPECT_EQ(host_.environment.at("NETCHECK_VERDICT"), "pass");
}

TEST_F(Spank, ExternStepIsLeftAlone) {
  leave_notice(true);
  step(kExtern);
  EXPECT_THAT(host_.log, IsEmpty());
  EXPECT_THAT(host_.environment, IsEmpty());
  step(0);
  EXPECT_EQ(host_.log.size(), 1u);
}

TEST_F(Spank, StaleNoticeIsNotShownToARestartedJob) {
  leave_notice(true, 0);
  host_.restart = 1;
  step(kBatch);
  EXPECT_THAT(host_.log, IsEmpty());
  EXPECT_THAT(host_.environment, IsEmpty());
}

TEST_F(Spank, RestartedJobIsShownItsOwnNoticeWhereSlurmTellsStepsNothing) {
  leave_notice(true, 1);
  host_.restart = 0;
  step(kBatch);
  EXPECT_EQ(host_.log.size(), 1u);
}

TEST_F(Spank, JobWithoutNoticeIsLeftAlone) {
  step(kBatch);
  EXPECT_THAT(host_.log, IsEmpty());
  EXPECT_THAT(host_.infos, IsEmpty());
  EXPECT_THAT(host_.environment, IsEmpty());
}

TEST(TypedOnAStep, IsToldFromWhatSlurmHandsDown) {
  using namespace std::string_view_literals;
  constexpr auto kPlain = "srun\0-n1\0hostname\0"sv, kTyped = "srun\0--netcheck=1Gbps\0-n1\0hostname\0"sv;
  // inside a job, the job has it, calls, command
  EXPECT_FALSE(typed_on_a_step({true, true, 1, kPlain}));
  EXPECT_TRUE(typed_on_a_step({true, true, 2, kTyped}));
  EXPECT_TRUE(typed_on_a_step({true, false, 1, kTyped}));
  EXPECT_TRUE(typed_on_a_step({true, false, 1, "srun\0--netch\0hostname\0"sv}));
  EXPECT_FALSE(typed_on_a_step({true, false, 0, kPlain}));
  EXPECT_FALSE(typed_on_a_step({false, false, 1, kTyped}));  // srun that asks for its own job
  EXPECT_FALSE(typed_on_a_step({true, true, 1, "srun\0prog\0--netcheck\0"sv}));
  EXPECT_FALSE(typed_on_a_step({true, false, 1, "srun\0--network=x\0prog\0"sv}));
}

}  // namespace
}  // namespace netcheck::plugin
