/* loader.h - training batches, prepared ahead by separate threads.
 *
 *     struct loader *l = loader_open(&work, rows, first, end, threads, &e);
 *     for (int64_t step = first; step < end; step++)
 *         trainer_loss(t, loader_next(l), 1);
 *
 * A batch is a function of its step only (documents.h). The batches and their order are therefore
 * the same with any number of threads, and a training that resumes at step N gets the batches of an
 * uninterrupted one. */
#pragma once

#include "lib/base/err.h"
#include "lib/train/train_batch.h"

/* fill() fills *batch, whose arrays have `rows` entries, for a step. Several threads call fill() at
 * once. */
struct loader_work {
    void (*fill)(const void *ctx, int64_t step, struct train_batch *batch);
    const void *ctx;
};
struct loader;

/* Opens a loader for the steps first .. end - 1. threads 0: loader_next() fills each batch. Else up
 * to 2 * threads batches are prepared ahead. The caller's (loader_close). NULL: EXIT_INTERNAL, a
 * thread could not be started. */
struct loader *loader_open(const struct loader_work *work, size_t rows, int64_t first, int64_t end,
                           size_t threads, struct err *e);
/* The batch of the next step; borrowed until the next call. At most end - first calls. */
struct train_batch *loader_next(struct loader *loader);
/* Total time inside loader_next(): the time that training waited for data. */
int64_t loader_waited_ns(const struct loader *loader);
void loader_close(struct loader *loader); /* NULL is fine */
