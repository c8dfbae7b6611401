// A machine in files and messages. What is unknown, empty or as usual is left out, so that a node of 8 GPUs
// and 8 rails stays within a few kilobytes.
#include "contract/machine.h"
#include "contract/wire.h"

namespace netcheck {

namespace {

constexpr std::uint32_t kMachineFormat = 1;
// A server of today has 16 GPUs, 20 ports and 300 PCI functions on the way to them; every SR-IOV function
// visible makes that 2,000.
constexpr std::size_t kMaxPci = 8'192, kMaxGpus = 256, kMaxPorts = 4'096, kMaxNvLinks = 65'536;
constexpr std::size_t kMaxNuma = 1'024, kMaxNotes = 64, kMaxMembers = 64, kMaxDrivers = 64,
                      kMaxLibraries = 16;
constexpr std::size_t kMaxWordBytes = 255, kMaxNoteBytes = 1'024;
constexpr std::uint32_t kMaxLanes = 1'024, kMaxCores = 65'536, kMaxPortMtu = 1'048'576;
constexpr std::uint32_t kMaxNumaIndex = 1'048'576;
constexpr std::uint32_t kMaxWatts = 100'000, kMaxReadRequest = 65'536;
constexpr double kMaxGigatransfers = 1'024;

constexpr const char* kKinds[] = {"host_bridge", "port", "gpu", "nic", "nvswitch", "other"};
constexpr const char* kFacings[] = {"unknown", "up", "down"};
constexpr const char* kStates[] = {"unknown", "up", "down"};
constexpr const char* kGids[] = {"unknown", "none", "version_1", "link_local", "usable"};

template <typename Enum, std::size_t N>
Enum named(const std::string& text, const char* const (&names)[N], const char* what) {
  for (std::size_t i = 0; i < N; ++i)
    if (text == names[i]) return static_cast<Enum>(i);
  throw Malformed{std::string("machine: unknown ") + what + " '" + printable(text, 40) + "'"};
}

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

void put(Json& json, const char* key, const std::optional<Rate>& rate) {
  if (rate) json[key] = rate->bits_per_second;
}

void put(Json& json, const char* key, const std::optional<PciSpeed>& speed) {
  if (speed) json[key] = {{"gts", speed->gigatransfers}, {"lanes", speed->lanes}};
}

std::string word(const Fields& fields, const char* key) {
  return fields.has(key) ? fields.text(key, kMaxWordBytes) : std::string();
}

std::optional<std::uint32_t> number(const Fields& fields, const char* key, std::uint32_t max) {
  if (!fields.has(key)) return std::nullopt;
  return fields.u32(key, max);
}

std::optional<std::int32_t> place(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  return static_cast<std::int32_t>(fields.u32(key, kMaxNumaIndex));
}

std::optional<bool> answer(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  return fields.flag(key);
}

std::optional<Rate> rate(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  const double bits = fields.finite(key);
  if (bits < 0 || bits > 1e15) throw Malformed{std::string("machine: '") + key + "' is out of range"};
  return Rate{bits};
}

std::optional<PciSpeed> speed(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  const Fields inner(fields.object(key), key);
  const double gigatransfers = inner.finite("gts");
  if (gigatransfers <= 0 || gigatransfers > kMaxGigatransfers)
    throw Malformed{std::string("machine: '") + key + "' is out of range"};
  return PciSpeed{gigatransfers, inner.u32("lanes", kMaxLanes)};
}

Json to_json(const PciDevice& device) {
  Json json{{"address", device.address}, {"kind", kKinds[static_cast<std::size_t>(device.kind)]}};
  if (device.facing != Facing::unknown) json["facing"] = kFacings[static_cast<std::size_t>(device.facing)];
  put(json, "parent", device.parent);
  put(json, "numa", device.numa);
  put(json, "socket", device.socket);
  put(json, "physical", device.physical);
  if (device.vendor != 0) json["ids"] = {device.vendor, device.device, device.subvendor, device.subdevice};
  put(json, "model", device.model);
  put(json, "driver", device.driver);
  put(json, "now", device.link.now);
  put(json, "most", device.link.most);
  put(json, "rate", device.link.rate);
  put(json, "redirects", device.redirects);
  put(json, "translated", device.translated);
  put(json, "relaxed_ordering", device.relaxed_ordering);
  put(json, "max_read_request", device.max_read_request);
  return json;
}

void read_ids(const Fields& fields, PciDevice& device) {
  if (!fields.has("ids")) return;
  const Json& ids = fields.array("ids", 4);
  std::uint16_t* const into[] = {&device.vendor, &device.device, &device.subvendor, &device.subdevice};
  if (ids.size() != std::size(into)) throw Malformed{"machine: 'ids' are four"};
  for (std::size_t i = 0; i < std::size(into); ++i) {
    if (!ids[i].is_number_unsigned() || ids[i].get<std::uint64_t>() > UINT16_MAX)
      throw Malformed{"machine: an id is out of range"};
    *into[i] = ids[i].get<std::uint16_t>();
  }
}

PciDevice pci_from_json(const Json& value, std::size_t index) {
  const Fields fields(value, "PCI device");
  PciDevice device;
  device.address = fields.text("address", kMaxWordBytes);
  device.kind = named<PciKind>(fields.text("kind", kMaxWordBytes), kKinds, "kind");
  if (fields.has("facing"))
    device.facing = named<Facing>(fields.text("facing", kMaxWordBytes), kFacings, "direction");
  if (fields.has("parent")) {
    if (index == 0) throw Malformed{"machine: the first PCI device has a parent"};
    device.parent = fields.u32("parent", static_cast<std::uint32_t>(index - 1));
  }
  device.numa = place(fields, "numa");
  device.socket = place(fields, "socket");
  device.physical = number(fields, "physical", kMaxPci);
  read_ids(fields, device);
  device.model = word(fields, "model");
  device.driver = word(fields, "driver");
  device.link = {speed(fields, "now"), speed(fields, "most"), rate(fields, "rate")};
  device.redirects = answer(fields, "redirects");
  device.translated = answer(fields, "translated");
  device.relaxed_ordering = answer(fields, "relaxed_ordering");
  device.max_read_request = number(fields, "max_read_request", kMaxReadRequest);
  return device;
}

void check_functions(const std::vector<PciDevice>& devices) {
  for (const PciDevice& device : devices)
    if (device.physical && (*device.physical >= devices.size() || devices[*device.physical].physical))
      throw Malformed{"machine: 'physical' points at no card"};
}

Json to_json(const Gpu& gpu) {
  Json json{{"pci", gpu.pci}};
  put(json, "model", gpu.model);
  put(json, "uuid", gpu.uuid);
  put(json, "known_to_driver", gpu.known_to_driver);
  put(json, "mig", gpu.mig);
  put(json, "slowed", gpu.slowed);
  put(json, "power_limit", gpu.power_limit);
  put(json, "power_default", gpu.power_default);
  return json;
}

std::uint32_t index_in(const Fields& fields, const char* key, std::size_t size) {
  if (size == 0) throw Malformed{std::string("machine: '") + key + "' points at nothing"};
  return fields.u32(key, static_cast<std::uint32_t>(size - 1));
}

Gpu gpu_from_json(const Json& value, const Machine& machine) {
  const Fields fields(value, "GPU");
  return {.pci = index_in(fields, "pci", machine.pci.size()),
          .model = word(fields, "model"),
          .uuid = word(fields, "uuid"),
          .known_to_driver = answer(fields, "known_to_driver"),
          .mig = answer(fields, "mig"),
          .slowed = word(fields, "slowed"),
          .power_limit = number(fields, "power_limit", kMaxWatts),
          .power_default = number(fields, "power_default", kMaxWatts)};
}

Json to_json(const NetworkPort& port) {
  Json json{{"name", port.name}};
  put(json, "interface", port.interface);
  put(json, "rdma_device", port.rdma_device);
  if (port.port != 1) json["port"] = port.port;
  put(json, "pci", port.pci);
  put(json, "link_layer", port.link_layer);
  if (port.state != PortState::unknown) json["state"] = kStates[static_cast<std::size_t>(port.state)];
  put(json, "state_text", port.state_text);
  put(json, "rate", port.rate);
  put(json, "rated", port.rated);
  put(json, "mtu", port.mtu);
  if (port.gids != Gids::unknown) json["gids"] = kGids[static_cast<std::size_t>(port.gids)];
  put(json, "firmware", port.firmware);
  if (port.virtual_function) json["virtual_function"] = true;
  put(json, "master", port.master);
  if (!port.members.empty()) json["members"] = port.members;
  put(json, "why_not", port.why_not);
  return json;
}

std::vector<std::string> words(const Fields& fields, const char* key, std::size_t max, std::size_t bytes) {
  std::vector<std::string> all;
  if (!fields.has(key)) return all;
  for (const Json& one : fields.array(key, max)) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > bytes)
      throw Malformed{std::string("machine: '") + key + "' holds something that is no short text"};
    all.push_back(one.get<std::string>());
  }
  return all;
}

