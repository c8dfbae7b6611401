// --netcheck[=SPEC]: registered in sbatch, salloc, srun and in steps; refused at once when malformed, or when
// the site forbids it; fetched again in the prolog. As the submitting user in clients, as root in the prolog
// and in steps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

extern "C" {
#include <slurm/spank.h>
}

#include "settings.h"

namespace netcheck::plugin {

/// In slurm_spank_init of every context that takes options.
void register_option(spank_t spank);

/// With settings, requests are from here on of a job being submitted: the site's file is asked about each
/// that wants something.
void ask_the_site(std::optional<Settings> settings);

/// In the job prolog: the value of the job's --netcheck; "" without one; nullopt when the job does not
/// have the option.
[[nodiscard]] std::optional<std::string> requested(spank_t spank);

/// What is known of one srun. Inside a job that was submitted with --netcheck, Slurm gives srun the job's
/// value as if it had been typed, and one typed after it: the callback comes once more than inherited.
struct StepCommand {
  bool inside_job = false;      ///< SLURM_JOB_ID is set
  bool job_has_option = false;  ///< the job's own --netcheck is in the environment
  unsigned times_called = 0;    ///< of the option's callback
  std::string_view command;     ///< /proc/self/cmdline: arguments ended by NULs
};
/// True when --netcheck was typed for a step, where it does nothing. Pure.
[[nodiscard]] bool typed_on_a_step(const StepCommand& step);

/// The one line for the user when that is so; "" otherwise. In srun, when its options have been read.
[[nodiscard]] std::string step_remark();
/// Before options are read: remembers what the environment says, which reading them changes.
void look_at_environment();

}  // namespace netcheck::plugin
