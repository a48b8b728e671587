/* ranks.h - processes that train one model together, each a part of every batch: data parallel by
 * MPI, where the build found one (pkg-config ompi-c or mpich).
 *
 * Parts are summed up in the order of the ranks, whatever order they arrive in, so N processes
 * learn the same bits as one with --parts N. Nothing else is exchanged while training: all make the
 * same update of the same values. Posteriors of texts belong to a part alone.
 */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include <stddef.h>

#include "lib/base/err.h"

/* Joins the `count` processes that were started together (mpirun -n COUNT). -1: EXIT_BAD_USAGE when
 * they are not that many, or when this build knows no MPI. Once in a process. */
int ranks_join(size_t count, struct err *e);
size_t ranks_me(void); /* from 0 */
/* For all to call: loss and g[n] become the sums over all, in order. work: n floats. */
void ranks_sum(void *ctx, double *loss, float *g, size_t n, float *work);
/* For all to call: the bytes of rank 0 come to all. */
void ranks_share(void *ctx, void *x, size_t bytes);
void ranks_wait(void); /* until all are here */
void ranks_leave(void);

#endif
