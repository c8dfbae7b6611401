#include "fabric/nccl/opening.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <future>

#include "fabric/nccl/gpu_names.h"
#include "fabric/nccl/health.h"
#include "fabric/nccl/terms.h"

namespace netcheck::fabric::nccl {

namespace {

/// One message buffer where the site sets no cap: 20 ms at 400 Gb/s.
constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{1} << 30U;
/// A batch has two buffers, and as much again is left to NCCL and to whoever has the GPU's rest.
constexpr std::uint64_t kShares = 4;
/// Under this no figure says anything about a link.
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;
constexpr std::size_t kMaxLog = std::size_t{16} << 20U;

Result<std::vector<std::unique_ptr<Gpu>>> open_gpus(const CuCalls& calls,
                                                    const std::vector<std::string>& devices) {
  std::vector<std::future<Result<std::unique_ptr<Gpu>>>> opening;
  opening.reserve(devices.size());
  for (const auto& device : devices)
    opening.push_back(std::async(std::launch::async, [&calls, &device] { return Gpu::open(calls, device); }));
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::optional<Error> problem;
  for (auto& one : opening) {
    auto gpu = one.get();
    if (gpu)
      gpus.push_back(std::move(*gpu));
    else if (!problem)
      problem = gpu.error();
  }
  if (problem) return tl::unexpected(*problem);
  return gpus;
}

/// Their PCI bus ids, if each is fit to be measured.
Result<std::vector<std::string>> fit_gpus(const std::vector<std::string>& devices, const Settings& settings) {
  auto ids = bus_ids_of(devices, settings);
  if (!ids) return ids;
  if (auto fit = check_health(*ids, settings); !fit) return tl::unexpected(fit.error());
  return ids;
}

}  // namespace

Result<Opened> open_all(const Options& options, const Settings& settings) {
  Opened opened;
  auto driver = open_driver(settings.driver);
  if (!driver) return tl::unexpected(driver.error());
  opened.driver = std::make_unique<CuCalls>(*driver);
  // Before this process is on the GPUs itself.
  auto fit = std::async(std::launch::async, [&] { return fit_gpus(options.devices, settings); });
  auto nccl = Nccl::open(settings.library);
  const auto devices = fit.get();
  if (!devices) return tl::unexpected(devices.error());
  if (!nccl) return tl::unexpected(nccl.error());
  opened.nccl = std::make_unique<Nccl>(std::move(*nccl));
  auto agreed = std::async(std::launch::async, [&settings] { return terms_of(settings.environment); });
  auto gpus = open_gpus(*opened.driver, *devices);
  auto terms = agreed.get();
  if (!gpus) return tl::unexpected(gpus.error());
  if (!terms) return tl::unexpected(terms.error());
  opened.terms = std::move(*terms);
  opened.gpus = std::move(*gpus);
  opened.max_bytes = options.max_bytes == 0 ? kDefaultMaxBytes : options.max_bytes;
  for (const auto& gpu : opened.gpus) {
    if (gpu->free_bytes() / kShares < kLeastBytes)
      return fail("open", "GPU " + gpu->device(),
                  fmt::format("only {} of its memory are free", format_bytes(gpu->free_bytes())));
    opened.max_bytes = std::min(opened.max_bytes, gpu->free_bytes() / kShares);
  }
  return opened;
}

// --- the log ----------------------------------------------------------------------------------------------

void Log::start() {
  if (file_) return;
  file_.reset(::memfd_create("nccl-log", MFD_CLOEXEC));
  ::setenv("NCCL_DEBUG", file_ ? "INFO" : "NONE", 1);
  if (file_) ::setenv("NCCL_DEBUG_FILE", fmt::format("/proc/self/fd/{}", file_.get()).c_str(), 1);
}

std::size_t Log::size() const {
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0) return 0;
  return static_cast<std::size_t>(status.st_size);
}

std::string Log::read() const {
  std::string text(std::min(size(), kMaxLog), '\0');
  const auto length = text.empty() ? 0 : ::pread(file_.get(), text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

}  // namespace netcheck::fabric::nccl
