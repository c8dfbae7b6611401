// Inside topology: a question to a library that may take long, hang or crash, put in a process of its own.
#pragma once

#include <functional>
#include <optional>

#include "contract/wire.h"

namespace netcheck::topology {

struct Apart {
  Bytes frame;        ///< the answer in CBOR (read_frame); empty: there is none
  bool late = false;  ///< none within the patience
};

/// `question` in a child of this process that has nothing of it but its memory and environment: no
/// descriptors, no output, no working directory. nullopt of it: no answer. At the end of `patience` the child
/// is killed, and not waited for longer than 50 ms: what hangs in the kernel cannot be reaped.
[[nodiscard]] Apart ask_apart(Ns patience, const std::function<std::optional<Json>()>& question);

}  // namespace netcheck::topology
