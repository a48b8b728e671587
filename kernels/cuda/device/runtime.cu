/* runtime.cu - checks the results of calls of the CUDA runtime, and waits for the device
 * (runtime.h). Every failure except lack of memory ends the process, because later results cannot
 * be trusted. The watchdog watches every wait, so that a device that hangs is noticed. */
#include "kernels/cuda/device/runtime.h"

#include <stdio.h>

#include "lib/base/err.h"

/* 1 if every call fails after this error until the process ends (CUDA Runtime API, error types). */
static int is_sticky(int status)
{
    enum { ECC = 214, ILLEGAL_ADDRESS = 700, TIMEOUT = 702, ASSERT = 710, STACK = 714,
           LAUNCH_FAILURE = 719 };
    return status == ECC || status == ILLEGAL_ADDRESS || status == TIMEOUT || status == ASSERT ||
           (status >= STACK && status <= LAUNCH_FAILURE);
}

void runtime_check(cudaError_t status, const char *call, const char *file, int line)
{
    char text[512];
    if (status == cudaSuccess)
        return;
    snprintf(text, sizeof text, "%.200s: %s (%d): %s%s", call, cudaGetErrorName(status),
             (int)status, cudaGetErrorString(status),
             is_sticky(status) ? "; the device is lost to this process, a restart may help" : "");
    err_machine(file, line, text);
}

int runtime_check_memory(cudaError_t status, const char *call, const char *file, int line)
{
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* clears the error, so that no later call reports it again */
        return 0;
    }
    runtime_check(status, call, file, line);
    return 1;
}

void runtime_wait(const struct backend *backend, const char *what)
{
    waiting here(device_of(backend), what);
    CHECK(cudaStreamSynchronize(device_stream(backend)));
}

void runtime_wait_event(const struct backend *backend, cudaEvent_t event, const char *what)
{
    waiting here(device_of(backend), what);
    CHECK(cudaEventSynchronize(event));
}
