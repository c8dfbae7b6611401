// The kernel's tables about its network, as procfs writes them: texts in, numbers out. Used by what finds out
// whether others hinder a measurement (backlog, meter, shortage). In the fabric child, as the probe user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netcheck::fabric {

/// A whole file; empty: it is not there.
[[nodiscard]] std::string text_of(const std::string& path);

// Pure; nullopt where the text does not say.
/// Of /proc/net/netstat, which have two lines of a section, names and values: the sum of those
/// `wanted` that are there. Documentation/networking/snmp_counter.rst in the kernel's tree has their meaning.
[[nodiscard]] std::optional<std::uint64_t> sum_in_section(std::string_view text, std::string_view section,
                                                          const std::vector<std::string_view>& wanted);
/// Of /proc/net/snmp6, a name and a value in each line: the sum of those `wanted` that are there.
[[nodiscard]] std::uint64_t sum_of_lines(std::string_view text, const std::vector<std::string_view>& wanted);
/// Of a table with a line of names above: the words below `name`, top to bottom.
[[nodiscard]] std::optional<std::vector<std::string>> words_below(std::string_view text,
                                                                  std::string_view name);

}  // namespace netcheck::fabric
