// Which ports belong to a job. Both ends compute them alike from the job's id and the site's range.
#include <algorithm>

#include "peers/peers.h"

namespace netcheck::peers {

std::vector<std::uint16_t> ports_of(std::uint32_t job, std::uint16_t first, std::uint16_t last) {
  std::vector<std::uint16_t> ports;
  if (first == 0 || last < first) return ports;
  const std::uint64_t range = std::uint64_t{last} - first + 1U;
  const std::uint64_t start = std::uint64_t{job} * kPortsPerJob % range;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(kPortsPerJob, range); ++i) {
    ports.push_back(static_cast<std::uint16_t>(first + (start + i) % range));
  }
  return ports;
}

}  // namespace netcheck::peers
