// The machines of tests/fixtures/topology, to be changed by a test as it likes, and their parts by name.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "contract/machine.h"
#include "contract/wire.h"

namespace netcheck::fixture {

inline std::string folder() {
  return (std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures" / "topology").string();
}

inline std::string text_of(const std::string& file) {
  std::ifstream in(folder() + "/" + file);
  EXPECT_TRUE(in.good()) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// As it is recorded: which ports are fabric ports is not told yet.
inline Machine recorded(const std::string& name) {
  return machine_from_json(Json::parse(text_of(name + ".json")));
}

/// With the roles that topology gives (topology_roles_test.cpp), so that other rooms need not know its rules.
inline Machine machine(const std::string& name) {
  Machine machine = recorded(name);
  for (NetworkPort& port : machine.ports) {
    const bool fabric = port.name.rfind("mlx5_", 0) == 0 && port.name != "mlx5_8";
    if (!fabric && port.name != "eth0") port.why_not = "no fabric port";
  }
  return machine;
}

inline NetworkPort& port(Machine& machine, const std::string& name) {
  for (NetworkPort& port : machine.ports)
    if (port.name == name) return port;
  ADD_FAILURE() << "no port " << name;
  return machine.ports.front();
}

inline PciDevice& device(Machine& machine, const std::string& address) {
  for (PciDevice& device : machine.pci)
    if (device.address == address) return device;
  ADD_FAILURE() << "no device " << address;
  return machine.pci.front();
}

inline std::uint32_t index_of(const Machine& machine, const std::string& address) {
  for (std::uint32_t i = 0; i < machine.pci.size(); ++i)
    if (machine.pci[i].address == address) return i;
  ADD_FAILURE() << "no device " << address;
  return 0;
}

/// A card's functions for virtual machines, each with an RDMA port that is up: mlx5_100, mlx5_101 …
inline void add_functions(Machine& machine, const std::string& card, std::uint32_t count) {
  const std::uint32_t physical = index_of(machine, card);
  NetworkPort port;
  for (const NetworkPort& one : machine.ports)
    if (one.pci == physical) port = one;
  for (std::uint32_t i = 0; i < count; ++i) {
    PciDevice function = machine.pci[physical];
    // Eight functions to a slot, after the card's own (Alternative Routing-ID Interpretation).
    function.address = fmt::format("{}{:02x}.{}", card.substr(0, 8), 1 + (i / 8), i % 8);
    function.physical = physical;
    function.link = {};
    machine.pci.push_back(function);
    port.pci = static_cast<std::uint32_t>(machine.pci.size() - 1);
    port.name = port.rdma_device = fmt::format("mlx5_{}", 100 + i);
    port.interface = fmt::format("ib{}", 100 + i);
    port.virtual_function = true;
    machine.ports.push_back(port);
  }
}

/// Both ends of a link see how it has trained.
inline void train(Machine& machine, const std::string& address, PciSpeed speed) {
  PciDevice& below = device(machine, address);
  below.link.now = speed;
  PciDevice& above = machine.pci[*below.parent];
  if (above.kind == PciKind::port) above.link.now = speed;
}

inline constexpr PciSpeed kGen4x8{16, 8}, kGen5x8{32, 8}, kGen1x16{2.5, 16}, kGen3x16{8, 16};

}  // namespace netcheck::fixture
