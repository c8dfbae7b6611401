#include "fabric/nccl/gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/nccl/kernels.h"
#include "fabric/nccl/library.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr double kNsPerMs = 1e6;

/// What cuInit says where no GPU, or no driver for one, is: no fault of the node's.
bool means_no_gpu(CuResult result) {
  return result == CuResult::no_device || result == CuResult::stub_library ||
         result == CuResult::insufficient_driver;
}

}  // namespace

std::string words(const CuCalls& calls, CuResult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  static_cast<void>(calls.get_error_name(result, &name));
  static_cast<void>(calls.get_error_string(result, &text));
  if (name == nullptr || text == nullptr) return fmt::format("CUDA error {}", static_cast<int>(result));
  return fmt::format("{} ({})", printable(text), printable(name));
}

Result<CuCalls> open_driver(const std::string& path) {
  auto calls = load_cuda(path);
  if (!calls) {
    // Of a node without GPUs as of one whose driver is not installed.
    calls.error().reason = fmt::format("no driver for GPUs on this node ({})", calls.error().reason);
    return calls;
  }
  const CuResult result = calls->init(0);
  if (means_no_gpu(result)) return fail("open", "CUDA", "a node without GPUs: " + words(*calls, result));
  if (result != CuResult::success) return fail("open", "CUDA", words(*calls, result));
  return calls;
}

Result<std::unique_ptr<Gpu>> Gpu::open(const CuCalls& calls, const std::string& device) {
  std::unique_ptr<Gpu> gpu(new Gpu(calls, device));
  if (auto started = gpu->start(); !started) return tl::unexpected(started.error());
  return gpu;
}

Result<void> Gpu::check(CuResult result, const char* attempted) const {
  if (result == CuResult::success) return {};
  return fail(attempted, "GPU " + printable(device_, 64), words(*calls_, result));
}

Result<void> Gpu::start() {
  CuDevice device = 0;
  const CuResult found = calls_->device_get_by_pci_bus_id(&device, device_.c_str());
  if (found == CuResult::invalid_device || found == CuResult::invalid_value)
    return fail("open", "GPU " + printable(device_, 64), "the driver knows no such GPU here");
  if (auto ok = check(found, "open"); !ok) return ok;
  // The primary one: NCCL's own, which comes with the CUDA runtime inside it.
  if (auto ok = check(calls_->device_primary_ctx_retain(&context_, device), "open"); !ok) return ok;
  if (auto ok = use(); !ok) return ok;
  std::size_t free = 0, total = 0;
  if (auto ok = check(calls_->mem_get_info(&free, &total), "ask for the memory of"); !ok) return ok;
  free_bytes_ = free;
  return load_kernels();
}

Result<void> Gpu::load_kernels() {
  const std::string text = kernels_ptx();
  CuModule* module = nullptr;
  if (auto ok = check(calls_->module_load_data(&module, text.c_str()), "load kernels on"); !ok) return ok;
  for (const std::size_t width : kWidths) {
    const std::size_t i = kernel_index(width);
    for (const auto& [kernel, function] :
         {std::pair(kFillKernel, &fill_[i]), std::pair(kCountKernel, &count_[i])})
      if (auto ok = check(calls_->module_get_function(function, module, kernel_name(kernel, width).c_str()),
                          "load kernels on");
          !ok)
        return ok;
  }
  return {};
}

Result<void> Gpu::use() const {
  return check(calls_->ctx_set_current(context_), "use");
}

/// Sizes grow from batch to batch: what is too small is given back to the driver when there is no room
/// otherwise, and only then, since that waits for the GPU.
Result<Memory> Gpu::take(std::size_t size) {
  const auto fits = [size](const Memory& memory) { return memory.size >= size; };
  if (const auto found = std::find_if(spare_.begin(), spare_.end(), fits); found != spare_.end()) {
    const Memory memory = *found;
    spare_.erase(found);
    return memory;
  }
  if (auto used = use(); !used) return tl::unexpected(used.error());
  Memory memory{0, size};
  CuResult result = calls_->mem_alloc(&memory.address, size);
  if (result == CuResult::out_of_memory && !spare_.empty()) {
    for (const Memory& one : spare_)
      static_cast<void>(calls_->mem_free(one.address));
    spare_.clear();
    result = calls_->mem_alloc(&memory.address, size);
  }
  if (auto ok = check(result, fmt::format("take {} of", format_bytes(size)).c_str()); !ok)
    return tl::unexpected(ok.error());
  return memory;
}

