// What a fabric module (netcheck-fabric-NAME.so) exports to the fabric child that hosts it. Only the child
// ever loads one. Single-threaded: the host sleeps on event_descriptor() and calls progress().
#pragma once

#include <functional>
#include <memory>

#include "fabric/fabric.h"
#include "fabric/pulse.h"
#include "fabric/source.h"

namespace netcheck::fabric {

class Module : public Fabric {
 public:
  /// Moves things on; delivers events. True when anything happened (call again before sleeping).
  virtual bool progress() = 0;
  /// Prepares to sleep: after true, the descriptor becomes readable when there is work. False: call
  /// progress() first.
  virtual bool arm() = 0;
  /// −1 before open(). An epoll descriptor over all lanes is fine.
  [[nodiscard]] virtual int event_descriptor() const = 0;
  /// Of a running batch: samples so far, for Failed::partial. Called by the host every kSignOfLife.
  [[nodiscard]] virtual std::vector<std::pair<std::uint32_t, Sample>> partial()
      const = 0;  ///< (batch id, sample)
};

/// What the host has for its module. Sink and pulse outlive it.
struct Hosting {
  Sink* sink = nullptr;
  Pulse* pulse = nullptr;
  /// Lets in who comes from there; nobody else may connect to this process (door.h).
  std::function<void(const std::vector<Address>&)> admit;
  /// From now on a stranger waits so long at the door to be admitted.
  std::function<void(Ns)> be_patient;
  /// Instead of where they come from, connections are known by the key that they begin with (greeting.h):
  /// this process's own is returned, and the others' are admitted. Before any library listens.
  std::function<Key()> begin_with_key;
  std::function<void(const std::vector<Key>&)> admit_keys;
};

/// Bumped whenever fabric.h, module.h or batch.h change: a module of another build is refused by name.
inline constexpr int kModuleAbi = 9;

extern "C" {
/// The one symbol with default visibility. Returns nullptr and fills `why` on failure. Never throws.
using ModuleEntry = Module* (*)(int abi, const Hosting* hosting, char* why, std::size_t why_size) noexcept;
}
inline constexpr const char* kModuleEntry = "netcheck_fabric_module";

}  // namespace netcheck::fabric
