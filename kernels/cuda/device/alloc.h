/* alloc.h - the device's memory as segments (segments.h), for open.cu. The operations are in
 * cuda.h.
 */
#ifndef KERNELS_CUDA_DEVICE_ALLOC_H
#define KERNELS_CUDA_DEVICE_ALLOC_H

#include "kernels/ops.h"

/* An allocator over cudaMalloc that counts in b->memory. Free it with segments_delete(). */
struct segments *alloc_open(struct backend *b);

#endif
