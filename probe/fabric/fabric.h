// What moves bytes between ranks and times them: UCX, NCCL, the simulator. One interface for the check and
// for every benchmark. Never blocks; each of open, invite, join and run is answered by exactly one Event;
// hanging is a normal event, answered by abandon().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "contract/units.h"
#include "judge/trouble.h"
#include "measure/batch.h"

namespace netcheck::fabric {

/// What the fabric child is told when it opens. Chosen by the site's policy, never by the job's user.
struct Options {
  /// In lane order, as the module names them: "eth0", "mlx5_0:1"; a GPU by its PCI bus id "0000:1b:00.0"
  /// or by Slurm's number, "gpu:3".
  std::vector<std::string> devices;
  std::uint64_t max_bytes = 0;  ///< cap on one message buffer; 0 = the module's default
  /// The module's own, by its names for them. nccl: paths of libraries, NCCL_* (nccl/settings.h).
  std::map<std::string, std::string> settings;
};

struct Join {
  Team team;
  std::vector<Bytes> cards;  ///< by position in team.ranks' distinct nodes, in order of first appearance:
                             ///< Invited::card of each member node
  std::uint32_t self = 0;    ///< this node's index in the job's NodeList
};

struct Ready {
  std::string module, version;     ///< "ucx", "1.13.1"
  std::vector<std::string> lanes;  ///< one per Options::devices; of GPUs the PCI bus ids
  std::uint64_t max_bytes = 0;
  /// What must be alike on all nodes, or the first connection may hang: "key=value", each key once, at most
  /// kMaxTerms. nccl: "net=Socket" (its network plugin), "NCCL_IB_HCA=mlx5_0" (each setting in force).
  std::vector<std::string> terms;
};
/// NCCL knows some two hundred settings.
inline constexpr std::size_t kMaxTerms = 256;
/// A list of devices is the longest of them. Longer values are cut short by the module.
inline constexpr std::size_t kMaxTerm = 1'024;
struct Invited {
  std::uint32_t team = 0;
  Bytes card;
};  ///< ucx: worker addresses by lane; nccl: unique id at the first node, version, addresses
/// What forming one team was spent on, by the library's own names: nccl: "kernels", "bootstrap", "topo", …
using Spent = std::map<std::string, Ns>;
inline constexpr std::size_t kMaxSpent = 16;
struct Joined {
  std::uint32_t team = 0;
  Ns took{};
  std::string transport;
  Spent spent = {};
};
struct Measured {
  std::uint32_t batch = 0;
  std::string algorithm;
  std::vector<Sample> local;
};
/// The answer to open, invite, join or run that did not end well. `id`: the team or batch; 0 for open.
struct Failed {
  std::uint32_t id = 0;
  judge::Trouble trouble = judge::Trouble::refused;
  std::string detail;
  std::vector<Sample> partial;
};
using Event = std::variant<Ready, Invited, Joined, Measured, Failed>;
using Sink = std::function<void(Event)>;

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;
  virtual void open(Options options) = 0;                  // → Ready
  virtual void invite(Team team, std::uint32_t self) = 0;  // → Invited
  virtual void join(Join join) = 0;                        // → Joined; several teams may be joined at once
  virtual void run(Batch batch) = 0;  // → Measured; at most one batch per team at a time
  virtual void leave(std::uint32_t team) = 0;
  /// Kills what is under way: everything pending is answered by Failed, with `trouble` telling whether the
  /// child still gave signs of life (no_bytes) or not, and partial samples. open() starts afresh.
  virtual void abandon() noexcept = 0;
};

}  // namespace netcheck::fabric
