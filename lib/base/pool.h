/* pool.h - a fixed set of threads that run one loop at a time.
 *
 *     static void rows(void *ctx, size_t begin, size_t end, size_t worker) { ... }
 *     pool_run(pool, n, 1, rows, &ctx);
 *
 * The range 0..n is cut into one contiguous lane per thread, all equally long; into fewer where
 * there are fewer grains. A thread runs its lane in a few calls, front to back, and then helps some
 * that are not through. No call has less than half a grain, unless n is less. Every index is run
 * exactly once; which thread runs it, and where a call begins, must not change its result. The work
 * that an index owns (an output column, a query head, a span of values) is therefore the same at
 * every thread count, and so are the bits. The lanes depend on n, grain and the number of threads
 * alone: memory that a loop touches first lies near the threads that will use most of it in later
 * loops of the same n (NUMA).
 *
 * A loop that fits one part (n <= grain) runs on the caller and costs a few nanoseconds; starting
 * one on threads that still spin costs 0.2 microseconds where two share a core, 0.8 where they do
 * not, on sleeping ones some tens. All were measured with few threads. For many there is a model:
 * beginning and ending a loop takes steps in proportion to log(threads), and nothing is locked
 * (tests/unit/test-pool-steps.c).
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pool;
typedef void pool_task(void *ctx, size_t begin, size_t end, size_t worker);

/* threads = 0: one for each physical core that the affinity mask and the quotas of our control
 * groups leave us. As many threads as such cores are bound to them, one each. */
struct pool *pool_new(size_t threads);
size_t pool_threads(const struct pool *p);
/* Returns when all is done. Not from inside a task, nor from two threads at once. */
void pool_run(struct pool *p, size_t n, size_t grain, pool_task *task, void *ctx);
void pool_free(struct pool *p);

#ifdef __cplusplus
}
#endif

#endif
