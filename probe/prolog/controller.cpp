// Slurm's client commands as child processes. As root.
#include "prolog/controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "prolog/columns.h"
#include "system/process.h"

namespace netcheck::prolog {
namespace {

Result<std::string> find_program(const std::string& name, const std::string& path) {
  for (const std::string_view folder : split(path, ":")) {
    if (folder.empty() || folder.front() != '/') continue;  // never the working directory
    std::string program = fmt::format("{}/{}", folder, name);
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return fail("find the program", name, "it is in none of " + printable(path),
              "install Slurm's client commands on the node");
}

}  // namespace

std::string slurm_conf() {
  const char* conf = std::getenv("SLURM_CONF");
  return conf == nullptr ? "" : conf;
}

std::string slurm_path() {
  constexpr const char* kUsual = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/opt/slurm/bin";
  const char* path = std::getenv("PATH");
  return path == nullptr ? kUsual : fmt::format("{}:{}", path, kUsual);
}

Result<std::string> Controller::call(const std::string& name, std::vector<std::string> arguments,
                                     Time deadline) {
  if (left_ == 0) return fail("call", name, "this check has used up its calls to the controller");
  auto program = find_program(name, path_);
  if (!program) return tl::unexpected(program.error());
  --left_;
  system::Launch launch;
  launch.program = *program;
  launch.arguments = std::move(arguments);
  launch.environment = {"PATH=" + path_, "LANG=C", "LC_ALL=C"};
  if (!conf_.empty()) launch.environment.push_back("SLURM_CONF=" + conf_);
  launch.oom_score_adj = 0;
  auto finished = system::run_to_end(std::move(launch), deadline, kMaxAnswerBytes);
  if (!finished) return tl::unexpected(finished.error());
  if (finished->status != 0) {
    const std::string said =
        printable(trimmed(finished->errors.empty() ? finished->output : finished->errors));
    return fail("call", name, said.empty() ? system::describe_status(finished->status) : said);
  }
  if (finished->output.size() >= kMaxAnswerBytes)
    return fail("call", name, fmt::format("its answer is longer than {} bytes", kMaxAnswerBytes));
  return std::move(finished->output);
}

// Slurm's words (slurm_errno.c) for ESLURM_INVALID_JOB_ID and ESLURM_ALREADY_DONE.
bool has_ended(const Error& error) {
  return error.reason.find("Invalid job id specified") != std::string::npos ||
         error.reason.find("Job has already finished") != std::string::npos;
}

}  // namespace netcheck::prolog
