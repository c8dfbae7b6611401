// The network cards that the stand-in for libnccl moves its bytes over: as many rails as there are
// interfaces. GPU i sends over the (i mod n)-th, as where every GPU has a NIC of its own.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

namespace netcheck::fakes {

struct Nic {
  std::string name;
  in_addr address;
};

/// The interfaces that NCCL_SOCKET_IFNAME means, as NCCL reads it ("eth0,eth1": prefixes, "=eth0": names,
/// "^docker": all others); without it all but loopback and docker's, and loopback where nothing else is. At
/// least one, at most kMostNics.
const std::vector<Nic>& nics();
inline constexpr std::size_t kMostNics = 8;

/// Address `address`, any port.
sockaddr_in at_address(in_addr address);

}  // namespace netcheck::fakes
