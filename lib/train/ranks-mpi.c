/* ranks-mpi.c - training in MPI processes; see ranks.h. Rank 0 adds the arrays of the other ranks
 * in order and sends the sum to all ranks, because the order of sums in MPI_Allreduce may change
 * from run to run. The code checks no MPI call, because by default an MPI error ends all
 * processes. */
#include <mpi.h>

#include "lib/train/ranks.h"

enum { PIECE = 1 << 24 /* floats per message; MPI counts are int */ };

int ranks_join(size_t count, struct err *e)
{
    int all;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    if ((size_t)all == count)
        return 0;
    MPI_Finalize();
    return err_set(e, EXIT_BAD_USAGE, "--ranks %zu: expected as many processes, got %d: start them "
                   "with mpirun -n %zu", count, all, count);
}

size_t ranks_me(void)
{
    int me;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return (size_t)me;
}

void ranks_share(void *ctx, void *x, size_t bytes)
{
    (void)ctx;
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        MPI_Bcast((char *)x + at, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

/* Adds the array of rank `from` to g, piece by piece. */
static void add_from(int from, double *loss, float *g, size_t n, float *work)
{
    double received;
    MPI_Recv(&received, 1, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *loss += received;
    for (size_t at = 0; at < n; at += PIECE) {
        size_t most = n - at < PIECE ? n - at : PIECE;
        MPI_Recv(work, (int)most, MPI_FLOAT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < most; i++)
            g[at + i] = g[at + i] + work[i];
    }
}

static void send_own(const double *loss, const float *g, size_t n)
{
    MPI_Send(loss, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    for (size_t at = 0; at < n; at += PIECE)
        MPI_Send(g + at, (int)(n - at < PIECE ? n - at : PIECE), MPI_FLOAT, 0, 1, MPI_COMM_WORLD);
}

void ranks_sum(void *ctx, double *loss, float *g, size_t n, float *work)
{
    int all;
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    if (ranks_me())
        send_own(loss, g, n);
    for (int from = 1; !ranks_me() && from < all; from++)
        add_from(from, loss, g, n, work);
    ranks_share(ctx, loss, sizeof *loss);
    ranks_share(ctx, g, n * sizeof *g);
}

void ranks_wait(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void ranks_leave(void)
{
    MPI_Finalize();
}
