/* ahead.c - see ahead.h. One byte of each 64 KB is read: the system notices that the file is read
 * in order and fetches the rest in large pieces. MADV_WILLNEED would fetch single pages, which
 * cost twice the time. */
#include "lib/checkpoint/ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/safetensors.h"

enum { STRIDE = 64 << 10 };

struct ahead {
    const struct tensors *set;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t most;
    size_t end; /* the thread stops here: bytes from the beginning of the first file */
    int stop;
};

/* Waits until byte `at` may be read. 0: the thread must end. */
static int may_read(struct ahead *ahead, size_t at)
{
    pthread_mutex_lock(&ahead->lock);
    while (at >= ahead->end && !ahead->stop)
        pthread_cond_wait(&ahead->moved, &ahead->lock);
    const int stop = ahead->stop;
    pthread_mutex_unlock(&ahead->lock);
    return !stop;
}

static void *read_files(void *ctx)
{
    struct ahead *ahead = ctx;
    size_t before = 0, bytes;
    for (size_t i = 0; i < safetensors_files(ahead->set); i++, before += bytes) {
        const int fd = safetensors_descriptor(ahead->set, i, &bytes);
        char byte;
        for (size_t at = 0; at < bytes; at += STRIDE)
            if (!may_read(ahead, before + at) || pread(fd, &byte, 1, (off_t)at) != 1)
                return NULL; /* the reader of the tensors reports what is wrong with the file */
    }
    return NULL;
}

struct ahead *ahead_start(const struct tensors *set, size_t most)
{
    struct ahead *ahead = mem_zero(1, sizeof *ahead);
    ahead->set = set;
    ahead->end = ahead->most = most;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->moved, NULL);
    sigset_t all, mine;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mine); /* signals stop the main thread */
    const int bad = pthread_create(&ahead->thread, NULL, read_files, ahead);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    if (!bad)
        return ahead;
    free(ahead);
    return NULL;
}

void ahead_reached(struct ahead *ahead, const struct tensor *tensor)
{
    if (!ahead)
        return;
    const size_t end = tensor ? safetensors_place(ahead->set, tensor) + tensor->bytes : 0;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop |= !tensor;
    if (end + ahead->most > ahead->end)
        ahead->end = end + ahead->most;
    pthread_cond_signal(&ahead->moved);
    pthread_mutex_unlock(&ahead->lock);
}

void ahead_stop(struct ahead *ahead)
{
    if (!ahead)
        return;
    ahead_reached(ahead, NULL);
    pthread_join(ahead->thread, NULL);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->moved);
    free(ahead);
}
