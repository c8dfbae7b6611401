// Between supervisor and probe: the assignment in, the report out, over pipes, bounded in size and time. In
// the probe, as the probe user.
#pragma once

#include "session/report.h"
#include "system/descriptor.h"

namespace netcheck::session {

/// 16,384 node names of 255 bytes, and a policy.
inline constexpr std::size_t kAssignmentMaxBytes = 8u << 20;

/// Reads to the end of the pipe. The supervisor writes at once, so a second is plenty.
[[nodiscard]] Result<Assignment> read_assignment(const system::Descriptor& pipe);

/// Writes all of it and closes the pipe, which is how the supervisor knows that it is whole. A history too
/// large for the supervisor is left out, which the report's log tells.
[[nodiscard]] Result<void> write_report(system::Descriptor pipe, Report report, Time deadline);

}  // namespace netcheck::session
