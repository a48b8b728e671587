/* graph.h - recorded passes: CUDA graphs, by the key of a step (ops.run). */
#pragma once

#include "kernels/ops.h"

/* Make the table of records when the back end is opened, and free it when it is closed. */
void graph_open(struct backend *backend);
void graph_close(struct backend *backend);

/* 1 while operations are being recorded: no allocation, write or wait is allowed then. */
int graph_recording(const struct backend *backend);
/* Drops all records; called when memory that records may use is freed. */
void graph_drop(struct backend *backend);
