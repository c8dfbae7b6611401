// What a check needs of the network around it: ports, credentials, names, interfaces, the other node. Pure:
// facts in, findings out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/inventory.h"
#include "contract/units.h"
#include "doctor/finding.h"
#include "policy/policy.h"

namespace netcheck::doctor {

struct PortFacts {
  std::uint16_t first = 0, last = 0;
  std::vector<std::uint16_t> taken;      ///< TCP ports that somebody listens on, in any order
  std::uint32_t least_unprivileged = 0;  ///< sysctl net.ipv4.ip_unprivileged_port_start
};
[[nodiscard]] Findings check_ports(const PortFacts& facts);
/// Ports in state LISTEN of /proc/net/tcp or tcp6.
[[nodiscard]] std::vector<std::uint16_t> listening_ports(std::string_view table);

struct CredentialFacts {
  std::string kind;            ///< "munge", "key"
  std::optional<Error> error;  ///< why one could not be sealed and opened again
  std::string as;              ///< the account that did
  Ns took{};
};
[[nodiscard]] Findings check_credential(const CredentialFacts& facts);

struct NameFacts {
  std::string node;     ///< in Slurm
  std::string address;  ///< by the site's template or map: what is looked up
  std::optional<Error> error;
  std::vector<std::string> numbers;  ///< what it resolves to
  bool here = false;                 ///< it is this node's own
  std::vector<std::string> own;      ///< addresses of this node's interfaces
};
[[nodiscard]] Findings check_name(const NameFacts& facts);

/// What was attempted where a name was asked for.
inline constexpr const char* kLookUp = "look up";
struct InterfaceFacts {
  std::vector<Nic> nics;
  std::vector<std::string> lanes;  ///< chosen, as UCX names them
  std::optional<Error> error;      ///< why none could be chosen
  std::string towards;             ///< the other node, where one was named
};
[[nodiscard]] Findings check_interfaces(const InterfaceFacts& facts);

/// What came of knocking at the peer's ports.
struct Reach {
  std::string address;
  std::uint16_t first = 0, last = 0;
  unsigned answered = 0;                   ///< somebody listens there
  unsigned refused = 0;                    ///< the node itself says that nobody does
  unsigned silent = 0;                     ///< nothing came back in time
  std::map<std::string, unsigned> failed;  ///< other errors, by their words
};
/// What came of the rendezvous itself.
struct Meeting {
  bool met = false;
  Ns took{};
  std::vector<std::string> said;  ///< by whom it was hindered, latest last
  std::optional<Error> error;     ///< why it could not be tried
};
struct PeerFacts {
  std::string node, self;
  std::optional<Reach> reach;  ///< nullopt: no address to knock at
  std::optional<Meeting> meeting;
  bool listened = false;  ///< this side waited for the other
  bool root = true;       ///< others cannot try the rendezvous
};
[[nodiscard]] Findings check_peer(const PeerFacts& facts);

}  // namespace netcheck::doctor
