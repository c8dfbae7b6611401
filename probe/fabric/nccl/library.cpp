#include "fabric/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "contract/nccl_version.h"

namespace netcheck::fabric::nccl {

namespace {

/// The first with everything that is used: ncclCommInitRankConfig as it is, and errors of a communicator that
/// does not block.
constexpr int kOldest = 21'800;

/// A library's functions, one by one; the first that it lacks is the error.
class Binder {
 public:
  Binder(void* library, std::string name) : library_(library), name_(std::move(name)) {}
  template <typename Call>
  void bind(Call& call, const char* symbol) {
    if (!missing_.empty()) return;
    call = reinterpret_cast<Call>(::dlsym(library_, symbol));
    if (call == nullptr) missing_ = symbol;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string name_, missing_;
};

/// Once opened it stays: the library's threads run in it.
Result<void*> open_library(const std::string& name) {
  ::dlerror();
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* why = ::dlerror();
  return fail("open", name, why == nullptr ? "unknown error of the dynamic loader" : printable(why));
}

}  // namespace

Result<NcclCalls> load_nccl(const std::string& path) {
  const std::string name = path.empty() ? "libnccl.so.2" : path;
  auto library = open_library(name);
  if (!library) return tl::unexpected(library.error());
  NcclCalls calls{};
  Binder binder(*library, name);
  binder.bind(calls.get_version, "ncclGetVersion");
  if (!binder.missing().empty()) return fail("use", name, "it is no NCCL: it has no ncclGetVersion");
  int code = 0;
  if (calls.get_version(&code) != NcclResult::success)
    return fail("use", name, "it does not tell its version");
  if (auto fit = check_nccl_version(code); !fit) return tl::unexpected(fit.error());
  binder.bind(calls.get_unique_id, "ncclGetUniqueId");
  binder.bind(calls.comm_init_rank_config, "ncclCommInitRankConfig");
  binder.bind(calls.comm_get_async_error, "ncclCommGetAsyncError");
  binder.bind(calls.get_error_string, "ncclGetErrorString");
  binder.bind(calls.get_last_error, "ncclGetLastError");
  binder.bind(calls.group_start, "ncclGroupStart");
  binder.bind(calls.group_end, "ncclGroupEnd");
  binder.bind(calls.all_reduce, "ncclAllReduce");
  binder.bind(calls.reduce_scatter, "ncclReduceScatter");
  binder.bind(calls.all_gather, "ncclAllGather");
  binder.bind(calls.broadcast, "ncclBroadcast");
  binder.bind(calls.reduce, "ncclReduce");
  binder.bind(calls.send, "ncclSend");
  binder.bind(calls.recv, "ncclRecv");
  if (!binder.missing().empty()) return fail("use", name, "it has no " + binder.missing());
  return calls;
}

Result<CuCalls> load_cuda(const std::string& path) {
  const std::string name = path.empty() ? "libcuda.so.1" : path;
  auto library = open_library(name);
  if (!library) return tl::unexpected(library.error());
  CuCalls calls{};
  Binder binder(*library, name);
  binder.bind(calls.init, "cuInit");
  binder.bind(calls.driver_get_version, "cuDriverGetVersion");
  binder.bind(calls.get_error_name, "cuGetErrorName");
  binder.bind(calls.get_error_string, "cuGetErrorString");
  binder.bind(calls.device_get_by_pci_bus_id, "cuDeviceGetByPCIBusId");
  binder.bind(calls.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  binder.bind(calls.ctx_set_current, "cuCtxSetCurrent");
  binder.bind(calls.mem_get_info, "cuMemGetInfo_v2");
  binder.bind(calls.mem_alloc, "cuMemAlloc_v2");
  binder.bind(calls.mem_free, "cuMemFree_v2");
  binder.bind(calls.mem_alloc_host, "cuMemAllocHost_v2");
  binder.bind(calls.memset_d8_async, "cuMemsetD8Async");
  binder.bind(calls.memcpy_htod_async, "cuMemcpyHtoDAsync_v2");
  binder.bind(calls.memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2");
  binder.bind(calls.stream_create, "cuStreamCreate");
  binder.bind(calls.event_create, "cuEventCreate");
  binder.bind(calls.event_destroy, "cuEventDestroy_v2");
  binder.bind(calls.event_record, "cuEventRecord");
  binder.bind(calls.event_query, "cuEventQuery");
  binder.bind(calls.event_elapsed_time, "cuEventElapsedTime");
  binder.bind(calls.module_load_data, "cuModuleLoadData");
  binder.bind(calls.module_get_function, "cuModuleGetFunction");
  binder.bind(calls.launch_kernel, "cuLaunchKernel");
  if (!binder.missing().empty()) return fail("use", name, "it has no " + binder.missing());
  return calls;
}

Result<NvmlCalls> load_nvml(const std::string& path) {
  const std::string name = path.empty() ? "libnvidia-ml.so.1" : path;
  auto library = open_library(name);
  if (!library) return tl::unexpected(library.error());
  NvmlCalls calls{};
  Binder binder(*library, name);
  binder.bind(calls.init, "nvmlInit_v2");
  binder.bind(calls.device_count, "nvmlDeviceGetCount_v2");
  binder.bind(calls.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  binder.bind(calls.minor_number, "nvmlDeviceGetMinorNumber");
  binder.bind(calls.pci_info, "nvmlDeviceGetPciInfo_v3");
  binder.bind(calls.device_by_pci_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  binder.bind(calls.mig_mode, "nvmlDeviceGetMigMode");
  binder.bind(calls.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  binder.bind(calls.remapped_rows, "nvmlDeviceGetRemappedRows");
  if (!binder.missing().empty()) return fail("use", name, "it has no " + binder.missing());
  return calls;
}

Result<void> check_nccl_version(int code) {
  if (code >= kOldest) return {};
  return fail("use", "NCCL " + nccl_version(code), "NCCL 2.18 or later is needed");
}

}  // namespace netcheck::fabric::nccl
