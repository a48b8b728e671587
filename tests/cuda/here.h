/* here.h - what the device at hand allows, for tests that describe one by hand. */
#ifndef TESTS_CUDA_HERE_H
#define TESTS_CUDA_HERE_H

#include "kernels/cuda/device/runtime.h"

static int attribute_here(enum cudaDeviceAttr name)
{
    int value;
    CHECK(cudaDeviceGetAttribute(&value, name, 0));
    return value;
}

/* So much shared memory, or what there is. */
[[maybe_unused]] static size_t shared_here(size_t bytes)
{
    size_t most = (size_t)attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return bytes < most ? bytes : most;
}

/* 1: kernels may be brought up before the one ahead is done. */
[[maybe_unused]] static int overlap_here(void)
{
    return attribute_here(cudaDevAttrComputeCapabilityMajor) >= 9;
}

#endif
