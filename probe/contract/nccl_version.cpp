#include "contract/nccl_version.h"

#include <fmt/format.h>

namespace netcheck {

std::string nccl_version(int code) {
  if (code < kFirstLongNcclCode) return fmt::format("{}.{}.{}", code / 1'000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

}  // namespace netcheck
