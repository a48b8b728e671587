/* device.cc - the emulated devices, their properties, and calls that fail on request. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulate/stream.h"

namespace emulate {

static unsigned long calls;
static cudaError_t last, sticky;
static int current;

std::recursive_mutex &lock()
{
    static std::recursive_mutex one;
    return one;
}

/* Source: CUDA Runtime API, error codes after which "the process must be terminated". */
static bool is_sticky(cudaError_t status)
{
    return status == cudaErrorECCUncorrectable || status == cudaErrorIllegalAddress ||
           status == 702 || status == 710 || (status >= 714 && status <= cudaErrorLaunchFailure);
}

/* The error that this call must return, if any. */
cudaError_t planted()
{
    unsigned long n = 0;
    int code = 0;
    const char *text = getenv("EMULATE_FAIL");
    calls++;
    if (!sticky && text && sscanf(text, "%lu:%d", &n, &code) == 2 && n == calls) {
        if (!is_sticky(static_cast<cudaError_t>(code)))
            return static_cast<cudaError_t>(code);
        sticky = static_cast<cudaError_t>(code);
    }
    return sticky;
}

cudaError_t noted(cudaError_t status)
{
    if (status && status != cudaErrorNotReady)
        last = status;
    return status;
}

int device_count()
{
    return static_cast<int>(setting("EMULATE_DEVICES", 1));
}

int device_index()
{
    return current;
}

static int driver()
{
    return static_cast<int>(setting("EMULATE_DRIVER", CUDART_VERSION));
}

/* Compute capability times 10. */
static int capability()
{
    return static_cast<int>(lround(setting("EMULATE_CAPABILITY", 9.0) * 10));
}

/* Source: CUDA C++ Programming Guide, "Technical specifications per compute capability". */
size_t shared_most()
{
    switch (capability()) {
    case 75: return 64 << 10;
    case 80:
    case 87: return 163 << 10;
    case 86:
    case 89:
    case 120: return 99 << 10;
    default: return 227 << 10;
    }
}

static cudaError_t attribute(int *value, cudaDeviceAttr what)
{
    switch (what) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate: *value = 1000000; break;
    case cudaDevAttrMultiProcessorCount:
        *value = static_cast<int>(setting("EMULATE_SMS", 16));
        break;
    case cudaDevAttrPciBusId: *value = device_index() + 1; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 64; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrComputeCapabilityMajor: *value = capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = capability() % 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = static_cast<int>(shared_most()) + 1024;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(shared_most());
        break;
    default: *value = 0;
    }
    return cudaSuccess;
}

static cudaError_t valid_device(int index)
{
    return index >= 0 && index < device_count() ? cudaSuccess : cudaErrorInvalidDevice;
}

} // namespace emulate

using namespace emulate;

cudaError_t cudaGetLastError(void)
{
    std::lock_guard<std::recursive_mutex> one_at_a_time(lock());
    cudaError_t status = last;
    last = sticky;
    return status;
}

struct words {
    cudaError_t status;
    const char *name, *text;
};
static const struct words said[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorStubLibrary, "cudaErrorStubLibrary",
     "the CUDA driver library that was loaded is the toolkit's, for linking alone"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorOperatingSystem, "cudaErrorOperatingSystem",
     "OS call failed or operation not supported on this OS"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    {cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch",
     "system has unsupported display driver / cuda driver combination"},
    {cudaErrorCompatNotSupportedOnDevice, "cudaErrorCompatNotSupportedOnDevice",
     "forward compatibility was attempted on non supported HW"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

static const struct words *words_for(cudaError_t status)
{
    for (const struct words &w : said)
        if (w.status == status)
            return &w;
    return nullptr;
}

const char *cudaGetErrorName(cudaError_t status)
{
    const struct words *w = words_for(status);
    return w ? w->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t status)
{
    const struct words *w = words_for(status);
    return w ? w->text : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int *count)
{
    return call([=] {
        *count = driver() < CUDART_VERSION ? 0 : device_count();
        return *count                      ? cudaSuccess
               : driver() < CUDART_VERSION ? cudaErrorInsufficientDriver
                                           : cudaErrorNoDevice;
    });
}

cudaError_t cudaSetDevice(int index)
{
    return call([=] {
        if (!valid_device(index))
            current = index;
        return valid_device(index);
    });
}

cudaError_t cudaGetDevice(int *index)
{
    return call([=] {
        *index = current;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int index)
{
    return call([=] { return valid_device(index) ? valid_device(index) : attribute(value, what); });
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int index)
{
    return call([=] {
        memset(p, 0, sizeof *p);
        snprintf(p->name, sizeof p->name, "emulated device (host)");
        p->totalGlobalMem = static_cast<size_t>(setting("EMULATE_MEMORY", 0x1p32));
        p->sharedMemPerBlock = 48 << 10;
        p->sharedMemPerBlockOptin = shared_most();
        attribute(&p->major, cudaDevAttrComputeCapabilityMajor);
        attribute(&p->minor, cudaDevAttrComputeCapabilityMinor);
        attribute(&p->multiProcessorCount, cudaDevAttrMultiProcessorCount);
        attribute(&p->l2CacheSize, cudaDevAttrL2CacheSize);
        p->pciBusID = index + 1;
        p->uuid.bytes[0] = static_cast<char>(index + 1);
        return valid_device(index);
    });
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int room, int index)
{
    return call([=] {
        snprintf(id, static_cast<size_t>(room), "0000:%02x:00.0", index + 1);
        return valid_device(index);
    });
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return call([=] {
        *version = driver();
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *)
{
    return call([=] {
        *a = {0, 1024, 48 << 10};
        return capability() < 80 ? cudaErrorNoKernelImageForDevice : cudaSuccess;
    });
}
