// At submission, as the submitting user: what the site's file says to the request, asked of `netcheck
// policy`. Whatever goes wrong with that (no program, no file, a hang) is no answer and keeps no job from
// being submitted. No Slurm calls here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "settings.h"

namespace netcheck::plugin {

/// What a user is told at once. Both empty: nothing against it, or nobody could say.
struct SiteAnswer {
  std::vector<std::string> refused;  ///< what the site forbids: the job is not submitted
  std::vector<std::string> notes;    ///< what it grants only in part
};

/// Of what `netcheck policy --submission` printed; of one that did not come to its end, nothing. Pure.
[[nodiscard]] SiteAnswer read_answer(std::string_view output);

/// Asks; at most a second, and a moment for killing what has not ended by then. `spec` is well formed.
[[nodiscard]] SiteAnswer ask_site(const Settings& settings, const std::string& spec);

}  // namespace netcheck::plugin
