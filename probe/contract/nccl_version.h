// NCCL's version as people write it. Used by all who ask a libnccl for it.
#pragma once

#include <string>

namespace netcheck {

/// The first code of the form X·10000 + Y·100 + Z, that of 2.9; before it X·1000 + Y·100 + Z (nccl.h).
inline constexpr int kFirstLongNcclCode = 20'900;

/// "2.18.5" of the code that ncclGetVersion gives.
[[nodiscard]] std::string nccl_version(int code);

}  // namespace netcheck
