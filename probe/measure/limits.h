// What a machine's hardware could reach: per rail, per node, per operation and number of ranks, each with its
// derivation in words. Pure. The nominal limit is what measurements are judged by; the present one says what
// is left of it. A link that has trained down never lowers its own bar.
//
// Upper bounds: line rates less line codes. Packet headers, the memory bus and the link between sockets,
// whose speed no source tells, are not taken off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/machine.h"
#include "measure/batch.h"
#include "measure/locality.h"

namespace netcheck {

/// One fabric port that serves the job: a rail.
struct RailLimit {
  std::uint32_t port = 0;           ///< index into Machine::ports
  std::vector<std::uint32_t> gpus;  ///< whose nearest it is; empty on nodes without GPUs
  /// With all rails busy at once; nullopt: unknown. Nominal: rated speeds; present: as trained, 0 of a port
  /// that is down.
  std::optional<Rate> nominal, present;
  std::optional<Rate> rated;  ///< the port itself
  /// Of the nominal limit, where something on the way is less than the port: "GPU 3's path narrows at
  /// 0000:5d:00.0 to Gen4 x8 = 126 Gb/s". Empty: the port is the limit.
  std::string narrows;
};

struct Limits {
  std::vector<RailLimit> rails;
  std::vector<std::uint32_t> gpus;       ///< the job's
  std::optional<Rate> nominal, present;  ///< all rails together
  std::string derivation;                ///< "8 rails × 400 Gb/s = 3200 Gb/s"; or why it is unknown
  /// Between GPUs of the node, the slowest one's NVLinks, one way; nullopt: unknown, or they do not join all.
  std::optional<Rate> nvlink;
  /// Without NVLinks: the slowest way between two neighbouring GPUs over PCIe.
  std::optional<Rate> pcie_between;
};

/// What a port is held to: the speed that a source says it is rated for; where none does, what most ports of
/// its kind have at present, the faster one where two are as many. Also that where the node has several of a
/// kind and none of them runs at its rating: then cables and switches are of another speed.
[[nodiscard]] std::optional<Rate> rated_speed(const Machine& machine, const NetworkPort& port);

/// Of the job's GPUs (indices, all that are in `machine`; none: the node's rails as such) and the ports that
/// serve them.
[[nodiscard]] Limits limits_of(const Machine& machine, const std::vector<std::uint32_t>& gpus);
/// Of all GPUs.
[[nodiscard]] Limits limits_of(const Machine& machine);

struct OperationLimit {
  std::optional<Rate>
      bus;          ///< bus bandwidth, nccl-tests' convention (measure/collective.h); nullopt: unknown
  std::string why;  ///< what it comes from, in a few words
};

/// What `op` could reach over `nodes` machines like this one, one rank on each of the job's GPUs (without
/// GPUs: one on each rail, every rail a team of its own). Of ring algorithms; NCCL's Tree and NVLS can exceed
/// it.
[[nodiscard]] OperationLimit limit_of(const Limits& limits, Op op, std::uint32_t nodes);

}  // namespace netcheck
