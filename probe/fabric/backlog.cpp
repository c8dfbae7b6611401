// See backlog.h.
#include "fabric/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "system/descriptor.h"

namespace netcheck::fabric {
namespace {

/// Names of Documentation/networking/snmp_counter.rst in the kernel's tree: the queue of those that are taken
/// next, and that of those whose connection is not complete, dropped or answered with a cookie.
constexpr std::array<std::string_view, 3> kCounters{"ListenOverflows", "TCPReqQFullDrop",
                                                    "TCPReqQFullDoCookies"};
constexpr std::string_view kSection = "TcpExt:";
constexpr std::size_t kMaxText = 64u << 10;  // it has 4 KiB today

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// The next line that begins with the section's name, without it; empty: there is none.
std::string_view take_section(std::string_view& text) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(kSection)) return line.substr(kSection.size());
  }
  return {};
}

std::optional<std::uint64_t> refused_now() {
  const system::Descriptor file(::open("/proc/net/netstat", O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text(kMaxText, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  return refused_for_want_of_room(std::string_view(text).substr(0, size));
}

}  // namespace

std::optional<std::uint64_t> refused_for_want_of_room(std::string_view netstat) {
  auto names = take_section(netstat), values = take_section(netstat);
  std::uint64_t sum = 0;
  bool any = false;
  while (true) {
    const auto name = take_word(names), value = take_word(values);
    if (name.empty() || value.empty()) break;
    if (std::find(kCounters.begin(), kCounters.end(), name) == kCounters.end()) continue;
    std::uint64_t count = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), count).ec != std::errc())
      return std::nullopt;
    sum += count;
    any = true;
  }
  return any ? std::optional(sum) : std::nullopt;
}

Backlog::Backlog() : before_(refused_now()) {}

bool Backlog::overflowed() const {
  const auto now = refused_now();
  return before_ && now && *now != *before_;
}

}  // namespace netcheck::fabric
