// The leader's listening socket, bound as root on one of the job's few ports, which lie below 1024 unless the
// site says otherwise: no local user can squat on them. Handed to the probe.
#pragma once

#include <cstdint>

#include "policy/policy.h"
#include "system/descriptor.h"

namespace netcheck::prolog {

/// On all addresses, IPv6 and IPv4. Error: none of the ports is free, each named.
[[nodiscard]] Result<system::Descriptor> listen_for(std::uint32_t job, const Policy& policy);

/// What the probe may lock and open: RDMA registration needs unlimited locked memory, the leader of N nodes N
/// sockets. No core files: they would hold the session key.
void set_limits(std::size_t nodes);

}  // namespace netcheck::prolog
