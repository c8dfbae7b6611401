#include "every_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "system/descriptor.h"

namespace netcheck::plugin {

namespace {

constexpr std::size_t kMaxConfigBytes = 1U << 20;  ///< what `netcheck prolog` reads at most

}  // namespace

bool mentions_always(std::string_view toml) {
  while (!toml.empty()) {
    const std::string_view line = toml.substr(0, toml.find('\n'));
    toml.remove_prefix(std::min(toml.size(), line.size() + 1));
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] == '#') continue;
    if (line.find("always") != std::string_view::npos) return true;
  }
  return false;
}

bool may_want_every_job(const std::string& config) {
  const system::Descriptor file(::open(config.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
    return false;
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kMaxConfigBytes), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t part = ::read(file.get(), text.data() + got, text.size() - got);
    if (part <= 0) break;
    got += static_cast<std::size_t>(part);
  }
  text.resize(got);
  return mentions_always(text);
}

}  // namespace netcheck::plugin
