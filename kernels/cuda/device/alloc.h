/* alloc.h - the device's memory as segments (segments.h), for open.cu. The operations are in
 * cuda.h. */
#pragma once

#include "kernels/ops.h"

/* An allocator over cudaMalloc that counts in backend->memory. Free it with segments_delete(). */
struct segments *alloc_open(struct backend *backend);

/* cuda_free for a block of cuda_alloc that no recorded pass uses: none is dropped, so it may be
 * called while a pass runs for the first time. Idle segments go back to the system. */
void alloc_return(struct backend *backend, void *p);
