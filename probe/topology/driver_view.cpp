// The driver's view of the GPUs: asked for in a process that may hang or crash, and put into the machine.
#include <algorithm>
#include <filesystem>

#include "contract/wire.h"
#include "measure/locality.h"
#include "topology/apart.h"
#include "topology/machine.h"
#include "topology/nvml.h"
#include "topology/tree.h"

namespace netcheck::topology {
namespace {

constexpr std::size_t kMostGpusTold = 256, kMostEnds = 64, kMostWord = 255;

/// "550.54.15" is of the driver that /sys may not tell the version of.
void know_version(Machine& machine, const std::string& version) {
  if (version.empty()) return;
  if (std::ranges::find(machine.drivers, "nvidia", &DriverVersion::driver) == machine.drivers.end())
    machine.drivers.push_back({"nvidia", version});
}

void note_unseen(Machine& machine, const DriverView& view) {
  const std::size_t here = std::max(machine.gpus.size(), view.gpus.size());
  const bool told = std::ranges::any_of(
      machine.notes, [](const std::string& note) { return note.rfind("the driver knows", 0) == 0; });
  if (view.count <= here || told) return;
  const std::size_t unseen = view.count - here;
  machine.notes.push_back("the driver knows " + std::to_string(unseen) +
                          (unseen == 1 ? " GPU that is" : " GPUs that are") + " not to be seen on the bus");
}

std::optional<std::uint32_t> gpu_at(const Machine& machine, const std::string& address) {
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    if (machine.pci[machine.gpus[i].pci].address == address) return i;
  return std::nullopt;
}

void take_word(Gpu& gpu, const DriverGpu& told) {
  gpu.known_to_driver = !told.lost;
  if (told.lost) return;
  if (!told.model.empty()) gpu.model = told.model;
  if (!told.uuid.empty()) gpu.uuid = told.uuid;
  gpu.mig = told.mig;
  gpu.slowed = told.slowed;
  gpu.power_limit = told.power_limit;
  gpu.power_default = told.power_default;
}

/// Links to GPUs that this machine does not show (some of a host's in a virtual machine) are of no use to it.
void take_links(Machine& machine, const DriverView& view) {
  const auto reached =
      std::ranges::count_if(view.gpus, [](const DriverGpu& gpu) { return !gpu.lost && gpu.links_known; });
  if (machine.nvlinks_known || reached == 0) return;
  for (const DriverGpu& told : view.gpus)
    if (!told.lost && !told.links_known) return;  // not of all: then uneven numbers would mean nothing
  machine.nvlinks_known = true;
  for (const DriverGpu& told : view.gpus) {
    const auto gpu = gpu_at(machine, told.address);
    if (!gpu) continue;
    const Rate one = nvlink_rate(machine.pci[machine.gpus[*gpu].pci].device);
    for (const DriverLink& link : told.links) {
      const auto peer = gpu_at(machine, link.peer);
      if (!link.peer.empty() && !peer) continue;
      machine.nvlinks.push_back({*gpu, peer, link.count, Rate{one.bits_per_second * link.count}});
    }
  }
}

}  // namespace

void add_driver_view(Machine& machine, const DriverView& view) {
  know_version(machine, view.version);
  note_unseen(machine, view);
  for (const DriverGpu& told : view.gpus)
    if (const auto gpu = gpu_at(machine, told.address)) take_word(machine.gpus[*gpu], told);
  take_links(machine, view);
}

void ask_driver(Machine& machine, Ns patience, const std::string& library) {
  std::vector<std::string> addresses;
  for (const Gpu& gpu : machine.gpus)
    if (machine.pci[gpu.pci].vendor == kNvidia) addresses.push_back(machine.pci[gpu.pci].address);
  std::error_code error;
  if (addresses.empty() && !std::filesystem::exists("/proc/driver/nvidia/version", error)) return;
  const Apart said = ask_apart(patience, [&]() -> std::optional<Json> {
    const auto view = look_through_nvml(library.empty() ? "libnvidia-ml.so.1" : library, addresses);
    return view ? std::optional(to_json(*view)) : std::nullopt;
  });
  if (said.late)
    machine.notes.emplace_back("the GPUs' driver did not answer in time: what it alone knows is not known");
  if (said.frame.empty()) return;
  if (const auto view = read_frame(said.frame, "what the GPUs' driver says", driver_view_from_json))
    add_driver_view(machine, *view);
}

Json to_json(const DriverView& view) {
  Json gpus = Json::array();
  for (const DriverGpu& gpu : view.gpus) {
    Json one{{"address", gpu.address}, {"lost", gpu.lost},     {"model", gpu.model},
             {"uuid", gpu.uuid},       {"slowed", gpu.slowed}, {"links_known", gpu.links_known}};
    if (gpu.mig) one["mig"] = *gpu.mig;
    if (gpu.power_limit) one["power_limit"] = *gpu.power_limit;
    if (gpu.power_default) one["power_default"] = *gpu.power_default;
    one["links"] = Json::array();
    for (const DriverLink& link : gpu.links)
      one["links"].push_back({{"peer", link.peer}, {"count", link.count}});
    gpus.push_back(std::move(one));
  }
  return {{"version", view.version}, {"count", view.count}, {"gpus", std::move(gpus)}};
}

DriverView driver_view_from_json(const Json& value) {
  const Fields fields(value, "driver's view");
  DriverView view{fields.text("version", kMostWord), fields.u32("count"), {}};
  for (const Json& one : fields.array("gpus", kMostGpusTold)) {
    const Fields gpu(one, "GPU");
    DriverGpu told{.address = gpu.text("address", kMostWord), .lost = gpu.flag("lost")};
    told.model = gpu.text("model", kMostWord);
    told.uuid = gpu.text("uuid", kMostWord);
    told.slowed = gpu.text("slowed", kMostWord);
    if (gpu.has("mig")) told.mig = gpu.flag("mig");
    if (gpu.has("power_limit")) told.power_limit = gpu.u32("power_limit");
    if (gpu.has("power_default")) told.power_default = gpu.u32("power_default");
    told.links_known = gpu.flag("links_known");
    for (const Json& end : gpu.array("links", kMostEnds)) {
      const Fields link(end, "NVLink");
      told.links.push_back({link.text("peer", kMostWord), link.u32("count", kMostEnds)});
    }
    view.gpus.push_back(std::move(told));
  }
  return view;
}

}  // namespace netcheck::topology
