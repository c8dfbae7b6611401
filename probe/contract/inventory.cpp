// The inventory on the wire and in the record. What is unknown is left out, not written as a made-up value.
#include "contract/inventory.h"

#include "contract/wire.h"

namespace netcheck {

namespace {

constexpr std::size_t kMaxNics = 256;        ///< a node with every SR-IOV function visible stays below
constexpr std::size_t kMaxDeviceBytes = 64;  ///< IFNAMSIZ is 16, IB device names 64
constexpr std::size_t kMaxTextBytes = 255;   ///< node names, model names, reasons
constexpr std::uint32_t kMaxParts = 65'536;  ///< cores, sockets, GPUs of one node
constexpr std::uint32_t kMaxMtu = 1'048'576;

Json to_json(const Nic& nic) {
  Json value = {{"name", nic.name},       {"ucx_device", nic.ucx_device},
                {"address", nic.address}, {"rdma", nic.rdma},
                {"up", nic.up},           {"why_not", nic.why_not}};
  if (nic.speed) value["speed_bits_per_second"] = nic.speed->bits_per_second;
  if (nic.mtu) value["mtu"] = *nic.mtu;
  if (nic.numa && *nic.numa >= 0) value["numa"] = *nic.numa;  // sysfs says -1 for "none"
  return value;
}

Nic nic_from_json(const Json& value) {
  const Fields fields(value, "nic");
  Nic nic;
  nic.name = fields.text("name", kMaxDeviceBytes);
  nic.ucx_device = fields.text("ucx_device", kMaxDeviceBytes);
  nic.address = fields.text("address", kMaxDeviceBytes);
  nic.rdma = fields.flag("rdma");
  nic.up = fields.flag("up");
  nic.why_not = fields.text("why_not", kMaxTextBytes);
  if (fields.has("speed_bits_per_second")) {
    nic.speed = Rate{fields.finite("speed_bits_per_second")};
    if (nic.speed->bits_per_second < 0) throw Malformed{"nic: 'speed_bits_per_second' is negative"};
  }
  if (fields.has("mtu")) nic.mtu = fields.u32("mtu", kMaxMtu);
  if (fields.has("numa")) nic.numa = static_cast<std::int32_t>(fields.u32("numa", kMaxParts));
  return nic;
}

}  // namespace

Json to_json(const Inventory& inventory) {
  Json nics = Json::array();
  for (const Nic& nic : inventory.nics)
    nics.push_back(to_json(nic));
  return {
      {"node", inventory.node},       {"kernel", inventory.kernel},         {"version", inventory.version},
      {"sockets", inventory.sockets}, {"numa_nodes", inventory.numa_nodes}, {"cores", inventory.cores},
      {"gpus", inventory.gpus},       {"machine", inventory.machine},       {"nics", std::move(nics)}};
}

Inventory inventory_from_json(const Json& value) {
  const Fields fields(value, "inventory");
  Inventory inventory;
  inventory.node = fields.text("node", kMaxTextBytes);
  inventory.kernel = fields.text("kernel", kMaxTextBytes);
  inventory.version = fields.text("version", kMaxTextBytes);
  inventory.sockets = fields.u32("sockets", kMaxParts);
  inventory.numa_nodes = fields.u32("numa_nodes", kMaxParts);
  inventory.cores = fields.u32("cores", kMaxParts);
  inventory.gpus = fields.u32("gpus", kMaxParts);
  inventory.machine = fields.text("machine", kMaxTextBytes);
  for (const Json& nic : fields.array("nics", kMaxNics))
    inventory.nics.push_back(nic_from_json(nic));
  return inventory;
}

}  // namespace netcheck
