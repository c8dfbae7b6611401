#include "options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "policy/request.h"
#include "submission.h"
#include "system/descriptor.h"

namespace netcheck::plugin {

namespace {

constexpr const char* kStepRemark =
    "netcheck: --netcheck on a step checks nothing: the job's network was checked, or not, when the job "
    "started; give it to sbatch or salloc";

/// Slurm's callbacks carry no user data: what one leaves for the next lies here, in a process that loads the
/// plugin once and calls it from one thread.
struct Seen {
  bool job_has_option = false;
  unsigned times_called = 0;
  std::optional<Settings> site;  ///< set where a request is of a job that is being submitted
};
Seen& seen() {
  static Seen instance;
  return instance;
}

/// The first refusal, or the notes. Non-zero refuses the command.
int tell(const SiteAnswer& answer) {
  if (!answer.refused.empty()) {
    slurm_error("netcheck: --netcheck: %s", answer.refused.front().c_str());
    return -1;
  }
  for (const std::string& note : answer.notes)
    slurm_spank_log("netcheck: %s", note.c_str());
  return 0;
}

}  // namespace

extern "C" {
/// Non-zero refuses the command. Slurm gives NULL for an option without value, "(null)" or "" for one that it
/// hands on to a step. In a step the job runs already: nothing is refused there, whatever was smuggled past
/// the client.
static int on_option(int /*value*/, const char* argument, int remote) {
  try {
    if (remote != 0) return 0;
    ++seen().times_called;
    const std::string spec = argument == nullptr ? "" : argument;
    // Without a value Slurm gives NULL here. "--netcheck=$MIN" with MIN empty is no wish for the site's
    // settings; in a job only the option that it was submitted with comes by, which is no slip of anybody's.
    if (seen().site && argument != nullptr && spec.empty()) {
      slurm_error("netcheck: --netcheck=: no value after the '=' (%s)", kRequestExample);
      return -1;
    }
    const auto request = parse_request(spec);
    if (request) return seen().site && *request != Request{} ? tell(ask_site(*seen().site, spec)) : 0;
    const Error& error = request.error();
    slurm_error(
        "%s",
        printable(fmt::format("netcheck: {}: {} ({})", error.subject, error.reason, error.remedy), 1'024)
            .c_str());
    return -1;
  } catch (...) {
    return 0;  // out of memory, and not about the value: the prolog reads it again
  }
}
}

namespace {

/// Slurm's structure wants writable text; it keeps the pointers.
spank_option& the_option() {
  static std::array<char, 9> name{"netcheck"};
  static std::array<char, 5> argument{"SPEC"};
  static std::array<char, 144> usage{
      "check the job's network when it starts; SPEC: a rate (400Gbps), or "
      "min=RATE,op=OPERATION,time=TIME,action=ACTION"};
  constexpr int kOptionalArgument = 2;
  static spank_option option{name.data(), argument.data(), usage.data(), kOptionalArgument, 0, on_option};
  return option;
}

std::string own_command_line() {
  // Options stand at the front: what is beyond a page belongs to the user's program.
  constexpr std::size_t kEnough = 4'096;
  std::string text(kEnough, '\0');
  const system::Descriptor file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

void register_option(spank_t spank) {
  if (const spank_err_t error = spank_option_register(spank, &the_option()); error != ESPANK_SUCCESS)
    slurm_error("netcheck: --netcheck is not available: %s", spank_strerror(error));
}

void ask_the_site(std::optional<Settings> settings) {
  seen().site = std::move(settings);
}

std::optional<std::string> requested(spank_t spank) {
  char* value = nullptr;
  if (spank_option_getopt(spank, &the_option(), &value) != ESPANK_SUCCESS) return std::nullopt;
  return std::string(given_spec(value == nullptr ? "" : value));
}

bool typed_on_a_step(const StepCommand& step) {
  if (!step.inside_job || step.times_called <= (step.job_has_option ? 1U : 0U)) return false;
  // Counting alone would do on the versions known; should another one call more often, users who typed
  // nothing must not be told that they did. getopt takes abbreviations: "--netc" is the shortest.
  for (std::string_view rest = step.command; !rest.empty();) {
    const std::string_view argument = rest.substr(0, rest.find('\0'));
    if (argument.starts_with("--netc")) return true;
    rest.remove_prefix(std::min(rest.size(), argument.size() + 1));
  }
  return false;
}

void look_at_environment() {
  // How sbatch and salloc hand an option on to the sruns in the job.
  seen().job_has_option = std::getenv("SLURM_SPANK__SLURM_SPANK_OPTION_netcheck_netcheck") != nullptr ||
                          std::getenv("_SLURM_SPANK_OPTION_netcheck_netcheck") != nullptr;
}

std::string step_remark() {
  if (seen().times_called == 0) return {};
  const std::string command = own_command_line();
  const StepCommand step{std::getenv("SLURM_JOB_ID") != nullptr, seen().job_has_option, seen().times_called,
                         command};
  return typed_on_a_step(step) ? kStepRemark : "";
}

}  // namespace netcheck::plugin
