// A stand-in for libcuda.so.1: devices whose memory is the process's own, streams that are threads, kernels
// by name. As strict as the driver where the module could be careless: a context must be current, a stream
// and an event must be of one device.
//
// fake.ini: cuinit=N (cuInit's answer), gpus=N (default 2), memory=BYTES (of a device, default 1 GiB),
// slow_context=MS.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "fabric/nccl/abi.h"
#include "fabric/nccl/kernels.h"
#include "faults.h"
#include "stream.h"

namespace netcheck::fabric::nccl {

struct CuContext {
  int device = 0;
};
struct CuModule {
  std::string text;
};
struct CuFunction {
  std::string name;
};
struct CuStream {
  int device = -1;
  std::mutex mutex;
  std::condition_variable news;
  std::deque<std::function<void()>> work;
};
struct CuEvent {
  struct State {
    std::atomic<bool> recorded = true;
    std::chrono::steady_clock::time_point when;
  };
  int device = -1;
  std::shared_ptr<State> state = std::make_shared<State>();
};

namespace {

constexpr CuResult kNoContext{201}, kBadHandle{400}, kNotFound{500};
constexpr int kFirstBus = 0xf0;

struct Memory {
  std::size_t size = 0;
  int device = 0;
};

thread_local CuContext* current = nullptr;
std::mutex mutex;
std::map<CuAddress, Memory> allocations;

std::size_t total_memory() {
  return static_cast<std::size_t>(netcheck::fakes::fault_number("memory", 1 << 30));
}
std::size_t used_memory(int device) {
  std::size_t used = 0;
  for (const auto& [address, memory] : allocations)
    if (memory.device == device) used += memory.size;
  return used;
}

void* host(CuAddress address) {
  return reinterpret_cast<void*>(address);
}

void enqueue(CuStream* stream, std::function<void()> work) {
  const std::lock_guard lock(stream->mutex);
  stream->work.push_back(std::move(work));
  stream->news.notify_one();
}

/// For ever: contexts are never torn down.
void serve(CuStream* stream) {
  while (true) {
    std::unique_lock lock(stream->mutex);
    stream->news.wait(lock, [stream] { return !stream->work.empty(); });
    const auto work = std::move(stream->work.front());
    stream->work.pop_front();
    lock.unlock();
    work();
  }
}

void run_fill(std::size_t width, CuAddress to, std::uint64_t elements, CuAddress table,
              std::uint32_t period) {
  for (std::uint64_t at = 0; at < elements; at += period)
    std::memcpy(host(to + at * width), host(table), std::min<std::uint64_t>(period, elements - at) * width);
}

void run_count(std::size_t width, CuAddress of, std::uint64_t elements, CuAddress table, std::uint32_t period,
               CuAddress counter) {
  std::uint64_t wrong = 0;
  for (std::uint64_t at = 0; at < elements; at += period) {
    const std::uint64_t count = std::min<std::uint64_t>(period, elements - at);
    if (std::memcmp(host(of + at * width), host(table), count * width) == 0) continue;
    for (std::uint64_t i = 0; i < count; ++i)
      wrong += std::memcmp(host(of + (at + i) * width), host(table + i * width), width) != 0 ? 1U : 0U;
  }
  std::uint64_t sum = 0;
  std::memcpy(&sum, host(counter), sizeof sum);
  sum += wrong;
  std::memcpy(host(counter), &sum, sizeof sum);
}

template <typename T>
T parameter(void** parameters, int i) {
  T value{};
  std::memcpy(&value, parameters[i], sizeof value);
  return value;
}

}  // namespace
}  // namespace netcheck::fabric::nccl

#define EXPORT extern "C" [[gnu::visibility("default")]]
using namespace netcheck::fabric::nccl;

EXPORT void netcheck_fake_enqueue(CuStream* stream, std::function<void()>* work) {
  enqueue(stream, *work);
}
EXPORT int netcheck_fake_current_device() {
  return current == nullptr ? -1 : current->device;
}
EXPORT int netcheck_fake_device_of(CuStream* stream) {
  return stream->device;
}

