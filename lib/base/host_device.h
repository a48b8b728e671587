/* host_device.h - HOST_DEVICE marks a function that C and CUDA C both compile, so that the host can
 * test the arithmetic of the device. */
#ifndef BASE_HOST_DEVICE_H
#define BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE static __host__ __device__ inline
#else
#define HOST_DEVICE static inline
#endif

#endif
