// What follows a verdict, carried out: the line into AdminComment, and what the plan says beside it. By the
// leader alone, as root. Announced before it is done: the comment stands before the job is touched, so that
// every action tells what did it, and so that checks which act at the same moment see each other.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "contract/job.h"
#include "prolog/decide.h"
#include "prolog/early_start.h"
#include "prolog/outcome.h"
#include "prolog/record.h"

namespace netcheck::prolog {

struct Case {
  JobRun run;
  std::string partition;
  std::string line;  ///< the verdict's
  Finding finding;
  Policy policy;
  std::vector<std::string> kill_switches;  ///< paths: once one is there, nothing is acted on
  std::filesystem::path topology;          ///< Slurm's topology.conf, where there is one
};

/// What the supervisor has judged itself; nothing that the probe merely claims.
[[nodiscard]] Case case_of(const Record& record, const Outcome& outcome,
                           std::vector<std::string> kill_switches, std::filesystem::path topology);

struct Acted {
  Action action = Action::annotate;
  std::string result = "done";    ///< or why not, or kEnded
  std::string line;               ///< the verdict's, and what was done
  std::vector<std::string> said;  ///< one line for each action and for each brake that held: for syslog
  std::optional<EarlyStart> early;
};

[[nodiscard]] Acted act(const Case& found, Controller& controller, Time deadline);

}  // namespace netcheck::prolog
