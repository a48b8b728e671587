/* open.cu - chooses a device, checks that it can be used, reads its abilities, and makes the parts
 * of the back end on it. These parts are made when the back end is opened, and freed in the
 * opposite order when it is closed.
 *
 * Until a device has done work, a missing, old or busy device is no failure: the answer is
 * EXIT_NO_DEVICE (69), and the caller may use the CPU. Afterwards every failure except lack of
 * memory ends the process (runtime.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/alloc.h"
#include "kernels/cuda/device/event.h"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/device/segments.h"
#include "kernels/cuda/device/transfer.h"
#include "kernels/cuda/product/gemm.h"
#include "kernels/cuda/product/product.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* ---- which device ---- */

/* A kernel that is never launched. All files are compiled for one list of architectures, so if this
 * object has code for probe() on a device, it has code for all kernels. */
static __global__ void probe(void)
{
    wait_for_inputs();
    let_next_start();
}

/* 1 for errors that only mean that this process cannot use the device now. */
static int is_refusal(cudaError_t status)
{
    switch (status) {
    case cudaErrorMemoryAllocation:
    case cudaErrorInitializationError:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorOperatingSystem: /* no permission for /dev/nvidia* */
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice: return 1;
    default: return 0;
    }
}

static int attribute(enum cudaDeviceAttr name, int index)
{
    int value = 0;
    CHECK(cudaDeviceGetAttribute(&value, name, index));
    return value;
}

/* Reports why device `index` cannot be used. */
static int refuse(cudaError_t status, const char *call, int index, struct err *e)
{
    (void)cudaGetLastError();
    switch (status) {
    case cudaErrorDevicesUnavailable:
        return err_set(e, EXIT_NO_DEVICE, "CUDA device %d is taken by another process (exclusive "
                       "mode): wait for it or choose another", index);
    case cudaErrorMemoryAllocation:
        return err_set(e, EXIT_NO_DEVICE, "CUDA device %d has no memory left: wait for the other "
                       "processes on it or choose another", index);
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice: {
        int major = attribute(cudaDevAttrComputeCapabilityMajor, index);
        int minor = attribute(cudaDevAttrComputeCapabilityMinor, index);
        return err_set(e, EXIT_NO_DEVICE, "this build has no code for CUDA device %d, which has "
                       "compute capability %d.%d: build with CUDA_ARCH=%d%d",
                       index, major, minor, major, minor);
    }
    default:
        return err_set(e, EXIT_NO_DEVICE, "CUDA device %d: %s: %s (%d): %s", index, call,
                       cudaGetErrorName(status), (int)status, cudaGetErrorString(status));
    }
}

static int refuse_all(cudaError_t status, struct err *e)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int driver = 0;
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        driver = 0;
    if (!driver && status != cudaErrorStubLibrary)
        return err_set(e, EXIT_NO_DEVICE, "no NVIDIA driver is installed (libcuda.so.1): install "
                       "one, or run on the CPU");
    if (status == cudaErrorInsufficientDriver)
        return err_set(e, EXIT_NO_DEVICE, "the NVIDIA driver is for CUDA %d.%d, this build needs "
                       "%d.%d: update the driver, or build with an older toolkit",
                       driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                       CUDART_VERSION % 1000 / 10);
    if ((status == cudaSuccess || status == cudaErrorNoDevice) && visible)
        return err_set(e, EXIT_NO_DEVICE, "no CUDA device: CUDA_VISIBLE_DEVICES is '%.100s'",
                       visible);
    if (status == cudaSuccess || status == cudaErrorNoDevice)
        return err_set(e, EXIT_NO_DEVICE, "there is an NVIDIA driver but no CUDA device");
    return err_set(e, EXIT_NO_DEVICE, "no usable CUDA device: %s (%d): %s",
                   cudaGetErrorName(status), (int)status, cudaGetErrorString(status));
}

static int count_devices(int *n, struct err *e)
{
    *n = 0;
    cudaError_t status = cudaGetDeviceCount(n);
    if (status == cudaSuccess && *n)
        return 0;
    if (!is_refusal(status))
        runtime_check(status, "cudaGetDeviceCount", __FILE__, __LINE__);
    return refuse_all(status, e);
}

/* Makes `index` the device of this thread, and checks that the device works. Returns -1 if it does
 * not; *e has the reason. */
static int try_device(int index, struct err *e)
{
    struct cudaFuncAttributes unused;
    const char *call = "cudaSetDevice";
    cudaError_t status = cudaSetDevice(index);
    if (status == cudaSuccess) {
        call = "cudaFree"; /* frees nothing; before CUDA 12 this call starts the device */
        status = cudaFree(NULL);
    }
    if (status == cudaSuccess) {
        call = "cudaFuncGetAttributes";
        status = cudaFuncGetAttributes(&unused, (const void *)probe);
    }
    if (status == cudaSuccess)
        return 0;
    if (!is_refusal(status))
        runtime_check(status, call, __FILE__, __LINE__);
    return refuse(status, call, index, e);
}

