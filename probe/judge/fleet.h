// A job's nodes held against each other: whose hardware is not like the others'. Pure. A node sends its
// traits, some hundred bytes, not its whole machine; the leader finds the odd ones out.
//
// Nodes of one class of hardware are compared (Machine::product), since a job may have several by design.
// What a node does not know of itself it leaves out, and is not compared in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/flaw.h"
#include "contract/machine.h"
#include "measure/limits.h"

namespace netcheck::judge {

struct Trait {
  std::string key;       ///< "GPUs", "MTU"
  std::string value;     ///< "8", "9000"
  bool counted = false;  ///< "8 GPUs" rather than "MTU 9000"
  friend bool operator==(const Trait&, const Trait&) = default;
};

struct NodeTraits {
  std::string node;
  std::string product;
  std::vector<Trait> traits;
};

/// As a node sends it.
[[nodiscard]] Json to_json(const NodeTraits& node);
/// Throws Malformed (for read_frame).
[[nodiscard]] NodeTraits traits_from_json(const Json& value);

/// What must be alike on all nodes of a class. `limits`: of the job's GPUs.
[[nodiscard]] NodeTraits traits_of(const Machine& machine, const Limits& limits);

struct Oddity {
  std::string key;
  std::vector<std::uint32_t> nodes;  ///< indices; empty where no value is more than half of the nodes'
  std::string value, usual;          ///< theirs and the others'; empty where no value is
  std::string what;  ///< "n3 has 7 GPUs, the other 15 nodes 8", in one line whatever their number
  friend bool operator==(const Oddity&, const Oddity&) = default;
};

/// In the order of the traits. A trait that a node tells twice counts once.
[[nodiscard]] std::vector<Oddity> odd_ones(const std::vector<NodeTraits>& nodes);

/// What nodes that differ in this trait are said to have; nullopt: there is no such trait.
[[nodiscard]] std::optional<Flaw> flaw_of(std::string_view trait);

struct Difference {
  std::string what;        ///< "GPUs", "mlx5_3: rate"
  std::string one, other;  ///< "-": not there, or not known
  friend bool operator==(const Difference&, const Difference&) = default;
};

/// Two machines, down to each port and link: for people who look for the difference between a good and a bad
/// node.
[[nodiscard]] std::vector<Difference> differences(const Machine& one, const Machine& other);

}  // namespace netcheck::judge
