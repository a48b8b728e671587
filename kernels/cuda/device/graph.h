/* graph.h - recorded passes: CUDA graphs, by the key of a step (ops.run).
 */
#ifndef KERNELS_CUDA_DEVICE_GRAPH_H
#define KERNELS_CUDA_DEVICE_GRAPH_H

#include "kernels/ops.h"

/* Made at open, given back at close. */
void graph_open(struct backend *b);
void graph_close(struct backend *b);

/* 1 while operations are being recorded: nothing may be allocated, written or waited for. */
int graph_recording(const struct backend *b);
/* Forgets all records: what they work on is gone. */
void graph_drop(struct backend *b);

#endif
