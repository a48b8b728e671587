/* ranks-mpi.c - see ranks.h. Rank 0 adds what the others send, one after the other, and sends the
 * sum to all: MPI_Allreduce may add in another order on another day. An error of MPI ends all
 * processes, which is its default, so no call is checked.
 */
#include <mpi.h>

#include "lib/train/ranks.h"

enum { PIECE = 1 << 24 /* floats a message; a count of MPI is an int */ };

int ranks_join(size_t count, struct err *e)
{
    int all;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    if ((size_t)all == count)
        return 0;
    MPI_Finalize();
    return err_set(e, EXIT_BAD_USAGE, "--ranks %zu: expected as many processes, got %d: mpirun -n "
                   "%zu starts them", count, all, count);
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

/* What rank `from` has, one piece after the other, is added to g. */
static void add_from(int from, double *loss, float *g, size_t n, float *work)
{
    double its;
    MPI_Recv(&its, 1, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *loss += its;
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
