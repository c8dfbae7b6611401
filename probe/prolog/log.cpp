#include "prolog/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include "contract/error.h"
#include "prolog/syslog.h"

namespace netcheck::prolog {

void Log::name(std::uint32_t job) {
  prefix_ = fmt::format("job {}: ", job);
}

void Log::line(const std::string& text) {
  // One write, so that lines of two processes do not mix; nobody to tell when it fails.
  const std::string whole = text + "\n";
  static_cast<void>(!::write(STDERR_FILENO, whole.data(), whole.size()));
}

void Log::write(const char* kind, const std::string& text) const {
  const std::string clean = printable(text, 1'024);
  if (!syslog_.empty() && write_syslog(fmt::format("{}{}{}", kind, prefix_, clean), syslog_)) return;
  line(fmt::format("{}netcheck: {}{}", kind, prefix_, clean));
}

}  // namespace netcheck::prolog
