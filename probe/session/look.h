// A look at this node's hardware, in a process of its own: hwloc and the kernel's files may hang or crash on
// a machine that is strange or half dead, and the check must go on without. As the probe user.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "contract/machine.h"
#include "judge/hardware.h"
#include "policy/policy.h"
#include "system/descriptor.h"
#include "system/loop.h"
#include "system/process.h"

namespace netcheck::session {

struct Seen {
  Machine machine;                           ///< its fabric ports told by the policy's devices
  std::vector<judge::Finding> contradicted;  ///< where the site's description of it says other things
};

class Look {
 public:
  /// Starts it. `told` is called once, from the loop: with the machine, what is near to what as the policy's
  /// nccl_topology has it, or with why there is none; at `deadline` at the latest.
  Look(system::Loop& loop, const std::string& program, Policy policy, Time deadline,
       std::function<void(Result<Seen>)> told);
  ~Look();
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

 private:
  void take();
  void end(Result<Seen> seen);

  system::Loop& loop_;
  Policy policy_;
  std::function<void(Result<Seen>)> told_;
  system::Process process_;
  system::Descriptor pipe_;
  Bytes text_;
  system::Loop::Timer timer_ = 0;
};

/// `netcheck look`: the process. Writes the machine, and that of NCCL's file where there is one, to
/// descriptor `pipe` and ends; nothing, where the machine cannot be read. `nvml`: the library; empty: the
/// usual one.
[[nodiscard]] int look(int pipe, const std::string& nccl_topology, const std::string& nvml);

}  // namespace netcheck::session
