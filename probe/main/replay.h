// `netcheck replay RECORD`: judges the samples of a leader's record again and prints the line. As whoever may
// read the record (root).
#pragma once

#include <optional>
#include <string>

namespace netcheck {

/// `config`: a site's file by whose thresholds, rules and findings it is judged, instead of those of then.
/// Exit code of the verdict; 2 when the file is no leader's record, or the configuration cannot be read.
[[nodiscard]] int replay(const std::string& path, const std::optional<std::string>& config);

}  // namespace netcheck
