// The questions to NVML, one GPU after another. As the probe user or whoever runs `netcheck topo`, in the
// process that ask_driver makes for it.
#include "topology/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "contract/error.h"
#include "topology/nvml_abi.h"

namespace netcheck::topology {
namespace {

template <typename Call>
bool find_call(void* library, Call& call, const char* symbol) {
  call = reinterpret_cast<Call>(::dlsym(library, symbol));
  return call != nullptr;
}

/// Without the first four nothing can be asked.
std::optional<NvmlQuestions> open_nvml(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  NvmlQuestions ask{};
  if (!find_call(library, ask.init, "nvmlInitWithFlags") ||
      !find_call(library, ask.by_address, "nvmlDeviceGetHandleByPciBusId_v2") ||
      !find_call(library, ask.count, "nvmlDeviceGetCount_v2") ||
      !find_call(library, ask.driver_version, "nvmlSystemGetDriverVersion"))
    return std::nullopt;
  find_call(library, ask.name, "nvmlDeviceGetName");
  find_call(library, ask.uuid, "nvmlDeviceGetUUID");
  find_call(library, ask.mig, "nvmlDeviceGetMigMode");
  find_call(library, ask.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find_call(library, ask.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find_call(library, ask.power_default, "nvmlDeviceGetPowerManagementDefaultLimit");
  find_call(library, ask.link_state, "nvmlDeviceGetNvLinkState");
  find_call(library, ask.link_remote, "nvmlDeviceGetNvLinkRemoteDeviceType");
  find_call(library, ask.link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  return ask;
}

using TextCall = NvmlAnswer (*)(NvmlHandle*, char*, unsigned);
using NumberCall = NvmlAnswer (*)(NvmlHandle*, unsigned*);

std::string text_from(TextCall call, NvmlHandle* gpu) {
  std::array<char, 128> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE and ..UUID_V2.. are 96
  if (call == nullptr || call(gpu, text.data(), text.size() - 1) != NvmlAnswer::success) return {};
  return printable(text.data(), text.size());
}

std::optional<std::uint32_t> watts_from(NumberCall call, NvmlHandle* gpu) {
  unsigned milliwatts = 0;
  if (call == nullptr || call(gpu, &milliwatts) != NvmlAnswer::success || milliwatts == 0)
    return std::nullopt;
  return (milliwatts + 500) / 1000;
}

/// Idle clocks and the power limit at work are no reason: that is how GPUs are run.
std::string why_slowed(const NvmlQuestions& ask, NvmlHandle* gpu) {
  unsigned long long reasons = 0;
  if (ask.throttle == nullptr || ask.throttle(gpu, &reasons) != NvmlAnswer::success) return {};
  if ((reasons & kNvmlPowerBrake) != 0) return "power brake, from the power supply";
  if ((reasons & (kNvmlHwThermal | kNvmlSwThermal)) != 0) return "too hot";
  return (reasons & kNvmlHwSlowdown) != 0 ? "slowed down by hardware" : "";
}

/// "00000000:5D:00.0" → "0000:5d:00.0"
std::string address_from(const NvmlPci& pci) {
  std::string text(pci.address.data(), ::strnlen(pci.address.data(), pci.address.size()));
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::size_t kLength = std::string_view("0000:5d:00.0").size();
  return text.size() > kLength ? text.substr(text.size() - kLength) : text;
}

/// The other end's address where it is a GPU; nullopt: what it is cannot be told, or is a CPU.
std::optional<std::string> remote_end(const NvmlQuestions& ask, NvmlHandle* gpu, unsigned link) {
  NvmlRemote kind = NvmlRemote::unknown;
  if (ask.link_remote != nullptr && ask.link_remote(gpu, link, &kind) != NvmlAnswer::success)
    kind = NvmlRemote::unknown;
  if (kind == NvmlRemote::nvswitch) return "";
  NvmlPci pci{};
  if (kind == NvmlRemote::ibm_npu || ask.link_pci == nullptr ||
      ask.link_pci(gpu, link, &pci) != NvmlAnswer::success)
    return std::nullopt;
  return address_from(pci);
}

void ask_for_links(const NvmlQuestions& ask, NvmlHandle* gpu, DriverGpu& told) {
  if (ask.link_state == nullptr || told.mig == true) return;  // slices have no NVLinks
  for (unsigned link = 0; link < kNvmlMostLinks; ++link) {
    unsigned active = 0;
    const NvmlAnswer answer = ask.link_state(gpu, link, &active);
    if (link == 0) told.links_known = answer == NvmlAnswer::success || answer == NvmlAnswer::not_supported;
    if (answer != NvmlAnswer::success) return;
    if (active == 0) continue;
    const auto peer = remote_end(ask, gpu, link);
    if (!peer) continue;
    const auto same = std::ranges::find(told.links, *peer, &DriverLink::peer);
    if (same == told.links.end())
      told.links.push_back({*peer, 1});
    else
      ++same->count;
  }
}

std::optional<DriverGpu> ask_for_gpu(const NvmlQuestions& ask, const std::string& address) {
  DriverGpu told{.address = address};
  NvmlHandle* gpu = nullptr;
  const NvmlAnswer found = ask.by_address(address.c_str(), &gpu);
  told.lost = found == NvmlAnswer::gpu_is_lost;
  if (told.lost) return told;
  if (found != NvmlAnswer::success) return std::nullopt;
  told.model = text_from(ask.name, gpu);
  told.uuid = text_from(ask.uuid, gpu);
  unsigned current = 0, pending = 0;
  if (ask.mig != nullptr && ask.mig(gpu, &current, &pending) == NvmlAnswer::success) told.mig = current != 0;
  told.slowed = why_slowed(ask, gpu);
  told.power_limit = watts_from(ask.power_limit, gpu);
  told.power_default = watts_from(ask.power_default, gpu);
  ask_for_links(ask, gpu, told);
  return told;
}

}  // namespace

std::optional<DriverView> look_through_nvml(const std::string& library,
                                            const std::vector<std::string>& addresses) {
  const auto ask = open_nvml(library);
  if (!ask || ask->init(kNvmlNoAttach) != NvmlAnswer::success) return std::nullopt;
  DriverView view;
  std::array<char, 96> version{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80
  if (ask->driver_version(version.data(), version.size() - 1) == NvmlAnswer::success)
    view.version = printable(version.data(), 32);
  unsigned count = 0;
  if (ask->count(&count) == NvmlAnswer::success) view.count = count;
  for (const std::string& address : addresses)
    if (auto gpu = ask_for_gpu(*ask, address)) view.gpus.push_back(std::move(*gpu));
  return view;
}

}  // namespace netcheck::topology