static struct cudaDeviceProp properties(int index)
{
    struct cudaDeviceProp cudaDeviceProp;
    CHECK(cudaGetDeviceProperties(&cudaDeviceProp, index));
    return cudaDeviceProp;
}

/* 1 if other processes hold more than a tenth of the memory of this thread's device. */
static int is_busy(void)
{
    size_t available, total;
    CHECK(cudaMemGetInfo(&available, &total));
    return available < total / 10 * 9;
}

/* The device with the most memory among devices i with passed[i] 0; among equals the first. -1:
 * none is left. */
static int largest(int n, const unsigned char *passed)
{
    int best = -1;
    size_t most = 0;
    for (int i = 0; i < n; i++) {
        size_t bytes = passed[i] ? 0 : properties(i).totalGlobalMem;
        if (bytes > most) {
            most = bytes;
            best = i;
        }
    }
    return best;
}

/* Makes the largest usable idle device the device of this thread, or the largest busy one if all
 * are busy. Returns the index of the device, or -1 if none can be used; *e then has the reason for
 * the largest device. */
static int choose_device(int n, struct err *e)
{
    unsigned char passed[256];
    struct err why = {};
    int busy = -1;
    memset(passed, 0, sizeof passed);
    n = n < (int)sizeof passed ? n : (int)sizeof passed;
    for (int i; (i = largest(n, passed)) >= 0; passed[i] = 1) {
        if (try_device(i, &why))
            continue;
        if (n == 1 || !is_busy())
            return i;
        busy = busy < 0 ? i : busy;
    }
    if (busy >= 0)
        return try_device(busy, e) ? -1 : busy;
    return err_set(e, why.code, "%s", why.text);
}

/* ---- open and close ---- */

static void describe(struct backend *backend, int index)
{
    struct device *device = device_of(backend);
    int driver = 0;
    CHECK(cudaDriverGetVersion(&driver));
    device->major = attribute(cudaDevAttrComputeCapabilityMajor, index);
    device->minor = attribute(cudaDevAttrComputeCapabilityMinor, index);
    device->sms = attribute(cudaDevAttrMultiProcessorCount, index);
    device->shared_max = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
    device->cache = (size_t)attribute(cudaDevAttrL2CacheSize, index);
    /* graphs can hold overlapping launches since CUDA 12.3 */
    device->overlap = device->major >= 9 && CUDART_VERSION >= 12030 && driver >= 12030;
    snprintf(backend->name, sizeof backend->name, "%.63s", properties(index).name);
    snprintf(backend->level, sizeof backend->level, "sm_%d%d", device->major, device->minor);
    CHECK(cudaDeviceGetPCIBusId(backend->address, sizeof backend->address, index));
    for (char *letter = backend->address; *letter; letter++)
        *letter = (char)tolower((unsigned char)*letter);
}

/* The watchdog starts here and not earlier, because a driver may compile code first, which can take
 * minutes. */
static int open_parts(struct backend *backend, int patience, struct err *e)
{
    struct device *device = device_of(backend);
    device->watch = watchdog_new(patience);
    watchdog_start(device->watch);
    CHECK(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    device->segments = alloc_open(backend);
    transfer_open(backend);
    graph_open(backend);
    event_open(backend);
    cuda_attention_open(backend);
    wide_open(backend);
    return gemm_open(backend, e);
}

/* The linker hides all other symbols of the object. */
__attribute__((visibility("default"))) int crossover_cuda_open(struct backend *backend, int index,
                                                               struct err *e)
{
    int n, patience = watchdog_seconds(getenv("CROSSOVER_WATCHDOG_S"));
    err_share(backend->witness);
    if (patience < 0)
        return err_set(e, EXIT_BAD_USAGE, "CROSSOVER_WATCHDOG_S: expected seconds (0: never), got "
                       "'%.100s'", getenv("CROSSOVER_WATCHDOG_S"));
    if (count_devices(&n, e))
        return -1;
    if (index >= n)
        return err_set(e, EXIT_NO_DEVICE, "there is no CUDA device %d, the last is %d", index,
                       n - 1);
    if (index >= 0 ? try_device(index, e) : (index = choose_device(n, e)) < 0)
        return -1;
    backend->ops = &cuda_ops;
    backend->device = mem_zero(1, sizeof(struct device));
    describe(backend, index);
    if (open_parts(backend, patience, e)) {
        cuda_close(backend);
        return -1;
    }
    return 0;
}

void cuda_close(struct backend *backend)
{
    struct device *device = device_of(backend);
    runtime_wait(backend, "close");
    gemm_close(backend);
    cuda_attention_close(backend);
    event_close(backend);
    graph_close(backend);
    transfer_close(backend);
    segments_delete(device->segments);
    CHECK(cudaStreamDestroy(device->stream));
    watchdog_free(device->watch);
    free(device);
    backend->device = NULL;
}
