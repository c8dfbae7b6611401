#include "system/descriptor.h"

#include <unistd.h>

namespace netcheck::system {

void Descriptor::reset(int fd) noexcept {
  // Not retried on EINTR: on Linux the descriptor is gone either way, and a retry could close somebody
  // else's.
  if (fd_ >= 0) static_cast<void>(::close(fd_));
  fd_ = fd;
}

}  // namespace netcheck::system
