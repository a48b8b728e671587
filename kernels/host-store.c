/* host-store.c - a store in a file: blocks are written once, and a thread reads them into memory
 * while the others compute.
 *
 * The file has no name, so nothing stays behind however the process ends. Where the file system has
 * direct access, a block comes into its place without a copy among the pages that the system keeps
 * of files, which a control group counts as ours; elsewhere those pages are dropped at once.
 *
 * Requests form a ring: staged - arrived of them are under way, of which read - arrived are done.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/host.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { PIECE = 4 << 20, READ_MOST = 64 << 20 };

struct store {
    int fd, direct; /* 1: by direct access */
    size_t bytes;   /* of a block */
    char *folder;
    unsigned char *piece; /* [PIECE] what is written, aligned */
    struct request {
        size_t block;
        unsigned char *to;
    } ring[STORE_DEPTH];
    size_t staged, read, arrived; /* requests so far */
    int stop;
    pthread_t reader;
    pthread_mutex_t lock; /* of the three lines above */
    pthread_cond_t asked, done;
};

/* ---- the file ---- */

/* A file of the folder that has no name there. -1: errno. */
static int open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char *path = mem_format("%s/crossover-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

static int full(const struct store *s, size_t wanted, struct err *e)
{
    return err_set(e, EXIT_IO, "%s: %zu bytes of layers cannot be kept there: %s (--offload-dir "
                   "names another folder)", s->folder, wanted, strerror(errno));
}

/* Makes sure of the room before hours are spent. A file system that cannot promise is believed. */
static int reserve(const struct store *s, size_t bytes, struct err *e)
{
    if (!fallocate(s->fd, 0, 0, (off_t)bytes) || errno == EOPNOTSUPP || errno == ENOSYS)
        return 0;
    return full(s, bytes, e);
}

static void set_direct(struct store *s, int direct)
{
    s->direct = !fcntl(s->fd, F_SETFL, direct ? O_DIRECT : 0) && direct;
}

static void drop_pages(const struct store *s, off_t at, size_t bytes)
{
    if (!s->direct)
        posix_fadvise(s->fd, at, (off_t)bytes, POSIX_FADV_DONTNEED);
}

static int write_piece(struct store *s, off_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(s->fd, s->piece + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINVAL && s->direct)
            set_direct(s, 0); /* larger sectors than ours */
        else if (n <= 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static size_t whole(size_t bytes)
{
    return (bytes + STORE_GRAIN - 1) / STORE_GRAIN * STORE_GRAIN;
}

int host_store_put(struct backend *b, struct store *s, size_t block, size_t at, const void *from,
                   size_t bytes, struct err *e)
{
    (void)b;
    assert(at % STORE_GRAIN == 0 && bytes <= s->bytes && at <= s->bytes - bytes);
    off_t begin = (off_t)(block * s->bytes + at);
    for (size_t i = 0, n; i < bytes; i += n) {
        n = bytes - i < PIECE ? bytes - i : PIECE;
        memcpy(s->piece, (const unsigned char *)from + i, n);
        memset(s->piece + n, 0, whole(n) - n);
        if (write_piece(s, begin + (off_t)i, whole(n)))
            return full(s, bytes, e);
    }
    if (!s->direct && fdatasync(s->fd))
        return full(s, bytes, e);
    drop_pages(s, begin, bytes);
    return 0;
}

/* ---- the reader ---- */

static void read_block(const struct store *s, const struct request *r)
{
    off_t begin = (off_t)(r->block * s->bytes);
    for (size_t done = 0; done < s->bytes;) {
        size_t left = s->bytes - done, most = left < READ_MOST ? left : READ_MOST;
        ssize_t n = pread(s->fd, r->to + done, most, begin + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            char text[256];
            snprintf(text, sizeof text, "a layer cannot be read back from %.100s: %s", s->folder,
                     n ? strerror(errno) : "the file ends");
            err_machine(__FILE__, __LINE__, text);
        }
        drop_pages(s, begin + (off_t)done, (size_t)n);
        done += (size_t)n;
    }
}

static void *read_blocks(void *ctx)
{
    struct store *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->read == s->staged && !s->stop)
            pthread_cond_wait(&s->asked, &s->lock);
        if (s->stop)
            break;
        struct request r = s->ring[s->read % STORE_DEPTH];
        pthread_mutex_unlock(&s->lock);
        read_block(s, &r);
        pthread_mutex_lock(&s->lock);
        s->read++;
        pthread_cond_signal(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Signals are the main thread's. */
static int start_reader(struct store *s)
{
    sigset_t all, before;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->asked, NULL);
    pthread_cond_init(&s->done, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int bad = pthread_create(&s->reader, NULL, read_blocks, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

void host_store_stage(struct backend *b, struct store *s, size_t block, void *to)
{
    (void)b;
    pthread_mutex_lock(&s->lock);
    assert(s->staged - s->arrived < STORE_DEPTH && (uintptr_t)to % STORE_GRAIN == 0);
    s->ring[s->staged++ % STORE_DEPTH] = (struct request){block, to};
    pthread_cond_signal(&s->asked);
    pthread_mutex_unlock(&s->lock);
}

void host_store_arrive(struct backend *b, struct store *s)
{
    int64_t begin = clock_ns();
    pthread_mutex_lock(&s->lock);
    assert(s->arrived < s->staged);
    while (s->read == s->arrived)
        pthread_cond_wait(&s->done, &s->lock);
    s->arrived++;
    pthread_mutex_unlock(&s->lock);
    b->memory.arrive_ns += clock_ns() - begin;
}

/* ---- open and close ---- */

static void discard(struct store *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->piece);
    free(s->folder);
    free(s);
}

struct store *host_store_open(struct backend *b, const char *folder, size_t blocks, size_t bytes,
                              struct err *e)
{
    (void)b;
    assert(bytes && bytes % STORE_GRAIN == 0);
    struct store *s = mem_zero(1, sizeof *s);
    s->bytes = bytes;
    s->folder = mem_text(folder);
    s->fd = open_nameless(folder);
    int bad = s->fd < 0 ? err_set(e, EXIT_CANNOT_CREATE, "%s: no file for layers can be made there:"
                                  " %s (--offload-dir names another folder)", folder,
                                  strerror(errno))
                        : reserve(s, blocks * bytes, e);
    s->piece = bad ? NULL : aligned_alloc(STORE_GRAIN, PIECE);
    if (!bad && (!s->piece || start_reader(s)))
        bad = err_set(e, EXIT_INTERNAL, "no memory or thread to read layers with");
    if (bad) {
        discard(s);
        return NULL;
    }
    set_direct(s, 1);
    return s;
}

void host_store_close(struct backend *b, struct store *s)
{
    (void)b;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->asked);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->reader, NULL);
    pthread_cond_destroy(&s->asked);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    discard(s);
}
