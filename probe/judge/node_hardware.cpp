// See node_hardware.h.
#include "judge/node_hardware.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/wire.h"

namespace netcheck::judge {
namespace {

constexpr std::size_t kMaxTraitsTold = 16;  ///< there are 14
constexpr std::size_t kMaxRails = 64;       ///< as lanes everywhere
constexpr std::size_t kMaxLaneName = 64, kMaxKey = 32, kMaxValue = 128, kMaxCulprit = 64, kMaxWhat = 200;
constexpr double kFastestRail = 1e15;  ///< as parse_rate

std::string lane_of(const NetworkPort& port) {
  return port.rdma_device.empty() ? port.interface : fmt::format("{}:{}", port.rdma_device, port.port);
}

/// "0000:1b:00.0" of whatever length and case its domain has: NVML writes "00000000:1B:00.0".
std::string plain_address(std::string_view address) {
  constexpr std::size_t kAddress = std::string_view("0000:1b:00.0").size();
  if (address.size() > kAddress && address.find_first_not_of('0') >= address.size() - kAddress)
    address.remove_prefix(address.size() - kAddress);
  std::string text(address);
  for (char& c : text)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// GPUs by index, in the order of the lanes; nullopt where some lane is none.
std::optional<std::vector<std::uint32_t>> gpus_of(const Machine& machine,
                                                  const std::vector<std::string>& lanes) {
  std::vector<std::uint32_t> gpus;
  for (const std::string& lane : lanes) {
    const auto found = std::ranges::find_if(machine.gpus, [&](const Gpu& gpu) {
      return plain_address(machine.pci[gpu.pci].address) == plain_address(lane);
    });
    if (found == machine.gpus.end()) return std::nullopt;
    gpus.push_back(static_cast<std::uint32_t>(found - machine.gpus.begin()));
  }
  return gpus;
}

/// Where lanes are GPUs: the ports that serve them, each with those it serves.
std::vector<RailSpeed> rails_for(const Machine& machine, const std::vector<std::uint32_t>& gpus,
                                 const std::vector<std::string>& lanes) {
  std::vector<RailSpeed> rails;
  for (const RailLimit& limit : limits_of(machine, gpus).rails) {
    if (rails.size() == kMaxRails) break;
    const NetworkPort& port = machine.ports[limit.port];
    RailSpeed rail{printable(lane_of(port), kMaxLaneName), !port.rdma_device.empty(), limit.nominal, {}};
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (std::ranges::find(limit.gpus, gpus[i]) != limit.gpus.end())
        rail.gpus.push_back(printable(lanes[i], kMaxLaneName));
    rails.push_back(std::move(rail));
  }
  return rails;
}

/// The rails of the check itself: from a card to the memory of its node, whatever GPUs there are.
std::vector<RailSpeed> rails_of(Machine machine, const std::vector<std::string>& lanes) {
  for (NetworkPort& port : machine.ports) {
    const bool opened = std::ranges::find(lanes, lane_of(port)) != lanes.end();
    const bool lost = port.why_not.empty() && port.state == PortState::down && !port.rdma_device.empty();
    port.why_not = opened || lost ? "" : "not measured";
  }
  std::vector<RailSpeed> rails;
  for (const RailLimit& rail : limits_of(machine, {}).rails) {
    const NetworkPort& port = machine.ports[rail.port];
    if (rails.size() < kMaxRails)
      rails.push_back({printable(lane_of(port), kMaxLaneName), !port.rdma_device.empty(), rail.nominal});
  }
  return rails;
}

/// A note is not told: nothing is broken.
std::vector<OwnFlaw> flaws_of(std::vector<Finding> findings, const std::vector<Finding>& contradicted) {
  findings.insert(findings.end(), contradicted.begin(), contradicted.end());
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::severity);
  std::vector<OwnFlaw> flaws;
  for (const Finding& finding : findings) {
    const auto flaw = parse_flaw(finding.code);
    if (!flaw || finding.severity == Severity::note || flaws.size() == kMaxOwnFlaws) continue;
    flaws.push_back({*flaw, printable(finding.culprit, kMaxCulprit), printable(finding.what, kMaxWhat)});
  }
  return flaws;
}

}  // namespace

NodeHardware hardware_of(const Machine& machine, const std::vector<std::string>& lanes,
                         const Expected& expected, const std::vector<Finding>& contradicted) {
  const Limits limits = limits_of(machine);
  const auto gpus = lanes.empty() ? std::nullopt : gpus_of(machine, lanes);
  NodeHardware hardware{traits_of(machine, limits).traits,
                        flaws_of(findings_of(machine, limits, expected), contradicted),
                        gpus ? rails_for(machine, *gpus, lanes) : rails_of(machine, lanes)};
  for (Trait& trait : hardware.traits)
    trait.value = printable(trait.value, kMaxValue);
  return hardware;
}

Json to_json(const NodeHardware& hardware) {
  Json traits = Json::array(), flaws = Json::array(), rails = Json::array();
  for (const Trait& trait : hardware.traits)
    traits.push_back({{"key", trait.key}, {"value", trait.value}, {"counted", trait.counted}});
  for (const OwnFlaw& own : hardware.flaws)
    flaws.push_back({{"code", name(own.flaw)}, {"culprit", own.culprit}, {"what", own.what}});
  for (const RailSpeed& rail : hardware.rails) {
    rails.push_back({{"lane", rail.lane}, {"rdma", rail.rdma}});
    if (rail.nominal) rails.back()["nominal_bps"] = rail.nominal->bits_per_second;
    if (!rail.gpus.empty()) rails.back()["gpus"] = rail.gpus;
  }
  return {{"traits", std::move(traits)}, {"findings", std::move(flaws)}, {"rails", std::move(rails)}};
}

NodeHardware hardware_from_json(const Json& value) {
  const Fields fields(value, "hardware");
  NodeHardware hardware;
  for (const Json& one : fields.array("traits", kMaxTraitsTold)) {
    const Fields trait(one, "trait");
    Trait read{trait.text("key", kMaxKey), printable(trait.text("value", kMaxValue), kMaxValue),
               trait.flag("counted")};
    if (!flaw_of(read.key)) throw Malformed{"hardware: no such trait: " + printable(read.key, kMaxKey)};
    // Twice the same would count twice against the others.
    if (std::ranges::find(hardware.traits, read.key, &Trait::key) != hardware.traits.end())
      throw Malformed{"hardware: a trait is told twice"};
    hardware.traits.push_back(std::move(read));
  }
  for (const Json& one : fields.array("findings", kMaxOwnFlaws)) {
    const Fields own(one, "finding");
    const auto flaw = parse_flaw(own.text("code", kMaxKey));
    if (!flaw || *flaw >= Flaw::odd_gpus) throw Malformed{"hardware: no such finding of a node's own"};
    hardware.flaws.push_back({*flaw, printable(own.text("culprit", kMaxCulprit), kMaxCulprit),
                              printable(own.text("what", kMaxWhat), kMaxWhat)});
  }
  for (const Json& one : fields.array("rails", kMaxRails)) {
    const Fields rail(one, "rail");
    RailSpeed read{printable(rail.text("lane", kMaxLaneName), kMaxLaneName), rail.flag("rdma"), {}, {}};
    if (rail.has("gpus"))
      for (const Json& gpu : rail.array("gpus", kMaxRails)) {
        if (!gpu.is_string() || gpu.get_ref<const std::string&>().size() > kMaxLaneName)
          throw Malformed{"hardware: a rail's GPU is no name"};
        read.gpus.push_back(printable(gpu.get<std::string>(), kMaxLaneName));
      }
    if (rail.has("nominal_bps")) {
      read.nominal = Rate{rail.finite("nominal_bps")};
      if (!(read.nominal->bits_per_second > 0) || read.nominal->bits_per_second > kFastestRail)
        throw Malformed{"hardware: a rail's rate is out of range"};
    }
    hardware.rails.push_back(std::move(read));
  }
  return hardware;
}

}  // namespace netcheck::judge
