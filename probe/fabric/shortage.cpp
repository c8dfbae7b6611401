// See shortage.h.
#include "fabric/shortage.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "fabric/kernel_tables.h"

namespace netcheck::fabric {
namespace {

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::uint64_t number = 0;
  return std::ifstream(path) >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<bool> tcp_is_pressed(std::string_view protocols) {
  const auto names = words_below(protocols, "protocol"), press = words_below(protocols, "press");
  if (!names || !press) return std::nullopt;
  const auto tcp = std::ranges::find(*names, "TCP");
  if (tcp == names->end()) return std::nullopt;
  return (*press)[static_cast<std::size_t>(tcp - names->begin())] == "yes";
}

std::optional<std::uint64_t> times_full(std::string_view neighbours) {
  const auto fulls = words_below(neighbours, "table_fulls");
  if (!fulls) return std::nullopt;
  std::uint64_t sum = 0;
  for (const std::string& word : *fulls) {
    std::uint64_t value = 0;  // eight hexadecimal digits
    if (std::from_chars(word.data(), word.data() + word.size(), value, 16).ec != std::errc())
      return std::nullopt;
    sum += value;
  }
  return sum;
}

bool may_need_tcp(std::string_view transport) {
  bool rdma = false;
  while (!transport.empty()) {
    const auto way = transport.substr(0, transport.find(','));
    transport.remove_prefix(std::min(way.size() + 1, transport.size()));
    if (way.starts_with("tcp") || way.starts_with("Socket")) return true;
    for (const std::string_view name : {"rdma/", "IB/", "RoCE/"})  // the UCX module's, and NCCL's
      rdma = rdma || way.starts_with(name);
  }
  return !rdma;
}

Shortage::Shortage(std::string proc)
    : proc_(std::move(proc)), times_full_(times_full(text_of(proc_ + "/net/stat/arp_cache"))) {
  look();
}

void Shortage::look() {
  if (seen_ == Lack::nothing) seen_ = now();
}

Lack Shortage::now() const {
  if (tcp_is_pressed(text_of(proc_ + "/net/protocols")).value_or(false)) return Lack::tcp_memory;
  if (times_full_ &&
      times_full(text_of(proc_ + "/net/stat/arp_cache")).value_or(*times_full_) != *times_full_)
    return Lack::neighbours;
  const std::string netfilter = proc_ + "/sys/net/netfilter/";
  const auto most = number_in(netfilter + "nf_conntrack_max").value_or(0);  // 0: as many as there are
  if (most > 0 && number_in(netfilter + "nf_conntrack_count").value_or(0) >= most) return Lack::connections;
  return Lack::nothing;
}

}  // namespace netcheck::fabric
