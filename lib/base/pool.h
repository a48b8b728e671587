/* pool.h - a fixed set of threads that run one loop at a time.
 *
 *     static void rows(void *ctx, size_t begin, size_t end, size_t worker) { ... }
 *     pool_run(pool, n, 1, rows, &ctx);
 *
 * The range 0..n is cut into one contiguous part per thread, at multiples of `grain`. Every index
 * is run exactly once; which thread runs it must not change its result. The work that an index owns
 * (an output column, a query head) is therefore the same at every thread count, and so are the
 * bits.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

struct pool;
typedef void pool_task(void *ctx, size_t begin, size_t end, size_t worker);

/* threads = 0: the processors that the affinity mask and the cgroup quota leave us. */
struct pool *pool_new(size_t threads);
size_t pool_threads(const struct pool *p);
void pool_run(struct pool *p, size_t n, size_t grain, pool_task *task, void *ctx);
void pool_free(struct pool *p);

#endif
