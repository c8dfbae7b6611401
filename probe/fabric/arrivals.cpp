// See arrivals.h.
#include "fabric/arrivals.h"

#include <algorithm>
#include <sstream>

#include "fabric/kernel_tables.h"

namespace netcheck::fabric {
namespace {

/// What a packet has beside its payload, at least: Ethernet, IPv4, UDP.
constexpr std::uint64_t kLeastHeaders = 14 + 20 + 8;

/// By how congestion is marked each packet is one of these, and segments put together are as many as they
/// were (ip_rcv_core and ip6_rcv_core in the kernel's tree).
std::optional<std::uint64_t> packets_of_ip(const std::string& proc) {
  const auto four = sum_in_section(text_of(proc + "/net/netstat"),
                                   "IpExt:", {"InNoECTPkts", "InECT1Pkts", "InECT0Pkts", "InCEPkts"});
  if (!four) return std::nullopt;
  const auto six = sum_of_lines(text_of(proc + "/net/snmp6"),
                                {"Ip6InNoECTPkts", "Ip6InECT1Pkts", "Ip6InECT0Pkts", "Ip6InCEPkts"});
  return *four + six;
}

}  // namespace

std::optional<Arrivals> arrivals(const std::string& proc) {
  const auto packets = packets_of_ip(proc);
  if (!packets) return std::nullopt;
  Arrivals sum{.on_wire = *packets};
  // "  eth0: 5484390968 15389003 …": bytes and packets received, after two lines of names.
  std::istringstream lines(text_of(proc + "/net/dev"));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::uint64_t bytes = 0, count = 0;
    if (!(numbers >> bytes >> count)) return std::nullopt;
    sum.counted += count;
  }
  return sum;
}

std::uint64_t uncounted_between(const std::optional<Arrivals>& before, const std::optional<Arrivals>& after) {
  if (!before || !after) return 0;
  // What falls was reset, or a device is gone.
  if (after->on_wire < before->on_wire || after->counted < before->counted) return 0;
  const std::uint64_t on_wire = after->on_wire - before->on_wire, counted = after->counted - before->counted;
  return on_wire <= counted ? 0 : kLeastHeaders * (on_wire - counted);
}

}  // namespace netcheck::fabric
