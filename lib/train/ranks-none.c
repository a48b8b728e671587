/* ranks-none.c - the functions of ranks.h in a build without MPI. ranks_join() fails. For a single
 * process the other functions have nothing to do. */
#include "lib/train/ranks.h"

int ranks_join(size_t count, struct err *e)
{
    return err_set(e, EXIT_BAD_USAGE, "--ranks %zu: built without MPI (libopenmpi-dev or "
                   "libmpich-dev, then make): expected no --ranks, or --parts %zu in one process",
                   count, count);
}

size_t ranks_me(void)
{
    return 0;
}

void ranks_sum(void *ctx, double *loss, float *g, size_t n, float *work)
{
    (void)ctx, (void)loss, (void)g, (void)n, (void)work;
}

void ranks_share(void *ctx, void *x, size_t bytes)
{
    (void)ctx, (void)x, (void)bytes;
}

void ranks_wait(void)
{
}

void ranks_leave(void)
{
}
