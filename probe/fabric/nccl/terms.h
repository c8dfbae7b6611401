// What of NCCL must be alike on all nodes, since ranks that differ in it wait for each other for ever: its
// settings, wherever they come from, and the network plugin that it will load. Used when the module opens, in
// a thread of its own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"

namespace netcheck::fabric::nccl {

/// Read by NCCL itself, whatever its environment.
inline constexpr const char* kNcclConf = "/etc/nccl.conf";

/// "net=libnccl-net.so" ("net=none" where NCCL has its own networks alone) and "NCCL_IB_HCA=mlx5_0" for each
/// setting in force, as fabric::Ready::terms has them. `environment`: NCCL_* as set for this process. Loads
/// the plugin, as NCCL will. Error: a file of settings has one that is the module's own.
[[nodiscard]] Result<std::vector<std::string>> terms_of(const std::map<std::string, std::string>& environment,
                                                        const std::string& file = kNcclConf);

// Pure:
/// NCCL's settings in such a file, as NCCL reads it: "NAME=VALUE" lines without any space taken off, the
/// first of a name counts, "#" begins a comment at the beginning of a line alone.
[[nodiscard]] std::map<std::string, std::string> settings_in(std::string_view file);
/// The names under which NCCL looks for the plugin that NCCL_NET_PLUGIN (`wanted`, "" where it is not set)
/// means, the first that loads being the one; none for "none".
[[nodiscard]] std::vector<std::string> plugin_names(std::string_view wanted);

}  // namespace netcheck::fabric::nccl
