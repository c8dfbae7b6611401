// One line into the node's syslog, never waiting: syslog(3) waits where the log is full, and a prolog must
// not.
#pragma once

#include <string>

namespace netcheck::prolog {

/// Priority notice, facility daemon. False: nobody listens there, or has no room.
bool write_syslog(const std::string& text, const std::string& socket = "/dev/log");

}  // namespace netcheck::prolog
