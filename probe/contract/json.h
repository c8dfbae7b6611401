// The name of a JSON value, for headers that only mention one. Whoever makes or reads a value includes
// contract/wire.h, which costs every source that includes it two seconds to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace netcheck {

using Json = nlohmann::json;

}  // namespace netcheck
