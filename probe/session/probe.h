// The driver: gives the machines their clock, peers and fabric, on a real node. `netcheck probe`, as the
// probe user, started by the supervisor with the assignment on descriptor 3, the report on descriptor 4 and,
// on node 0, the listener on descriptor 5.
#pragma once

#include <string>

namespace netcheck::session {

struct ProbeFiles {
  int assignment = 3, report = 4, listener = 5;
};

/// Exit code as everywhere; the report is on its descriptor, diagnostics on stderr.
[[nodiscard]] int probe(const std::string& program, ProbeFiles files);

}  // namespace netcheck::session
