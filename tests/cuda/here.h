/* here.h - abilities of the device that runs the tests, for tests that describe a device by
 * hand. */
#pragma once

#include "kernels/cuda/device/runtime.h"

static int attribute_here(enum cudaDeviceAttr name)
{
    int value;
    CHECK(cudaDeviceGetAttribute(&value, name, 0));
    return value;
}

/* Returns `bytes`, or the shared memory of this device if it has less. */
[[maybe_unused]] static size_t shared_here(size_t bytes)
{
    size_t most = (size_t)attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return bytes < most ? bytes : most;
}

/* Returns 1 if a kernel may overlap the kernel before it. */
[[maybe_unused]] static int overlap_here(void)
{
    return attribute_here(cudaDevAttrComputeCapabilityMajor) >= 9;
}
