// supervise() from end to end, in a folder of its own, with a shell script in the place of the probe. As
// root: privileges are dropped to the account "games", which every Debian has.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "contract/wire.h"
#include "prolog/record.h"
#include "prolog/supervisor.h"
#include "system/loop.h"
#include "system/process.h"

namespace netcheck::prolog::test {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kAccount = "games";
// Every fault below hangs for a minute or for ever: what ends within this has been ended. (The supervisor's
// own promise is 5 s here, which a loaded machine cannot keep for it.)
constexpr auto kPatience = std::chrono::seconds(20);

inline std::string content(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Supervise : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can drop privileges";
    if (::getpwnam(kAccount) == nullptr) GTEST_SKIP() << "no account " << kAccount;
    std::string name = (fs::temp_directory_path() / "netcheck-supervise-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    base_ = name;
    fs::permissions(base_, fs::perms(0755));
    for (const char* folder : {"etc", "bin", "run", "scratch"})
      fs::create_directory(base_ / folder);
    fs::permissions(base_ / "scratch", fs::perms(01777));
    job_ = 100'000 + static_cast<std::uint32_t>(::getpid());  // its own ports, beside other tests
    config("[check]\ntime = \"3s\"\nrendezvous = \"500ms\"\nslice = \"500ms\"\n");
    tool("squeue", "printf '%-20s%-20s%-20s%-20s%-20s%-20s%s\\n' $JOB $JOB N/A N/A N/A 1 'ticket=42'");
    tool("scontrol", "echo \"$@\" >> $LOG");
    program("exit 0");
  }
  void TearDown() override {
    if (!base_.empty()) fs::remove_all(base_);
  }

  void config(const std::string& text) const {
    const bool names_account = text.find("probe_user") != std::string::npos;
    std::ofstream(config_path()) << text
                                 << (names_account ? ""
                                                   : fmt::format("[probe]\nprobe_user = \"{}\"\n", kAccount))
                                 << "[record]\nrun_directory = \"" << (base_ / "run").string() << "\"\n"
                                 << record_section_;
    fs::permissions(config_path(), fs::perms(0644));
  }
  [[nodiscard]] fs::path config_path() const { return base_ / "etc" / "netcheck.toml"; }
  void script(const fs::path& path, const std::string& body) const {
    fs::remove(path);
    std::ofstream(path) << "#!/bin/bash\nBASE=" << base_.string() << "\nJOB=" << job_
                        << "\nLOG=$BASE/scontrol.log\n"
                        << body << "\n";
    fs::permissions(path, fs::perms(0755));
  }
  void tool(const char* name, const std::string& body) const { script(base_ / "bin" / name, body); }
  void program(const std::string& body) const { script(base_ / "netcheck", body); }
  // The probe that reports this and ends well.
  void reports(const std::string& report) const {
    std::ofstream(base_ / "report.json") << report;
    program("cat $BASE/report.json >&4");
  }

  struct Ran {
    int code = -1;
    Ns took{};
    std::string said;
  };
  // In a process of its own: it becomes a subreaper, and kills all that is below it.
  pid_t start(const char* log, const std::string& self, std::optional<std::string> request) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int fd = ::open((base_ / log).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(fd, STDERR_FILENO);
      ::clearenv();
      set_environment(self);
      Invocation invocation;
      invocation.program = (base_ / "netcheck").string();
      invocation.config = config_path().string();
      invocation.request = std::move(request);
      invocation.run_directory = (base_ / "run").string();
      invocation.announce_deadline = announces_;
      invocation.notice_directory = notice_directory_;
      invocation.syslog = syslog_;
      invocation.module_directories = {(base_ / "modules").string()};
      ::_exit(supervise(invocation));
    }
    return child;
  }
  // `end`: the signal that it gets once its probe has made scratch/started. `first`: no check of this run has
  // been there before.
  Ran run(const std::string& self = "n2", std::optional<std::string> request = "", int end = 0,
          bool first = true) {
    if (first) fs::remove_all(base_ / "run/records");
    const Time began = system::now();
    const pid_t child = start("said", self, std::move(request));
    for (int i = 0; end != 0 && i < 1'000 && !fs::exists(base_ / "scratch/started"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (end != 0) ::kill(child, end);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, system::now() - began, content(base_ / "said")};
  }
  Ran run_again() { return run("n2", "", 0, false); }
  void set_environment(const std::string& self) const {
    ::setenv("PATH", (base_ / "bin").c_str(), 1);
    if (job_ != 0) ::setenv("SLURM_JOB_ID", std::to_string(job_).c_str(), 1);
    ::setenv("SLURM_JOB_UID", "12345", 1);
    ::setenv("SLURM_JOB_GID", "12345", 1);
    ::setenv("SLURM_CLUSTER_NAME", "demo", 1);
    ::setenv("SLURM_JOB_RESTART_COUNT", std::to_string(restart_).c_str(), 1);
    ::setenv("SLURM_NODELIST", nodes_.c_str(), 1);
    ::setenv("SLURMD_NODENAME", self.c_str(), 1);
    if (gpus_) ::setenv("SLURM_JOB_GPUS", gpus_->c_str(), 1);
  }

  [[nodiscard]] Json record() const {
    return Json::parse(content(base_ / "run/records" / ("demo-" + std::to_string(job_) + "-0.json")));
  }
  [[nodiscard]] Notice notice() const {
    return read_notice(content(base_ / "run/notices" / std::to_string(job_))).value_or(Notice{});
  }
  [[nodiscard]] std::string line() const { return record().at("line").get<std::string>(); }
  // The promise for every fault: the job runs, within the deadline and 2 s, nothing of ours is left.
  void expect_clean(const Ran& ran) const {
    EXPECT_EQ(ran.code, 0) << ran.said;
    EXPECT_LT(ran.took, kPatience) << ran.said;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
      EXPECT_THAT(content(entry.path() / "cmdline"), testing::Not(HasSubstr(base_.string()))) << entry;
    }
  }

  [[nodiscard]] session::Report report_of(bool leader) const {
    session::Report report;
    report.leader = leader;
    report.plan.nodes = {{"n1", {}, ""}, {"n2", {}, ""}};
    report.claimed = "inconclusive";
    report.inventory.node = leader ? "n1" : "n2";
    return report;
  }

  fs::path base_;
  std::uint32_t job_ = 0, restart_ = 0;
  std::string nodes_ = "n[1-2]";
  std::optional<std::string> gpus_;  // of the job on this node, as Slurm says
  std::string record_section_;       // lines more of it in the configuration
  bool announces_ = false;
  std::string syslog_;
  std::optional<std::string> notice_directory_;
};

}  // namespace netcheck::prolog::test
