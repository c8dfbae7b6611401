#include "nics.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

namespace netcheck::fakes {

namespace {

bool in_list(std::string_view name, const std::string& list, bool whole) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');)
    if (whole ? name == word : name.starts_with(word)) return true;
  return false;
}

bool is_wanted(std::string_view name, bool loopback) {
  const char* wanted = std::getenv("NCCL_SOCKET_IFNAME");
  const std::string list = wanted == nullptr ? "" : wanted;
  if (list.empty()) return !loopback && !name.starts_with("docker");
  if (list.front() == '^') return !in_list(name, list.substr(1), false);
  return list.front() == '=' ? in_list(name, list.substr(1), true) : in_list(name, list, false);
}

std::vector<Nic> find_nics() {
  std::vector<Nic> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) == 0) {
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0 ||
          !is_wanted(one->ifa_name, (one->ifa_flags & IFF_LOOPBACK) != 0) || found.size() == kMostNics)
        continue;
      sockaddr_in address{};
      std::memcpy(&address, one->ifa_addr, sizeof address);
      found.push_back({one->ifa_name, address.sin_addr});
    }
    ::freeifaddrs(all);
  }
  if (found.empty()) found.push_back({"lo", {htonl(INADDR_LOOPBACK)}});
  return found;
}

}  // namespace

const std::vector<Nic>& nics() {
  static const std::vector<Nic> found = find_nics();
  return found;
}

sockaddr_in at_address(in_addr address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr = address;
  return at;
}

}  // namespace netcheck::fakes
