/* ranks.h - data-parallel training by several MPI processes, each of which computes a part of every
 * batch. Needs a build with MPI (pkg-config ompi-c or mpich).
 *
 * Rank 0 adds the gradients in the order of the ranks, in whatever order they arrive, so N
 * processes compute the same bits as one process with --parts N. A step exchanges only loss and
 * gradients: all processes make the same update of the same values. The posterior of a text stays
 * in the process that computes the text. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

/* Joins the `count` processes started by mpirun -n COUNT; call it once per process. -1
 * (EXIT_BAD_USAGE): the number of processes is not `count`, or this build has no MPI. */
int ranks_join(size_t count, struct err *e);
size_t ranks_me(void); /* the rank of this process, from 0 */
/* Every process must call these functions. ranks_sum(): loss and g[n] become the sums over all
 * ranks, added in their order; work: n floats. ranks_share(): x of rank 0 is copied to every
 * rank. */
void ranks_sum(void *ctx, double *loss, float *g, size_t n, float *work);
void ranks_share(void *ctx, void *x, size_t bytes);
void ranks_wait(void); /* returns when all processes have called it */
void ranks_leave(void);
