// Slurm's client commands as child processes: absolute path, clean environment, a deadline each, and a fixed
// number of calls for a job, so that a thousand jobs with something to say are no storm. As root, who is
// exempt from Slurm's own rate limits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"

namespace netcheck::prolog {

/// What one check may ask of the controller; the same again for the helper of a requeue (early_start.h).
inline constexpr unsigned kMaxCalls = 10;
/// Of sinfo's answer: 16,384 nodes in four partitions. A longer one is cut, and then is not believed.
inline constexpr std::size_t kMaxAnswerBytes = 64u << 20;

/// Of a node list in one argument: half of what Linux allows (MAX_ARG_STRLEN).
inline constexpr std::size_t kNodeListBytes = 65'536;

/// SLURM_CONF of the prolog; "" when it is not set.
[[nodiscard]] std::string slurm_conf();
/// The directories in which Slurm's commands are looked for: the prolog's PATH, then the usual ones.
[[nodiscard]] std::string slurm_path();

class Controller {
 public:
  /// `conf`: SLURM_CONF for the calls; empty = Slurm's default. `path`: "a:b:c".
  Controller(std::string conf, std::string path, unsigned calls = kMaxCalls)
      : conf_(std::move(conf)), path_(std::move(path)), left_(calls) {}

  /// stdout of a call that ended with 0. A stopped or slow slurmctld costs no more than until `deadline`.
  [[nodiscard]] Result<std::string> call(const std::string& name, std::vector<std::string> arguments,
                                         Time deadline);
  [[nodiscard]] unsigned left() const { return left_; }
  /// The same commands, with calls of their own.
  [[nodiscard]] Controller fresh() const { return {conf_, path_}; }

 private:
  std::string conf_, path_;
  unsigned left_;
};

/// Whether a call failed because the job is over: its user may cancel it at any moment.
[[nodiscard]] bool has_ended(const Error& error);

}  // namespace netcheck::prolog
