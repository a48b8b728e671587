/* alloc.h - makes the allocator of device memory (segments.h), for open.cu. The operations alloc
 * and free are in cuda.h. */
#pragma once

#include "kernels/ops.h"

/* An allocator over cudaMalloc that counts in backend->memory. Free it with segments_delete(). */
struct segments *alloc_open(struct backend *backend);

/* Frees a block of cuda_alloc that no recorded pass uses, and gives idle segments back to the
 * system. Unlike cuda_free it drops no recorded passes, so it may be called while a pass runs for
 * the first time. */
void alloc_return(struct backend *backend, void *p);
