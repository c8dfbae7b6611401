// See patience.h.
#include "session/patience.h"

namespace netcheck::session {

using std::chrono::milliseconds;
using std::chrono::seconds;

Patience patience_with(const std::string& fabric) {
  // Contexts take up to a second for each GPU, and a node's eight not all at once; init took 0.7–3.8 s for
  // 8–16 ranks, and the first operation connects within it. The script counts what most such teams take.
  if (fabric == "nccl")
    return {.open = seconds(8),
            .invite = seconds(8),
            .join = seconds(12),
            .forming = milliseconds(1'500),
            .joining_tells = false};
  // A process start and a library's start-up, 0.1 s where idle, more on a node that is starting a job.
  // Endpoints to 8 nodes; connections come with the first batch.
  constexpr Ns kOpen = milliseconds(1'500);
  return {.open = kOpen, .invite = kOpen, .join = seconds(1), .forming = milliseconds(400)};
}

}  // namespace netcheck::session
