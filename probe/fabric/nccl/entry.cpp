// The one symbol that the fabric child looks for.
#include <fmt/format.h>

#include <cstring>
#include <exception>

#include "fabric/nccl/module.h"

namespace {

using netcheck::fabric::kModuleAbi;

void tell(char* why, std::size_t why_size, std::string_view text) noexcept {
  if (why_size == 0) return;
  const std::size_t length = std::min(text.size(), why_size - 1);
  std::memcpy(why, text.data(), length);
  why[length] = '\0';
}

}  // namespace

/// Opens no library yet: which ones, the options say.
extern "C" [[gnu::visibility("default")]] netcheck::fabric::Module* netcheck_fabric_module(
    int abi, const netcheck::fabric::Hosting* hosting, char* why, std::size_t why_size) noexcept {
  try {
    if (abi == kModuleAbi) return new netcheck::fabric::nccl::NcclModule(*hosting);
    tell(why, why_size, fmt::format("built for interface {}, this netcheck has {}", kModuleAbi, abi));
  } catch (const std::exception& error) {
    tell(why, why_size, error.what());
  } catch (...) {
    tell(why, why_size, "an exception of an unknown kind");
  }
  return nullptr;
}
