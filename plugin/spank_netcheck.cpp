// What Slurm loads: the exported callbacks, one switch by context each, and nothing else. In sbatch, salloc
// and srun as the submitting user, in slurmd and slurmstepd as root.
//
// Every callback returns 0 (but the refusal of a malformed option): a node whose prolog or step fails in here
// would be drained, or its job lost, for the sake of a check. Nothing throws out of a callback: each is one
// call of harmless(), which is noexcept. They cannot be declared so themselves, since spank.h declares them
// first.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "every_job.h"
#include "launch.h"
#include "notice.h"
#include "options.h"
#include "policy/request.h"
#include "settings.h"

#define NETCHECK_EXPORT __attribute__((visibility("default")))

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): Slurm looks these names up.
// SPANK_PLUGIN() of spank.h would give these internal linkage in C++.
extern const char plugin_name[] NETCHECK_EXPORT;
extern const char plugin_type[] NETCHECK_EXPORT;
extern const unsigned int plugin_version NETCHECK_EXPORT;
extern const unsigned int spank_plugin_version NETCHECK_EXPORT;
const char plugin_name[] = "netcheck";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;
// NOLINTEND(readability-identifier-naming)
}

namespace netcheck::plugin {

namespace {

/// SLURM_EXTERN_CONT of slurm.h, which is not needed otherwise: the same in every version since 20.11.
constexpr std::uint32_t kExternStep = 0xfffffffc;

/// Read as root before privileges are dropped, used after it: Slurm's callbacks carry no user data, and a
/// slurmstepd is one step.
std::optional<Notice>& the_notice() {
  static std::optional<Notice> instance;
  return instance;
}
bool& shall_print() {
  static bool instance = false;
  return instance;
}

Settings read_settings(int count, char** arguments) {
  std::vector<std::string> complaints;
  Settings settings =
      parse_settings({arguments, count > 0 ? static_cast<std::size_t>(count) : 0}, complaints);
  for (const std::string& complaint : complaints)
    slurm_error("netcheck: %s", complaint.c_str());
  return settings;
}

void relay(bool is_error, const std::string& text) {
  if (is_error)
    slurm_error("netcheck: %s", text.c_str());
  else
    slurm_info("netcheck: %s", text.c_str());
}

/// The job this prolog or epilog is for; 0 when Slurm does not say.
std::uint32_t job_of(spank_t spank) {
  std::uint32_t job = 0;
  return spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS ? job : 0;
}

void prolog(spank_t spank, int count, char** arguments) {
  const Settings settings = read_settings(count, arguments);
  if (const std::uint32_t job = job_of(spank); job != 0) remove_notice(settings.run_directory, job);
  const auto request = requested(spank);
  if (!request && !may_want_every_job(settings.config)) return;
  run_check(settings, request ? std::optional(carry_spec(*request)) : std::nullopt,
            child_environment([](const char* name) { return std::getenv(name); }, settings), relay);
}

void epilog(spank_t spank, int count, char** arguments) {
  const Settings settings = read_settings(count, arguments);
  if (const std::uint32_t job = job_of(spank); job != 0) remove_notice(settings.run_directory, job);
}

/// Which step this is; nullopt for the extern step, which no user sees, and where Slurm does not say.
std::optional<Step> this_step(spank_t spank) {
  Step step;
  std::uint32_t id = 0;
  if (spank_get_item(spank, S_JOB_ID, &step.job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &id) != ESPANK_SUCCESS || id == kExternStep)
    return std::nullopt;
  // 0 says nothing: Slurm 22.05 gives it to every step of a restarted job too. What protects a restarted job
  // from an old notice there is the prolog, which removes it.
  std::uint32_t restart = 0;
  if (spank_get_item(spank, S_SLURM_RESTART_COUNT, &restart) == ESPANK_SUCCESS && restart > 0)
    step.restart = restart;
  return step;
}

/// As root. Costs one failed open() where there is no notice.
void take_notice(spank_t spank, int count, char** arguments) {
  the_notice().reset();
  shall_print() = false;
  const auto step = this_step(spank);
  if (!step) return;
  std::vector<std::string> told_in_the_prolog;
  const Settings settings =
      parse_settings({arguments, count > 0 ? static_cast<std::size_t>(count) : 0}, told_in_the_prolog);
  std::string why_not;
  the_notice() = load_notice(settings.run_directory, *step, why_not);
  if (!why_not.empty()) slurm_info("netcheck: %s", why_not.c_str());
  shall_print() = the_notice() && the_notice()->leader && claim_printing(settings.run_directory, step->job);
}

/// From here on what is logged reaches the user: sbatch's output file, srun's stderr.
void tell_the_user(spank_t spank) {
  // A job submitted from within a checked one inherits its variables.
  for (const char* name : kJobVariables)
    spank_unsetenv(spank, name);
  if (!the_notice()) return;
  if (shall_print()) {
    slurm_spank_log("%s", the_notice()->line.c_str());
    char** environment = nullptr;
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) environment = nullptr;
    if (const std::string names = not_applied(*the_notice(), environment); !names.empty())
      slurm_spank_log("netcheck: not applied to the check, which goes by the site's: %s", names.c_str());
  }
  for (const auto& [name, value] : the_notice()->environment)
    spank_setenv(spank, name.c_str(), value.c_str(), 1);
}

/// In sbatch, salloc and srun: whether a job is submitted here. An srun inside a job is given the job's own
/// --netcheck, of which nobody is to be told once more.
void look_at_submission(bool may_be_a_step, int count, char** arguments) {
  if (may_be_a_step && std::getenv("SLURM_JOB_ID") != nullptr) return ask_the_site(std::nullopt);
  std::vector<std::string> told_in_the_prolog;
  ask_the_site(
      parse_settings({arguments, count > 0 ? static_cast<std::size_t>(count) : 0}, told_in_the_prolog));
}

/// Whatever happens in `act`, Slurm is told that all is well.
template <typename Act>
int harmless(Act&& act) noexcept {
  try {
    act();
  } catch (const std::exception& error) {
    slurm_error("netcheck: %s", error.what());
  } catch (...) {
    slurm_error("netcheck: an unknown error");
  }
  return 0;
}

}  // namespace

}  // namespace netcheck::plugin

