// The driver's view of the GPUs: asked for in a process that may hang or crash, and put into the machine.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "contract/wire.h"
#include "measure/locality.h"
#include "system/descriptor.h"
#include "system/loop.h"
#include "topology/machine.h"
#include "topology/nvml.h"
#include "topology/tree.h"

namespace netcheck::topology {
namespace {

constexpr std::uint16_t kNvidiaCards = 0x10de;
constexpr std::size_t kMostViewBytes = 1U << 20;  // of 16 GPUs 6 KiB
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

/// To the end of what the process says; nothing where that does not come in time.
Bytes read_until(int pipe, Time deadline) {
  Bytes text;
  std::array<std::byte, 16384> part;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  while (text.size() <= kMostViewBytes) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system::now());
    if (left.count() <= 0) return {};
    pollfd ready{pipe, POLLIN, 0};
    const int events = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) return {};
    const ssize_t got = ::read(pipe, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) return text;
    text.insert(text.end(), part.begin(), part.begin() + got);
  }
  return {};
}

/// Nothing but the pipe, as descriptor 3: whoever waits for the end of another must not wait for this
/// process.
int keep_alone(int pipe) {
  constexpr int kFirst = 3;
  if (pipe != kFirst) ::dup2(pipe, kFirst);
  ::close_range(kFirst + 1, UINT_MAX, 0);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);  // what a library has to say is nobody's
  ::dup2(nowhere, STDOUT_FILENO);
  return kFirst;
}

[[noreturn]] void answer(int pipe, const std::string& library, const std::vector<std::string>& addresses) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pipe = keep_alone(pipe);
  const auto view = look_through_nvml(library.empty() ? "libnvidia-ml.so.1" : library, addresses);
  if (!view) ::_exit(1);
  const Bytes frame = to_cbor(to_json(*view));
  std::size_t at = 0;
  while (at < frame.size()) {
    const ssize_t wrote = ::write(pipe, frame.data() + at, frame.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    at += static_cast<std::size_t>(wrote);
  }
  ::_exit(0);  // no destructors of libraries
}

/// Killed, and waited for a little: what hangs in the kernel cannot be reaped, and must not be waited for.
void end_process(pid_t process) {
  ::kill(process, SIGKILL);
  for (int tries = 0; tries < 50; ++tries) {
    if (::waitpid(process, nullptr, WNOHANG) != 0) return;
    ::usleep(1'000);
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
    if (machine.pci[gpu.pci].vendor == kNvidiaCards) addresses.push_back(machine.pci[gpu.pci].address);
  std::error_code error;
  if (addresses.empty() && !std::filesystem::exists("/proc/driver/nvidia/version", error)) return;
  const Time deadline = system::now() + patience;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const system::Descriptor read_end(ends[0]);
  system::Descriptor write_end(ends[1]);
  const pid_t process = ::fork();
  if (process == 0) answer(write_end.get(), library, addresses);
  write_end.reset();
  if (process < 0) return;
  const Bytes text = read_until(read_end.get(), deadline);
  end_process(process);
  if (text.empty()) {
    if (system::now() >= deadline)
      machine.notes.emplace_back("the GPUs' driver did not answer in time: what it alone knows is not known");
    return;
  }
  if (const auto view = read_frame(text, "what the GPUs' driver says", driver_view_from_json))
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