NetworkPort port_from_json(const Json& value, const Machine& machine) {
  const Fields fields(value, "port");
  NetworkPort port;
  port.name = fields.text("name", kMaxWordBytes);
  port.interface = word(fields, "interface");
  port.rdma_device = word(fields, "rdma_device");
  port.port = number(fields, "port", UINT8_MAX).value_or(1);
  if (fields.has("pci")) port.pci = index_in(fields, "pci", machine.pci.size());
  port.link_layer = word(fields, "link_layer");
  if (fields.has("state"))
    port.state = named<PortState>(fields.text("state", kMaxWordBytes), kStates, "state");
  port.state_text = word(fields, "state_text");
  port.rate = rate(fields, "rate");
  port.rated = rate(fields, "rated");
  port.mtu = number(fields, "mtu", kMaxPortMtu);
  if (fields.has("gids")) port.gids = named<Gids>(fields.text("gids", kMaxWordBytes), kGids, "kind of GIDs");
  port.firmware = word(fields, "firmware");
  port.virtual_function = answer(fields, "virtual_function").value_or(false);
  port.master = word(fields, "master");
  port.members = words(fields, "members", kMaxMembers, kMaxWordBytes);
  port.why_not = word(fields, "why_not");
  return port;
}

Json to_json(const NvLink& link) {
  Json json{{"gpu", link.gpu}, {"count", link.count}};
  put(json, "peer", link.peer);
  put(json, "rate", link.rate);
  return json;
}