using namespace netcheck::plugin;  // NOLINT(google-build-using-namespace): the callbacks below are its doors

extern "C" {

NETCHECK_EXPORT int slurm_spank_init(spank_t spank, int count, char** arguments) {
  return harmless([&] {
    switch (spank_context()) {
      case S_CTX_LOCAL:
        look_at_environment();
        look_at_submission(true, count, arguments);
        register_option(spank);
        break;
      case S_CTX_ALLOCATOR:
        look_at_submission(false, count, arguments);
        register_option(spank);
        break;
      case S_CTX_REMOTE:
        register_option(spank);
        break;
      default:
        break;
    }
  });
}

NETCHECK_EXPORT int slurm_spank_init_post_opt(spank_t spank, int count, char** arguments) {
  return harmless([&] {
    switch (spank_context()) {
      case S_CTX_LOCAL:
        if (const std::string remark = step_remark(); !remark.empty()) slurm_spank_log("%s", remark.c_str());
        break;
      case S_CTX_REMOTE:
        take_notice(spank, count, arguments);
        break;
      default:
        break;
    }
  });
}

NETCHECK_EXPORT int slurm_spank_user_init(spank_t spank, int /*count*/, char** /*arguments*/) {
  return harmless([&] {
    if (spank_context() == S_CTX_REMOTE) tell_the_user(spank);
  });
}

NETCHECK_EXPORT int slurm_spank_job_prolog(spank_t spank, int count, char** arguments) {
  return harmless([&] { prolog(spank, count, arguments); });
}

NETCHECK_EXPORT int slurm_spank_job_epilog(spank_t spank, int count, char** arguments) {
  return harmless([&] { epilog(spank, count, arguments); });
}
}
