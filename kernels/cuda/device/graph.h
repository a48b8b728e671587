/* graph.h - recorded passes: CUDA graphs, by the key of a step (ops.run). */
#pragma once

#include "kernels/ops.h"

/* Made at open, freed at close. */
void graph_open(struct backend *backend);
void graph_close(struct backend *backend);

/* 1 while operations are being recorded: no allocation, write or wait is allowed then. */
int graph_recording(const struct backend *backend);
/* Drops all records: the memory that they use is gone. */
void graph_drop(struct backend *backend);