void Gpu::give(Memory memory) {
  if (memory.address == 0) return;
  spare_.push_back(memory);
  std::sort(spare_.begin(), spare_.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
}

Result<std::uint64_t*> Gpu::take_counter() {
  if (!counters_.empty()) {
    auto* const counter = counters_.back();
    counters_.pop_back();
    return counter;
  }
  if (auto used = use(); !used) return tl::unexpected(used.error());
  void* memory = nullptr;
  if (auto ok = check(calls_->mem_alloc_host(&memory, sizeof(std::uint64_t)), "take host memory for"); !ok)
    return tl::unexpected(ok.error());
  return static_cast<std::uint64_t*>(memory);
}

Result<CuStream*> Gpu::stream() const {
  CuStream* stream = nullptr;
  if (auto ok = check(calls_->stream_create(&stream, kCuStreamNonBlocking), "make a stream on"); !ok)
    return tl::unexpected(ok.error());
  return stream;
}

Result<GpuEvent> Gpu::event() const {
  CuEvent* event = nullptr;
  if (auto ok = check(calls_->event_create(&event, 0), "make an event on"); !ok)
    return tl::unexpected(ok.error());
  return GpuEvent(*calls_, event);
}

// --- queued work ------------------------------------------------------------------------------------------

Result<void> Gpu::set(CuStream* stream, CuAddress to, std::byte value, std::size_t size) const {
  return check(calls_->memset_d8_async(to, static_cast<unsigned char>(value), size, stream), "write to");
}

Result<void> Gpu::upload(CuStream* stream, CuAddress to, std::span<const std::byte> from) const {
  return check(calls_->memcpy_htod_async(to, from.data(), from.size(), stream), "copy to");
}

Result<void> Gpu::download(CuStream* stream, std::uint64_t* to, CuAddress from) const {
  return check(calls_->memcpy_dtoh_async(to, from, sizeof *to, stream), "copy from");
}

Result<void> Gpu::record(CuStream* stream, const GpuEvent& event) const {
  return check(calls_->event_record(event.get(), stream), "record an event on");
}

Result<void> Gpu::fill(CuStream* stream, CuAddress to, std::uint64_t elements, std::size_t width,
                       Table table) const {
  std::array<void*, 4> parameters{&to, &elements, &table.address, &table.elements};
  return launch(stream, fill_.at(kernel_index(width)), elements, parameters);
}

Result<void> Gpu::count_other(CuStream* stream, CuAddress of, std::uint64_t elements, std::size_t width,
                              Table table, CuAddress counter) const {
  std::array<void*, 5> parameters{&of, &elements, &table.address, &table.elements, &counter};
  return launch(stream, count_.at(kernel_index(width)), elements, parameters);
}

Result<void> Gpu::launch(CuStream* stream, CuFunction* kernel, std::uint64_t elements,
                         std::span<void*> parameters) const {
  const auto blocks =
      static_cast<unsigned>(std::min<std::uint64_t>(kMostBlocks, (elements + kBlock - 1) / kBlock));
  if (blocks == 0) return {};
  return check(
      calls_->launch_kernel(kernel, blocks, 1, 1, kBlock, 1, 1, 0, stream, parameters.data(), nullptr),
      "start a kernel on");
}

Result<bool> Gpu::reached(const GpuEvent& event) const {
  const CuResult result = calls_->event_query(event.get());
  if (result == CuResult::not_ready) return false;
  if (auto ok = check(result, "wait for"); !ok) return tl::unexpected(ok.error());
  return true;
}

Result<Ns> Gpu::between(const GpuEvent& from, const GpuEvent& to) const {
  float milliseconds = 0;
  if (auto ok = check(calls_->event_elapsed_time(&milliseconds, from.get(), to.get()), "read the time of");
      !ok)
    return tl::unexpected(ok.error());
  return Ns(static_cast<std::int64_t>(static_cast<double>(milliseconds) * kNsPerMs));
}

}  // namespace netcheck::fabric::nccl
