/* read_ahead.c - see read_ahead.h. The thread reads whole pieces: the system sees a file that is
 * read in order, and fetches it in large folios. MADV_WILLNEED would fetch folios of one page,
 * which take several times as long to map. */
#include "lib/checkpoint/read_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/safetensors.h"

enum { PIECE = 256 << 10 };

struct read_ahead {
    const struct tensors *set;
    size_t most;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* Bytes from the beginning of the first file. The thread reads next from `at` to `end`. It has
     * read, or reads now, the bytes from `from` to `at`. */
    size_t from, at, end;
    int stop;
};

/* Waits until there is something to read, and sets *at to the place of the next piece. 0: the
 * thread must end. */
static int next_piece(struct read_ahead *ahead, size_t all, size_t *at)
{
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stop && (ahead->at >= ahead->end || ahead->at >= all))
        pthread_cond_wait(&ahead->moved, &ahead->lock);
    *at = ahead->at;
    ahead->at += PIECE;
    const int stop = ahead->stop;
    pthread_mutex_unlock(&ahead->lock);
    return !stop;
}

/* 1: the first and the last page of a piece are in the page cache. */
static int is_cached(int fd, size_t at, size_t n)
{
    char byte;
    const struct iovec to = {&byte, 1};
    return preadv2(fd, &to, 1, (off_t)at, RWF_NOWAIT) == 1 &&
           preadv2(fd, &to, 1, (off_t)(at + n - 1), RWF_NOWAIT) == 1;
}

/* Reads the piece that begins at byte `at` of all files. Errors are not reported here: the loader
 * of the tensor reports them. */
static void read_piece(const struct read_ahead *ahead, size_t at, char *piece)
{
    size_t before = 0, bytes, left = PIECE;
    for (size_t i = 0; i < safetensors_files(ahead->set) && left; i++, before += bytes) {
        const int fd = safetensors_descriptor(ahead->set, i, &bytes);
        if (at >= before + bytes)
            continue;
        const size_t n = before + bytes - at < left ? before + bytes - at : left;
        if (!is_cached(fd, at - before, n) && pread(fd, piece, n, (off_t)(at - before)) <= 0)
            return;
        at += n;
        left -= n;
    }
}

static void *read_files(void *ctx)
{
    struct read_ahead *ahead = ctx;
    char *piece = mem_alloc(PIECE);
    size_t all = 0, bytes, at;
    for (size_t i = 0; i < safetensors_files(ahead->set); i++, all += bytes)
        safetensors_descriptor(ahead->set, i, &bytes);
    while (next_piece(ahead, all, &at))
        read_piece(ahead, at, piece);
    free(piece);
    return NULL;
}

static void discard(struct read_ahead *ahead)
{
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->moved);
    free(ahead);
}

struct read_ahead *read_ahead_start(const struct tensors *set, size_t most)
{
    struct read_ahead *ahead = mem_zero(1, sizeof *ahead);
    ahead->set = set;
    ahead->end = ahead->most = most;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->moved, NULL);
    sigset_t all, mine;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mine); /* only the main thread handles signals */
    const int bad = pthread_create(&ahead->thread, NULL, read_files, ahead);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    if (!bad)
        return ahead;
    discard(ahead);
    return NULL;
}

void read_ahead_reached(struct read_ahead *ahead, const struct tensor *tensor)
{
    if (!ahead)
        return;
    const size_t place = tensor ? safetensors_place(ahead->set, tensor) : 0;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop |= !tensor;
    if (place < ahead->from || place > ahead->at)
        ahead->from = ahead->at = place / PIECE * PIECE;
    if (tensor)
        ahead->end = place + tensor->bytes + ahead->most;
    pthread_cond_signal(&ahead->moved);
    pthread_mutex_unlock(&ahead->lock);
}

void read_ahead_stop(struct read_ahead *ahead)
{
    if (!ahead)
        return;
    read_ahead_reached(ahead, NULL);
    pthread_join(ahead->thread, NULL);
    discard(ahead);
}
