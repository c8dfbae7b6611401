#include "fabric/nccl/gpu_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fabric/nccl/abi.h"
#include "fabric/nccl/library.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr std::string_view kNumbered = "gpu:";
constexpr std::string_view kMinorLine = "Device Minor:";
/// No machine has as many; NVML is not believed beyond.
constexpr unsigned kMostGpus = 256;
constexpr std::size_t kDomainDigits = 4;

std::optional<unsigned> whole_number(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Bus ids by number.
using Named = std::map<unsigned, std::string>;

Named told_by_nvml(const Settings& settings) {
  Named named;
  const auto nvml = load_nvml(settings.watcher);
  unsigned count = 0;
  if (!nvml || nvml->init() != NvmlResult::success || nvml->device_count(&count) != NvmlResult::success)
    return named;
  for (unsigned index = 0; index < std::min(count, kMostGpus); ++index) {
    NvmlDevice* device = nullptr;
    unsigned minor = 0;
    NvmlPciInfo pci;
    if (nvml->device_by_index(index, &device) == NvmlResult::success &&
        nvml->minor_number(device, &minor) == NvmlResult::success &&
        nvml->pci_info(device, &pci) == NvmlResult::success)
      named[minor] = short_bus_id({pci.bus_id.data(), ::strnlen(pci.bus_id.data(), pci.bus_id.size())});
  }
  return named;
}

Named told_by_driver(const std::string& folder) {
  Named named;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::ostringstream text;
    text << std::ifstream(at->path() / "information").rdbuf();
    if (const auto minor = minor_in(text.str())) named[*minor] = short_bus_id(at->path().filename().string());
  }
  return named;
}

Result<std::string> find(const Named& named, unsigned number) {
  if (const auto found = named.find(number); found != named.end()) return found->second;
  const std::string subject = fmt::format("GPU {}", number);
  if (named.empty())
    return fail("find", subject, fmt::format("neither NVML nor {} tells which one it is", kDriverFolder));
  std::vector<unsigned> numbers;
  for (const auto& [minor, bus] : named)
    numbers.push_back(minor);
  return fail("find", subject,
              fmt::format("there is no /dev/nvidia{}, but {}", number, fmt::join(numbers, ", ")),
              "have the files of gres.conf be NVIDIA's devices, whose numbers jobs are given");
}

}  // namespace

std::optional<unsigned> number_of(std::string_view device) {
  if (!device.starts_with(kNumbered)) return std::nullopt;
  return whole_number(device.substr(kNumbered.size()));
}

std::string short_bus_id(std::string_view bus) {
  while (bus.starts_with('0') && bus.find(':') > kDomainDigits && bus.find(':') != std::string_view::npos)
    bus.remove_prefix(1);
  std::string text(bus);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::optional<unsigned> minor_in(std::string_view information) {
  const auto at = information.find(kMinorLine);
  if (at == std::string_view::npos) return std::nullopt;
  information.remove_prefix(at + kMinorLine.size());
  information.remove_prefix(std::min(information.find_first_not_of(" \t"), information.size()));
  return whole_number(information.substr(0, information.find_first_of(" \t\r\n")));
}

Result<std::vector<std::string>> bus_ids_of(const std::vector<std::string>& devices, const Settings& settings,
                                            const std::string& folder) {
  std::vector<std::string> ids;
  std::optional<Named> named;
  for (const auto& device : devices) {
    auto id = Result<std::string>(device);
    if (const auto number = number_of(device)) {
      if (!named) named = told_by_nvml(settings);
      if (named->empty()) named = told_by_driver(folder);
      id = find(*named, *number);
    }
    if (!id) return tl::unexpected(id.error());
    if (std::find(ids.begin(), ids.end(), *id) != ids.end())
      return fail("open", "GPU " + printable(device, 64), "it was given twice");
    ids.push_back(std::move(*id));
  }
  return ids;
}

}  // namespace netcheck::fabric::nccl
