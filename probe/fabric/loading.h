// Opening a fabric module. Only the fabric child does this; as the probe user.
#pragma once

#include <memory>
#include <string>

#include "fabric/module.h"

namespace netcheck::fabric {

/// Opens netcheck-fabric-NAME.so in `directory` and starts it. Refused: a name that is not [a-z0-9_]{1,32}, a
/// relative directory, a directory or file that others than its owner may write or whose owner is neither
/// root nor this process's user, a module of another build. The library is never closed again: fabrics leave
/// threads behind.
[[nodiscard]] Result<std::unique_ptr<Module>> load_module(const std::string& name,
                                                          const std::string& directory,
                                                          const Hosting& hosting);

}  // namespace netcheck::fabric
