// One of the job's GPUs, through the driver: context, memory, a stream, events, the two kernels. Used by the
// module's parts; in the fabric child, as the probe user.
//
// Nothing here waits for a GPU, but for opening one, which the driver does in its own time and which happens
// in a thread of its own. No context is ever torn down: that is left to the end of the process, which hangs
// in nothing.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "fabric/nccl/abi.h"
#include "measure/pattern.h"

namespace netcheck::fabric::nccl {

/// The driver, initialised. Error: "no driver for GPUs on this node", or no GPU for it: "a node without
/// GPUs".
[[nodiscard]] Result<CuCalls> open_driver(const std::string& path);
/// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
[[nodiscard]] std::string words(const CuCalls& calls, CuResult result);

class GpuEvent {
 public:
  GpuEvent(const CuCalls& calls, CuEvent* event) : calls_(&calls), event_(event) {}
  GpuEvent(GpuEvent&& other) noexcept : calls_(other.calls_), event_(std::exchange(other.event_, nullptr)) {}
  GpuEvent& operator=(GpuEvent&& other) noexcept {
    std::swap(calls_, other.calls_);
    std::swap(event_, other.event_);
    return *this;
  }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  ~GpuEvent() {
    if (event_ != nullptr) static_cast<void>(calls_->event_destroy(event_));
  }
  [[nodiscard]] CuEvent* get() const { return event_; }

 private:
  const CuCalls* calls_;
  CuEvent* event_;
};

/// Memory on a GPU; its owner gives it back to the Gpu (Gpu::give), or it is lost until the process ends.
struct Memory {
  CuAddress address = 0;
  std::size_t size = 0;
  [[nodiscard]] void* at(std::uint64_t offset) const {
    return reinterpret_cast<void*>(address + offset);  // NOLINT(performance-no-int-to-ptr): NCCL's interface
  }
};

class Gpu {
 public:
  /// `device`: a PCI bus id, "0000:1b:00.0". It means the same GPU in every process and numbering. Takes
  /// 0.1–1 s. Error: no such GPU, none to be had (in use exclusively, broken), no memory.
  [[nodiscard]] static Result<std::unique_ptr<Gpu>> open(const CuCalls& calls, const std::string& device);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() = default;

  /// Its PCI bus id.
  [[nodiscard]] const std::string& device() const { return device_; }
  /// When it was opened.
  [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }
  /// Calls of NCCL and of the driver from this thread are about this GPU from now on.
  [[nodiscard]] Result<void> use() const;

  /// At least `size` bytes; what was given back before, where that is enough.
  [[nodiscard]] Result<Memory> take(std::size_t size);
  void give(Memory memory);
  /// A counter in the host's memory that the GPU can write to. Kept for ever.
  [[nodiscard]] Result<std::uint64_t*> take_counter();
  void give_counter(std::uint64_t* counter) { counters_.push_back(counter); }
  [[nodiscard]] Result<CuStream*> stream() const;
  [[nodiscard]] Result<GpuEvent> event() const;

  // Queued on a stream; each returns at once.
  [[nodiscard]] Result<void> set(CuStream* stream, CuAddress to, std::byte value, std::size_t size) const;
  [[nodiscard]] Result<void> upload(CuStream* stream, CuAddress to, std::span<const std::byte> from) const;
  [[nodiscard]] Result<void> download(CuStream* stream, std::uint64_t* to, CuAddress from) const;
  [[nodiscard]] Result<void> record(CuStream* stream, const GpuEvent& event) const;
  /// A period lies on the GPU, at `address`.
  struct Table {
    CuAddress address = 0;
    std::uint32_t elements = 0;
  };
  /// `elements` of `width` bytes each.
  [[nodiscard]] Result<void> fill(CuStream* stream, CuAddress to, std::uint64_t elements, std::size_t width,
                                  Table table) const;
  [[nodiscard]] Result<void> count_other(CuStream* stream, CuAddress of, std::uint64_t elements,
                                         std::size_t width, Table table, CuAddress counter) const;

  [[nodiscard]] Result<bool> reached(const GpuEvent& event) const;
  [[nodiscard]] Result<Ns> between(const GpuEvent& from, const GpuEvent& to) const;

 private:
  Gpu(const CuCalls& calls, std::string device) : calls_(&calls), device_(std::move(device)) {}
  [[nodiscard]] Result<void> start();
  [[nodiscard]] Result<void> load_kernels();
  [[nodiscard]] Result<void> check(CuResult result, const char* attempted) const;
  [[nodiscard]] Result<void> launch(CuStream* stream, CuFunction* kernel, std::uint64_t elements,
                                    std::span<void*> parameters) const;
  [[nodiscard]] static std::size_t kernel_index(std::size_t width) { return width == 4 ? 2 : width - 1; }

  const CuCalls* calls_;
  std::string device_;
  CuContext* context_ = nullptr;
  std::uint64_t free_bytes_ = 0;
  std::array<CuFunction*, 3> fill_{}, count_{};  // for elements of 1, 2 and 4 bytes
  std::vector<Memory> spare_;
  std::vector<std::uint64_t*> counters_;
};

}  // namespace netcheck::fabric::nccl