EXPORT CuResult cuInit(unsigned) {
  // With it a driver hides GPUs and counts the others anew: nobody's is to get here.
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) return CuResult::no_device;
  return CuResult(netcheck::fakes::fault_number("cuinit", 0));
}
EXPORT CuResult cuDriverGetVersion(int* version) {
  *version = 12'000;
  return CuResult::success;
}
EXPORT CuResult cuGetErrorName(CuResult result, const char** name) {
  *name = result == CuResult::out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return CuResult::success;
}
EXPORT CuResult cuGetErrorString(CuResult result, const char** text) {
  *text = result == CuResult::out_of_memory ? "out of memory" : "an error of the stand-in";
  return CuResult::success;
}
EXPORT CuResult cuDeviceGetByPCIBusId(CuDevice* device, const char* bus) {
  unsigned domain = 0, number = 0, slot = 0, function = 0;
  if (std::sscanf(bus, "%x:%x:%x.%x", &domain, &number, &slot, &function) != 4)
    return CuResult::invalid_value;
  *device = static_cast<int>(number) - kFirstBus;
  const bool there = *device >= 0 && *device < netcheck::fakes::fault_number("gpus", 2);
  return there ? CuResult::success : CuResult::invalid_device;
}
EXPORT CuResult cuDevicePrimaryCtxRetain(CuContext** context, CuDevice device) {
  ::usleep(static_cast<unsigned>(netcheck::fakes::fault_number("slow_context", 0)) * 1'000);
  *context = new CuContext{device};
  return CuResult::success;
}
EXPORT CuResult cuCtxSetCurrent(CuContext* context) {
  current = context;
  return CuResult::success;
}

EXPORT CuResult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (current == nullptr) return kNoContext;
  const std::lock_guard lock(mutex);
  *total = total_memory();
  *free = *total - used_memory(current->device);
  return CuResult::success;
}
EXPORT CuResult cuMemAlloc_v2(CuAddress* address, std::size_t size) {
  if (current == nullptr) return kNoContext;
  const std::lock_guard lock(mutex);
  if (size == 0) return CuResult::invalid_value;
  if (used_memory(current->device) + size > total_memory()) return CuResult::out_of_memory;
  *address = reinterpret_cast<CuAddress>(std::aligned_alloc(256, (size + 255) / 256 * 256));
  allocations[*address] = {size, current->device};
  return CuResult::success;
}
EXPORT CuResult cuMemFree_v2(CuAddress address) {
  const std::lock_guard lock(mutex);
  if (allocations.erase(address) == 0) return CuResult::invalid_value;
  std::free(host(address));
  return CuResult::success;
}
EXPORT CuResult cuMemAllocHost_v2(void** memory, std::size_t size) {
  if (current == nullptr) return kNoContext;
  *memory = std::malloc(size);
  return CuResult::success;
}
EXPORT CuResult cuMemsetD8Async(CuAddress to, unsigned char value, std::size_t size, CuStream* stream) {
  enqueue(stream, [=] { std::memset(host(to), value, size); });
  return CuResult::success;
}
EXPORT CuResult cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, std::size_t size, CuStream* stream) {
  const auto* bytes = static_cast<const char*>(from);
  enqueue(stream,
          [to, staged = std::string(bytes, size)] { std::memcpy(host(to), staged.data(), staged.size()); });
  return CuResult::success;
}
EXPORT CuResult cuMemcpyDtoHAsync_v2(void* to, CuAddress from, std::size_t size, CuStream* stream) {
  enqueue(stream, [=] { std::memcpy(to, host(from), size); });
  return CuResult::success;
}

EXPORT CuResult cuStreamCreate(CuStream** stream, unsigned) {
  if (current == nullptr) return kNoContext;
  *stream = new CuStream;
  (*stream)->device = current->device;
  std::thread(serve, *stream).detach();
  return CuResult::success;
}
EXPORT CuResult cuEventCreate(CuEvent** event, unsigned) {
  if (current == nullptr) return kNoContext;
  *event = new CuEvent;
  (*event)->device = current->device;
  return CuResult::success;
}
EXPORT CuResult cuEventDestroy_v2(CuEvent* event) {
  delete event;
  return CuResult::success;
}
EXPORT CuResult cuEventRecord(CuEvent* event, CuStream* stream) {
  if (event->device != stream->device) return kBadHandle;
  event->state->recorded = false;
  enqueue(stream, [state = event->state] {
    state->when = std::chrono::steady_clock::now();
    state->recorded = true;
  });
  return CuResult::success;
}
EXPORT CuResult cuEventQuery(CuEvent* event) {
  return event->state->recorded ? CuResult::success : CuResult::not_ready;
}
EXPORT CuResult cuEventElapsedTime(float* milliseconds, CuEvent* from, CuEvent* to) {
  if (!from->state->recorded || !to->state->recorded) return CuResult::not_ready;
  *milliseconds = std::chrono::duration<float, std::milli>(to->state->when - from->state->when).count();
  return CuResult::success;
}

EXPORT CuResult cuModuleLoadData(CuModule** module, const void* image) {
  if (current == nullptr) return kNoContext;
  *module = new CuModule{static_cast<const char*>(image)};
  return (*module)->text.starts_with(".version ") ? CuResult::success : CuResult(218);  // invalid PTX
}
EXPORT CuResult cuModuleGetFunction(CuFunction** function, CuModule* module, const char* name) {
  if (module->text.find(std::string(".entry ") + name + "(") == std::string::npos) return kNotFound;
  *function = new CuFunction{name};
  return CuResult::success;
}
EXPORT CuResult cuLaunchKernel(CuFunction* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned, CuStream* stream, void** parameters, void**) {
  if (current == nullptr || current->device != stream->device) return kNoContext;
  const auto width = static_cast<std::size_t>(function->name.back() - '0');
  const auto buffer = parameter<CuAddress>(parameters, 0);
  const auto elements = parameter<std::uint64_t>(parameters, 1);
  const auto table = parameter<CuAddress>(parameters, 2);
  const auto period = parameter<std::uint32_t>(parameters, 3);
  if (function->name.starts_with(kFillKernel))
    enqueue(stream, [=] { run_fill(width, buffer, elements, table, period); });
  else
    enqueue(stream, [=, counter = parameter<CuAddress>(parameters, 4)] {
      run_count(width, buffer, elements, table, period, counter);
    });
  return CuResult::success;
}
