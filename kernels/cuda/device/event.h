/* event.h - points in time on the device (ops.event_record, ops.event_wait).
 */
#ifndef KERNELS_CUDA_DEVICE_EVENT_H
#define KERNELS_CUDA_DEVICE_EVENT_H

#include "kernels/ops.h"

/* Made at open, freed at close. */
void event_open(struct backend *b);
void event_close(struct backend *b);

#endif
