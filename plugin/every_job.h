// Whether the site's file may want jobs checked that did not ask. As root, in the prolog of every job, so it
// costs one small file and no process; `netcheck prolog` reads the file properly.
#pragma once

#include <string>
#include <string_view>

namespace netcheck::plugin {

/// True when a line of it that is no comment has the word "always" in it. Pure.
[[nodiscard]] bool mentions_always(std::string_view toml);

/// The same of the file; false when there is none, or none that is fit to be read.
[[nodiscard]] bool may_want_every_job(const std::string& config);

}  // namespace netcheck::plugin
