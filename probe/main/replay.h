// `netcheck replay RECORD`: judges the samples of a leader's record again and prints the line. As whoever may
// read the record (root).
#pragma once

#include <string>

namespace netcheck {

/// Exit code of the verdict; 2 when the file is no leader's record.
[[nodiscard]] int replay(const std::string& path);

}  // namespace netcheck
