/* pool.h - a fixed set of threads that run one loop at a time.
 *
 *     static void rows(void *ctx, size_t begin, size_t end, size_t worker) { ... }
 *     pool_run(pool, n, 1, rows, &ctx);
 *
 * The range 0..n is cut into lanes: contiguous parts of equal length, one per thread, or fewer when
 * n has fewer than `threads` grains (a grain is the smallest part worth a call). A thread runs its
 * lane in a few calls, front to back, and then takes work from unfinished lanes. No call has less
 * than half a grain, unless n is less. Every index runs exactly once. The result of an index must
 * not depend on the thread or on where a call begins: then results are bit-identical at every
 * thread count. The lanes depend only on n, grain and the number of threads: memory that a loop
 * touches first lies near the threads that use it in later loops of the same n (NUMA).
 *
 * Cost: a loop of one grain (n <= grain) runs on the caller, in a few nanoseconds. Starting a loop
 * takes 0.2 microseconds on spinning threads that share a core, 0.8 microseconds on spinning
 * threads on two cores, and tens of microseconds on sleeping threads (measured with few threads).
 * For many threads a model says: start and end take about log(threads) steps, without locks
 * (tests/unit/test-pool-steps.c). */
#pragma once

#include <stddef.h>

#include "lib/base/linkage.h"

C_BEGIN

struct pool;
/* Runs the indices begin .. end - 1. worker: number of the thread, 0 .. threads - 1. */
typedef void pool_task(void *ctx, size_t begin, size_t end, size_t worker);

/* Starts a pool. threads 0: one thread for each physical core that the affinity mask and the quotas
 * of the control groups allow. If there are as many threads as allowed cores, each thread is bound
 * to one core. */
struct pool *pool_new(size_t threads);
size_t pool_threads(const struct pool *pool);
/* Returns when every index has run. Do not call it from inside a task, or from two threads at
 * once. */
void pool_run(struct pool *pool, size_t n, size_t grain, pool_task *task, void *ctx);
void pool_free(struct pool *pool);

C_END
