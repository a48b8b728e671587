/* here.h - abilities of the device at hand, for tests that describe one by hand. */
#pragma once

#include "kernels/cuda/device/runtime.h"

static int attribute_here(enum cudaDeviceAttr name)
{
    int value;
    CHECK(cudaDeviceGetAttribute(&value, name, 0));
    return value;
}

/* That much shared memory, or as much as there is. */
[[maybe_unused]] static size_t shared_here(size_t bytes)
{
    size_t most = (size_t)attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return bytes < most ? bytes : most;
}

/* 1 if kernels may overlap the kernel ahead. */
[[maybe_unused]] static int overlap_here(void)
{
    return attribute_here(cudaDevAttrComputeCapabilityMajor) >= 9;
}
