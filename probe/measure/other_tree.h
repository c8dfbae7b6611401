// A machine seen through another description of the same one: in the virtual machines of clouds the PCI tree
// is flat, and a file of NCCL's (NCCL_TOPO_FILE) that the cloud ships is the only truth about what is near to
// what. Pure.
#pragma once

#include "contract/machine.h"

namespace netcheck {

/// `machine` with its GPUs and ports hung into the tree of `other`, by their PCI addresses; what `other` does
/// not know stays where it was. States, rates, names, and links as trained are those of `machine`; NVLinks of
/// `other` where `machine` knows of none.
[[nodiscard]] Machine with_tree_of(const Machine& machine, const Machine& other);

}  // namespace netcheck
