// What the NCCL module declares of NCCL, CUDA and NVML, held to their own headers, where these were found. It
// is the compiler that tests.
#include <gtest/gtest.h>

#ifdef NETCHECK_TEST_NCCL_HEADERS
#include <cuda.h>
#include <nccl.h>
#ifdef NETCHECK_TEST_NVML_HEADER
#include <nvml.h>
#endif

#include "fabric/nccl/abi.h"
#include "same_abi.h"

namespace netcheck::fabric::nccl {
namespace {

SAME_CALL(NcclCalls, get_version, ncclGetVersion);
SAME_CALL(NcclCalls, get_unique_id, ncclGetUniqueId);
SAME_CALL(NcclCalls, comm_init_rank_config, ncclCommInitRankConfig);
SAME_CALL(NcclCalls, comm_get_async_error, ncclCommGetAsyncError);
SAME_CALL(NcclCalls, get_error_string, ncclGetErrorString);
SAME_CALL(NcclCalls, get_last_error, ncclGetLastError);
SAME_CALL(NcclCalls, group_start, ncclGroupStart);
SAME_CALL(NcclCalls, group_end, ncclGroupEnd);
SAME_CALL(NcclCalls, all_reduce, ncclAllReduce);
SAME_CALL(NcclCalls, reduce_scatter, ncclReduceScatter);
SAME_CALL(NcclCalls, all_gather, ncclAllGather);
SAME_CALL(NcclCalls, broadcast, ncclBroadcast);
SAME_CALL(NcclCalls, reduce, ncclReduce);
SAME_CALL(NcclCalls, send, ncclSend);
SAME_CALL(NcclCalls, recv, ncclRecv);

SAME_VALUE(NcclResult::success, ncclSuccess);
SAME_VALUE(NcclResult::unhandled_cuda_error, ncclUnhandledCudaError);
SAME_VALUE(NcclResult::system_error, ncclSystemError);
SAME_VALUE(NcclResult::internal_error, ncclInternalError);
SAME_VALUE(NcclResult::invalid_argument, ncclInvalidArgument);
SAME_VALUE(NcclResult::invalid_usage, ncclInvalidUsage);
SAME_VALUE(NcclResult::remote_error, ncclRemoteError);
SAME_VALUE(NcclResult::in_progress, ncclInProgress);
SAME_VALUE(NcclType::u8, ncclUint8);
SAME_VALUE(NcclType::i32, ncclInt32);
SAME_VALUE(NcclType::f32, ncclFloat32);
SAME_VALUE(NcclType::bf16, ncclBfloat16);
SAME_VALUE(NcclReduction::sum, ncclSum);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

// The first members of every later ncclConfig_t: it only grows.
static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
SAME_VALUE(kNcclUnset, NCCL_CONFIG_UNDEF_INT);

SAME_CALL(CuCalls, init, cuInit);
SAME_CALL(CuCalls, driver_get_version, cuDriverGetVersion);
SAME_CALL(CuCalls, get_error_name, cuGetErrorName);
SAME_CALL(CuCalls, get_error_string, cuGetErrorString);
SAME_CALL(CuCalls, device_get_by_pci_bus_id, cuDeviceGetByPCIBusId);
SAME_CALL(CuCalls, device_primary_ctx_retain, cuDevicePrimaryCtxRetain);
SAME_CALL(CuCalls, ctx_set_current, cuCtxSetCurrent);
SAME_CALL(CuCalls, mem_get_info, cuMemGetInfo);
SAME_CALL(CuCalls, mem_alloc, cuMemAlloc);
SAME_CALL(CuCalls, mem_free, cuMemFree);
SAME_CALL(CuCalls, mem_alloc_host, cuMemAllocHost);
SAME_CALL(CuCalls, memset_d8_async, cuMemsetD8Async);
SAME_CALL(CuCalls, memcpy_htod_async, cuMemcpyHtoDAsync);
SAME_CALL(CuCalls, memcpy_dtoh_async, cuMemcpyDtoHAsync);
SAME_CALL(CuCalls, stream_create, cuStreamCreate);
SAME_CALL(CuCalls, event_create, cuEventCreate);
SAME_CALL(CuCalls, event_destroy, cuEventDestroy);
SAME_CALL(CuCalls, event_record, cuEventRecord);
SAME_CALL(CuCalls, event_query, cuEventQuery);
SAME_CALL(CuCalls, event_elapsed_time, cuEventElapsedTime);
SAME_CALL(CuCalls, module_load_data, cuModuleLoadData);
SAME_CALL(CuCalls, module_get_function, cuModuleGetFunction);
SAME_CALL(CuCalls, launch_kernel, cuLaunchKernel);

SAME_VALUE(CuResult::success, CUDA_SUCCESS);
SAME_VALUE(CuResult::invalid_value, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(CuResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CuResult::stub_library, CUDA_ERROR_STUB_LIBRARY);
SAME_VALUE(CuResult::insufficient_driver, 35);  // cudaErrorInsufficientDriver, which some drivers pass on
SAME_VALUE(CuResult::no_device, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(CuResult::invalid_device, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(CuResult::not_ready, CUDA_ERROR_NOT_READY);
SAME_VALUE(kCuStreamNonBlocking, CU_STREAM_NON_BLOCKING);
static_assert(std::is_same_v<CuDevice, CUdevice> && std::is_same_v<CuAddress, CUdeviceptr>);

#ifdef NETCHECK_TEST_NVML_HEADER
SAME_CALL(NvmlCalls, init, nvmlInit_v2);
SAME_CALL(NvmlCalls, device_count, nvmlDeviceGetCount_v2);
SAME_CALL(NvmlCalls, device_by_index, nvmlDeviceGetHandleByIndex_v2);
SAME_CALL(NvmlCalls, minor_number, nvmlDeviceGetMinorNumber);
SAME_CALL(NvmlCalls, pci_info, nvmlDeviceGetPciInfo_v3);
static_assert(sizeof(NvmlPciInfo) == sizeof(nvmlPciInfo_t));
static_assert(offsetof(NvmlPciInfo, bus_id) == offsetof(nvmlPciInfo_t, busId));
SAME_CALL(NvmlCalls, device_by_pci_bus_id, nvmlDeviceGetHandleByPciBusId_v2);
SAME_CALL(NvmlCalls, mig_mode, nvmlDeviceGetMigMode);
SAME_CALL(NvmlCalls, compute_processes, nvmlDeviceGetComputeRunningProcesses_v3);
SAME_CALL(NvmlCalls, remapped_rows, nvmlDeviceGetRemappedRows);
SAME_VALUE(NvmlResult::success, NVML_SUCCESS);
SAME_VALUE(NvmlResult::insufficient_size, NVML_ERROR_INSUFFICIENT_SIZE);
static_assert(sizeof(NvmlProcess) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(NvmlProcess, pid) == offsetof(nvmlProcessInfo_t, pid));
#endif

}  // namespace
}  // namespace netcheck::fabric::nccl
#endif

TEST(NcclAbi, IsWhatTheHeadersSay) {
#ifndef NETCHECK_TEST_NCCL_HEADERS
  GTEST_SKIP() << "nccl.h or cuda.h was not found";
#endif
}
