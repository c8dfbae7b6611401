// Where a file that the site gives about its machines (NCCL's topology) and the machine itself say different
// things. Pure. The file counts, since in a virtual machine it knows better; but one for another kind of
// machine sends every GPU's traffic the wrong way, and nobody sees why.
#pragma once

#include <vector>

#include "judge/hardware.h"

namespace netcheck::judge {

/// `machine` as it is, with its roles; `file` as it was read.
[[nodiscard]] std::vector<Finding> contradictions(const Machine& machine, const Machine& file);

}  // namespace netcheck::judge