NvLink nvlink_from_json(const Json& value, const Machine& machine) {
  const Fields fields(value, "NVLink");
  NvLink link;
  link.gpu = index_in(fields, "gpu", machine.gpus.size());
  if (fields.has("peer")) link.peer = index_in(fields, "peer", machine.gpus.size());
  link.count = fields.u32("count", kMaxLanes);
  link.rate = rate(fields, "rate");
  return link;
}

Json to_json(const DriverVersion& driver) {
  return {{"driver", driver.driver}, {"version", driver.version}};
}

Json to_json(const LibraryVersion& library) {
  return {{"library", library.library}, {"version", library.version}};
}

Json to_json(const NumaNode& node) {
  Json json{{"index", node.index}, {"cores", node.cores}, {"memory_bytes", node.memory_bytes}};
  put(json, "socket", node.socket);
  return json;
}

NumaNode numa_from_json(const Json& value) {
  const Fields fields(value, "NUMA node");
  return {.index = static_cast<std::int32_t>(fields.u32("index", kMaxNumaIndex)),
          .socket = place(fields, "socket"),
          .cores = fields.u32("cores", kMaxCores),
          .memory_bytes = fields.count("memory_bytes", UINT64_MAX)};
}

template <typename T>
Json list(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values)
    json.push_back(to_json(value));
  return json;
}

}  // namespace

Json to_json(const Machine& machine) {
  Json json{{"netcheck_machine", kMachineFormat}, {"numa", list(machine.numa)},
            {"pci", list(machine.pci)},           {"gpus", list(machine.gpus)},
            {"ports", list(machine.ports)},       {"nvlinks", list(machine.nvlinks)}};
  put(json, "node", machine.node);
  put(json, "product", machine.product);
  put(json, "source", machine.source);
  put(json, "kernel", machine.kernel);
  if (!machine.drivers.empty()) json["drivers"] = list(machine.drivers);
  if (!machine.libraries.empty()) json["libraries"] = list(machine.libraries);
  if (machine.nvlinks_known) json["nvlinks_known"] = true;
  put(json, "memlock_bytes", machine.memlock_bytes);
  if (!machine.notes.empty()) json["notes"] = machine.notes;
  return json;
}

Machine machine_from_json(const Json& value) {
  const Fields fields(value, "machine");
  if (const auto format = fields.u32("netcheck_machine"); format != kMachineFormat)
    throw Malformed{"machine: it is of format " + std::to_string(format) +
                    ", and this netcheck reads format " + std::to_string(kMachineFormat)};
  Machine machine;
  machine.node = word(fields, "node");
  machine.product = word(fields, "product");
  machine.source = word(fields, "source");
  machine.kernel = word(fields, "kernel");
  if (fields.has("drivers"))
    for (const Json& one : fields.array("drivers", kMaxDrivers)) {
      const Fields driver(one, "driver");
      machine.drivers.push_back(
          {driver.text("driver", kMaxWordBytes), driver.text("version", kMaxWordBytes)});
    }
  if (fields.has("libraries"))
    for (const Json& one : fields.array("libraries", kMaxLibraries)) {
      const Fields library(one, "library");
      machine.libraries.push_back(
          {library.text("library", kMaxWordBytes), library.text("version", kMaxWordBytes)});
    }
  for (const Json& node : fields.array("numa", kMaxNuma))
    machine.numa.push_back(numa_from_json(node));
  for (const Json& device : fields.array("pci", kMaxPci))
    machine.pci.push_back(pci_from_json(device, machine.pci.size()));
  check_functions(machine.pci);
  for (const Json& gpu : fields.array("gpus", kMaxGpus))
    machine.gpus.push_back(gpu_from_json(gpu, machine));
  for (const Json& port : fields.array("ports", kMaxPorts))
    machine.ports.push_back(port_from_json(port, machine));
  for (const Json& link : fields.array("nvlinks", kMaxNvLinks))
    machine.nvlinks.push_back(nvlink_from_json(link, machine));
  machine.nvlinks_known = answer(fields, "nvlinks_known").value_or(false);
  if (fields.has("memlock_bytes")) machine.memlock_bytes = fields.count("memlock_bytes", UINT64_MAX);
  machine.notes = words(fields, "notes", kMaxNotes, kMaxNoteBytes);
  return machine;
}

}  // namespace netcheck
