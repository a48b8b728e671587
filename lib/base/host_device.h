/* host_device.h - HOST_DEVICE marks a function that C and CUDA C both compile, so that the host can
 * test the arithmetic of the device. */
#pragma once

#ifdef __CUDACC__
#define HOST_DEVICE static __host__ __device__ inline
#else
#define HOST_DEVICE static inline
#endif
