/* device.h - the one word that C and CUDA C do not share: a function marked HOST_DEVICE is compiled
 * for both, so that its arithmetic can be tested on the host. */
#ifndef BASE_DEVICE_H
#define BASE_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE static __host__ __device__ inline
#else
#define HOST_DEVICE static inline
#endif

#endif
