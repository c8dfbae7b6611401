// Names of flaws and weights. Pure.
#include "contract/flaw.h"

#include <algorithm>

#include "contract/wire.h"

namespace netcheck {

namespace {

constexpr std::array<std::string_view, kFlaws> kNames = {
    "port-down",     "port-slow",  "pcie-narrow",  "pcie-slow", "gpu-lost",  "gpu-far",      "nvlink-missing",
    "nvlink-uneven", "mtu-uneven", "memlock",      "iommu",     "acs",       "gpus-missing", "ports-missing",
    "gpu-capped",    "roce-gid",   "nccl-differs", "odd-gpus",  "odd-ports", "odd-rate",     "odd-mtu",
    "odd-pcie",      "odd-nvlink", "odd-driver",   "odd-cpu"};

}  // namespace

std::string_view name(Flaw flaw) {
  return kNames.at(static_cast<std::size_t>(flaw));
}

std::string key_of(Flaw flaw) {
  std::string key(name(flaw));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::optional<Flaw> parse_flaw(std::string_view text) {
  for (const Flaw flaw : kAllFlaws)
    if (name(flaw) == text) return flaw;
  return std::nullopt;
}

bool is_broken_part(Flaw flaw) {
  switch (flaw) {
    case Flaw::port_down:
    case Flaw::port_slow:
    case Flaw::pcie_narrow:
    case Flaw::pcie_slow:
    case Flaw::gpu_lost:
    case Flaw::nvlink_missing:
    case Flaw::nvlink_uneven:
    case Flaw::gpus_missing:
    case Flaw::ports_missing:
      return true;
    default:
      return false;
  }
}

std::string_view name(Weight weight) {
  switch (weight) {
    case Weight::ignore:
      return "ignore";
    case Weight::warn:
      return "warn";
    case Weight::fail:
      return "fail";
  }
  return "";
}

std::optional<Weight> parse_weight(std::string_view text) {
  for (const Weight weight : {Weight::ignore, Weight::warn, Weight::fail})
    if (name(weight) == text) return weight;
  return std::nullopt;
}

Json to_json(const Weights& weights) {
  Json value = Json::object();
  for (const Flaw flaw : kAllFlaws)
    if (const Weight weight = weights.of(flaw); weight != Weight::warn)
      value[std::string(name(flaw))] = name(weight);
  return value;
}

Weights weights_from_json(const Json& value) {
  constexpr std::size_t kMaxWord = 16;
  const Fields fields(value, "weights");
  Weights weights;
  for (const auto& entry : value.items()) {
    const auto flaw = parse_flaw(entry.key());
    const auto weight = parse_weight(fields.text(entry.key(), kMaxWord));
    if (!flaw || !weight) throw Malformed{"weights: no such finding or severity"};
    weights.of(*flaw) = *weight;
  }
  return weights;
}

}  // namespace netcheck
