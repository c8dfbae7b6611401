// The part of NCCL's and the CUDA driver's binary interface that the module uses, declared here instead of
// taken from nccl.h and cuda.h: so the module is built on every machine, with one result, where a toolkit is
// and where none is. What is declared here has not changed since NCCL 2.18 and CUDA 11; where the real
// headers are found, tests/unit/fabric_nccl_abi_test.cpp holds every declaration to them.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace netcheck::fabric::nccl {

// --- NCCL -------------------------------------------------------------------------------------------------

struct NcclComm;  ///< opaque: one rank of a communicator

enum class NcclResult : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};
enum class NcclType : int { u8 = 1, i32 = 2, f32 = 7, bf16 = 9 };
enum class NcclReduction : int { sum = 0 };

/// A secret of its communicator: who has it may join.
struct NcclId {
  std::array<char, 128> bytes;
};

inline constexpr int kNcclUnset = INT_MIN;

/// NCCL 2.18's: a later NCCL reads the size and the version, and takes its defaults for what is not there.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21'800;
  int blocking = kNcclUnset;
  int cga_cluster_size = kNcclUnset;
  int min_ctas = kNcclUnset;
  int max_ctas = kNcclUnset;
  const char* net_name = nullptr;
  int split_share = kNcclUnset;
};

struct CuStream;

struct NcclCalls {
  NcclResult (*get_version)(int*);
  NcclResult (*get_unique_id)(NcclId*);
  NcclResult (*comm_init_rank_config)(NcclComm**, int ranks, NcclId, int rank, NcclConfig*);
  NcclResult (*comm_get_async_error)(NcclComm*, NcclResult*);
  const char* (*get_error_string)(NcclResult);
  const char* (*get_last_error)(NcclComm*);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_reduce)(const void*, void*, std::size_t, NcclType, NcclReduction, NcclComm*, CuStream*);
  NcclResult (*reduce_scatter)(const void*, void*, std::size_t, NcclType, NcclReduction, NcclComm*,
                               CuStream*);
  NcclResult (*all_gather)(const void*, void*, std::size_t, NcclType, NcclComm*, CuStream*);
  NcclResult (*broadcast)(const void*, void*, std::size_t, NcclType, int root, NcclComm*, CuStream*);
  NcclResult (*reduce)(const void*, void*, std::size_t, NcclType, NcclReduction, int root, NcclComm*,
                       CuStream*);
  NcclResult (*send)(const void*, std::size_t, NcclType, int peer, NcclComm*, CuStream*);
  NcclResult (*recv)(void*, std::size_t, NcclType, int peer, NcclComm*, CuStream*);
};

// --- the CUDA driver --------------------------------------------------------------------------------------

struct CuContext;
struct CuModule;
struct CuFunction;
struct CuEvent;

enum class CuResult : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  stub_library = 34,  ///< a toolkit's libcuda.so, without a driver
  insufficient_driver = 35,
  no_device = 100,
  invalid_device = 101,
  not_ready = 600
};
using CuDevice = int;
using CuAddress = unsigned long long;  ///< of memory on a device

inline constexpr unsigned kCuStreamNonBlocking = 1;  ///< does not wait for the default stream

struct CuCalls {
  CuResult (*init)(unsigned flags);
  CuResult (*driver_get_version)(int*);
  CuResult (*get_error_name)(CuResult, const char**);
  CuResult (*get_error_string)(CuResult, const char**);
  CuResult (*device_get_by_pci_bus_id)(CuDevice*, const char*);
  CuResult (*device_primary_ctx_retain)(CuContext**, CuDevice);
  CuResult (*ctx_set_current)(CuContext*);
  CuResult (*mem_get_info)(std::size_t* free, std::size_t* total);
  CuResult (*mem_alloc)(CuAddress*, std::size_t);
  CuResult (*mem_free)(CuAddress);
  CuResult (*mem_alloc_host)(void**, std::size_t);
  CuResult (*memset_d8_async)(CuAddress, unsigned char, std::size_t, CuStream*);
  CuResult (*memcpy_htod_async)(CuAddress, const void*, std::size_t, CuStream*);
  CuResult (*memcpy_dtoh_async)(void*, CuAddress, std::size_t, CuStream*);
  CuResult (*stream_create)(CuStream**, unsigned flags);
  CuResult (*event_create)(CuEvent**, unsigned flags);
  CuResult (*event_destroy)(CuEvent*);
  CuResult (*event_record)(CuEvent*, CuStream*);
  CuResult (*event_query)(CuEvent*);
  CuResult (*event_elapsed_time)(float* milliseconds, CuEvent* from, CuEvent* to);
  CuResult (*module_load_data)(CuModule**, const void*);
  CuResult (*module_get_function)(CuFunction**, CuModule*, const char*);
  CuResult (*launch_kernel)(CuFunction*, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream*,
                            void** parameters, void** extra);
};

// --- NVML, the driver's library for watching --------------------------------------------------------------

struct NvmlDevice;

enum class NvmlResult : int { success = 0, insufficient_size = 7 };

struct NvmlProcess {
  unsigned pid = 0;
  unsigned long long memory = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

struct NvmlPciInfo {
  std::array<char, 16> short_bus{};
  unsigned domain = 0, bus = 0, device = 0, id = 0, subsystem = 0;
  std::array<char, 32> bus_id{};  ///< "00000000:1B:00.0"
};

struct NvmlCalls {
  NvmlResult (*init)();
  NvmlResult (*device_count)(unsigned*);
  NvmlResult (*device_by_index)(unsigned, NvmlDevice**);
  NvmlResult (*minor_number)(NvmlDevice*, unsigned*);
  NvmlResult (*pci_info)(NvmlDevice*, NvmlPciInfo*);
  NvmlResult (*device_by_pci_bus_id)(const char*, NvmlDevice**);
  NvmlResult (*mig_mode)(NvmlDevice*, unsigned* current, unsigned* pending);
  NvmlResult (*compute_processes)(NvmlDevice*, unsigned* count, NvmlProcess*);
  NvmlResult (*remapped_rows)(NvmlDevice*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed);
};

}  // namespace netcheck::fabric::nccl
