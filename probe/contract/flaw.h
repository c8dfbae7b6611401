// What can be wrong with a node's hardware, by kind, and what a site makes of each. Pure. The names are keys
// of netcheck.toml, words in the line, and codes in records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "contract/json.h"

namespace netcheck {

/// A node's own are what it sees of itself (judge/hardware.h); odd ones are where nodes of a class differ
/// (judge/fleet.h).
enum class Flaw : std::uint8_t {
  port_down,
  port_slow,
  pcie_narrow,
  pcie_slow,
  gpu_lost,
  gpu_far,
  nvlink_missing,
  nvlink_uneven,
  mtu_uneven,
  memlock,
  iommu,
  acs,
  gpus_missing,
  ports_missing,
  gpu_capped,
  roce_gid,
  nccl_differs,
  odd_gpus,
  odd_ports,
  odd_rate,
  odd_mtu,
  odd_pcie,
  odd_nvlink,
  odd_driver,
  odd_cpu,
};
inline constexpr std::size_t kFlaws = 25;
inline constexpr std::array<Flaw, kFlaws> kAllFlaws = {
    Flaw::port_down,    Flaw::port_slow,     Flaw::pcie_narrow,    Flaw::pcie_slow,
    Flaw::gpu_lost,     Flaw::gpu_far,       Flaw::nvlink_missing, Flaw::nvlink_uneven,
    Flaw::mtu_uneven,   Flaw::memlock,       Flaw::iommu,          Flaw::acs,
    Flaw::gpus_missing, Flaw::ports_missing, Flaw::gpu_capped,     Flaw::roce_gid,
    Flaw::nccl_differs, Flaw::odd_gpus,      Flaw::odd_ports,      Flaw::odd_rate,
    Flaw::odd_mtu,      Flaw::odd_pcie,      Flaw::odd_nvlink,     Flaw::odd_driver,
    Flaw::odd_cpu};

/// "port-down": as `netcheck topo` and the line have it.
[[nodiscard]] std::string_view name(Flaw flaw);
/// "port_down": its key in netcheck.toml.
[[nodiscard]] std::string key_of(Flaw flaw);
[[nodiscard]] std::optional<Flaw> parse_flaw(std::string_view text);

/// Something of this very node is not what it was built with: its own word, and no setting of the node's.
/// Only such a node may be drained for it.
[[nodiscard]] bool is_broken_part(Flaw flaw);

enum class Weight : std::uint8_t { ignore, warn, fail };
[[nodiscard]] std::string_view name(Weight weight);  ///< "ignore", "warn", "fail"
[[nodiscard]] std::optional<Weight> parse_weight(std::string_view text);

/// What a site makes of each.
class Weights {
 public:
  Weights() { of_.fill(Weight::warn); }
  [[nodiscard]] Weight of(Flaw flaw) const { return of_.at(static_cast<std::size_t>(flaw)); }
  [[nodiscard]] Weight& of(Flaw flaw) { return of_.at(static_cast<std::size_t>(flaw)); }
  friend bool operator==(const Weights&, const Weights&) = default;

 private:
  std::array<Weight, kFlaws> of_{};
};

/// {"port-down": "fail", …}: those that are not `warn`.
[[nodiscard]] Json to_json(const Weights& weights);
/// Throws Malformed.
[[nodiscard]] Weights weights_from_json(const Json& value);

}  // namespace netcheck
