// `netcheck prolog`: the check of one node from the outside, as root. Policy, lock, listener, the probe with
// dropped privileges, its deadline, the verdict computed again, the record, the notice, and on the leader the
// annotation. Exits 0 whatever the network is like: the job runs. Entered from the SPANK plugin or from a
// site's Prolog script.
#pragma once

#include <optional>
#include <string>

namespace netcheck::prolog {

struct Invocation {
  std::string program;                 ///< absolute path of this program
  std::string config;                  ///< /etc/netcheck/netcheck.toml; a missing file means built-in values
  std::optional<std::string> request;  ///< the value of --netcheck; nullopt: not asked for
};

/// 0, or 2 when it was called without a job in its environment (by hand).
[[nodiscard]] int supervise(const Invocation& invocation);

}  // namespace netcheck::prolog
