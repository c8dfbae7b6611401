// What topology declares of NVML, held to NVML's own header, where that was found. It is the compiler that
// tests.
#include <gtest/gtest.h>

#ifdef NETCHECK_TEST_NVML_HEADER
#include <nvml.h>

#include "same_abi.h"
#include "topology/nvml_abi.h"

namespace netcheck::topology {
namespace {

SAME_CALL(NvmlQuestions, init, nvmlInitWithFlags);
SAME_CALL(NvmlQuestions, by_address, nvmlDeviceGetHandleByPciBusId_v2);
SAME_CALL(NvmlQuestions, count, nvmlDeviceGetCount_v2);
SAME_CALL(NvmlQuestions, driver_version, nvmlSystemGetDriverVersion);
SAME_CALL(NvmlQuestions, name, nvmlDeviceGetName);
SAME_CALL(NvmlQuestions, uuid, nvmlDeviceGetUUID);
SAME_CALL(NvmlQuestions, mig, nvmlDeviceGetMigMode);
SAME_CALL(NvmlQuestions, throttle, nvmlDeviceGetCurrentClocksThrottleReasons);
SAME_CALL(NvmlQuestions, power_limit, nvmlDeviceGetEnforcedPowerLimit);
SAME_CALL(NvmlQuestions, power_default, nvmlDeviceGetPowerManagementDefaultLimit);
SAME_CALL(NvmlQuestions, link_state, nvmlDeviceGetNvLinkState);
SAME_CALL(NvmlQuestions, link_remote, nvmlDeviceGetNvLinkRemoteDeviceType);
SAME_CALL(NvmlQuestions, link_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2);

SAME_VALUE(NvmlAnswer::success, NVML_SUCCESS);
SAME_VALUE(NvmlAnswer::invalid_argument, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(NvmlAnswer::not_supported, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(NvmlAnswer::no_permission, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(NvmlAnswer::not_found, NVML_ERROR_NOT_FOUND);
SAME_VALUE(NvmlAnswer::gpu_is_lost, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(NvmlRemote::gpu, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME_VALUE(NvmlRemote::ibm_npu, NVML_NVLINK_DEVICE_TYPE_IBMNPU);
SAME_VALUE(NvmlRemote::nvswitch, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(NvmlRemote::unknown, NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
SAME_VALUE(kNvmlHwSlowdown, nvmlClocksThrottleReasonHwSlowdown);
SAME_VALUE(kNvmlSwThermal, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME_VALUE(kNvmlHwThermal, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_VALUE(kNvmlPowerBrake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_VALUE(kNvmlMostLinks, NVML_NVLINK_MAX_LINKS);
SAME_VALUE(kNvmlNoAttach, NVML_INIT_FLAG_NO_ATTACH);

static_assert(sizeof(NvmlPci) == sizeof(nvmlPciInfo_t));
static_assert(offsetof(NvmlPci, legacy_address) == offsetof(nvmlPciInfo_t, busIdLegacy));
static_assert(offsetof(NvmlPci, address) == offsetof(nvmlPciInfo_t, busId));

}  // namespace
}  // namespace netcheck::topology
#endif

TEST(NvmlAbi, IsWhatTheHeaderSays) {
#ifndef NETCHECK_TEST_NVML_HEADER
  GTEST_SKIP() << "nvml.h was not found";
#endif
}
