// The same for programs.
#include <fmt/format.h>

#include "contract/wire.h"
#include "picture/picture.h"

namespace netcheck::picture {

namespace {

void put(Json& json, const char* key, const std::optional<Rate>& rate) {
  if (rate) json[key] = rate->bits_per_second;
}

Json matrix_as_json(const Machine& machine) {
  Json rows = Json::array();
  for (std::uint32_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    Json row{{"gpu", gpu}, {"address", machine.pci[machine.gpus[gpu].pci].address}};
    for (std::uint32_t other = 0; other < machine.gpus.size(); ++other) {
      const std::uint32_t links = other == gpu ? 0 : nvlinks_between(machine, gpu, other);
      row["gpus"].push_back(
          links > 0 ? fmt::format("NV{}", links)
                    : name_of(distance_between(machine, machine.gpus[gpu].pci, machine.gpus[other].pci)));
    }
    row["ports"] = Json::object();
    for (const NetworkPort& port : machine.ports)
      if (const auto pci = pci_of(machine, port))
        row["ports"][port.name] = name_of(distance_between(machine, machine.gpus[gpu].pci, *pci));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json limits_as_json(const Machine& machine, const Limits& limits) {
  Json rails = Json::array();
  for (const RailLimit& rail : limits.rails) {
    Json one{{"port", machine.ports[rail.port].name}, {"gpus", rail.gpus}};
    put(one, "nominal_bits_per_second", rail.nominal);
    put(one, "present_bits_per_second", rail.present);
    if (!rail.narrows.empty()) one["narrows"] = rail.narrows;
    rails.push_back(std::move(one));
  }
  Json json{{"rails", std::move(rails)}, {"gpus", limits.gpus}, {"derivation", limits.derivation}};
  put(json, "nominal_bits_per_second", limits.nominal);
  put(json, "present_bits_per_second", limits.present);
  put(json, "nvlink_bits_per_second", limits.nvlink);
  return json;
}

}  // namespace

Json as_json(const Machine& machine, const Limits& limits, const std::vector<judge::Finding>& findings) {
  Json list = Json::array();
  for (const judge::Finding& finding : findings)
    list.push_back({{"severity", judge::name_of(finding.severity)},
                    {"code", finding.code},
                    {"culprit", finding.culprit},
                    {"what", finding.what},
                    {"remedy", finding.remedy}});
  return {{"machine", to_json(machine)},
          {"matrix", matrix_as_json(machine)},
          {"limits", limits_as_json(machine, limits)},
          {"findings", std::move(list)}};
}

Json as_json(const std::vector<judge::Difference>& differences) {
  Json list = Json::array();
  for (const judge::Difference& difference : differences)
    list.push_back({{"what", difference.what}, {"one", difference.one}, {"other", difference.other}});
  return list;
}

}  // namespace netcheck::picture
