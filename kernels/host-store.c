/* host-store.c - a store in a file. A thread of its own loads blocks into memory and writes rows
 * back, while the other threads compute.
 *
 * The file has no name, so it disappears however the process ends. With direct access a block is
 * read without a copy in the system's file cache, which a control group would count as our memory.
 * Where the file system has no direct access, these cached pages are dropped at once.
 *
 * Requests form a ring and are served in order; staged >= done >= arrived count them. Rows are
 * written in grains, the smallest unit that direct access can write. The grains are marked when the
 * request is made, because slots may change later. */
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

enum { PIECE = 4 << 20, AT_ONCE = 64 << 20 };

struct store {
    int fd, direct; /* direct 1: by direct access */
    size_t bytes;   /* of one block */
    char *folder;
    unsigned char *piece; /* [PIECE] aligned buffer of store_put */
    struct request {
        size_t block;
        unsigned char *place;
        int writes;           /* 1: write the marked grains of `place` to the block; 0: read */
        unsigned char *marks; /* [bytes / STORE_GRAIN] grains to write; cleared by the server; NULL:
                               * no row was written yet */
    } ring[STORE_DEPTH];
    size_t staged, done, arrived; /* requests so far: made, served, taken by arrive */
    int stop;
    pthread_t server;
    pthread_mutex_t lock; /* guards the three lines above */
    pthread_cond_t asked, served;
};

/* ---- the file ---- */

/* A file of the folder without a name. -1: errno. */
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

static int refuse_full(const struct store *s, size_t wanted, struct err *e)
{
    return err_set(e, EXIT_IO, "%s: cannot store %zu bytes of layers: %s (choose another folder "
                   "with --offload-dir)", s->folder, wanted, strerror(errno));
}

/* Reserves the disk space, so that a full disk shows before hours of work. A file system that
 * cannot reserve is trusted. */
static int reserve(const struct store *s, size_t bytes, struct err *e)
{
    int bad = fallocate(s->fd, 0, 0, (off_t)bytes);
    if (bad && (errno == EOPNOTSUPP || errno == ENOSYS))
        bad = ftruncate(s->fd, (off_t)bytes);
    return bad ? refuse_full(s, bytes, e) : 0;
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

static int write_all(struct store *s, const unsigned char *from, off_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(s->fd, from + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINVAL && s->direct)
            set_direct(s, 0); /* the disk has larger sectors */
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
        if (write_all(s, s->piece, begin + (off_t)i, whole(n)))
            return refuse_full(s, bytes, e);
    }
    if (!s->direct && fdatasync(s->fd))
        return refuse_full(s, bytes, e);
    drop_pages(s, begin, bytes);
    return 0;
}

/* ---- the server of requests ---- */

/* Ends the process: in the middle of a pass no caller can handle an error. */
static _Noreturn void end_lost(const struct store *s, int line, const char *what, const char *why)
{
    char text[256];
    snprintf(text, sizeof text, "%s %.100s: %s", what, s->folder, why);
    err_file(__FILE__, line, text);
}

static void read_block(const struct store *s, const struct request *r)
{
    off_t begin = (off_t)(r->block * s->bytes);
    for (size_t done = 0; done < s->bytes;) {
        size_t left = s->bytes - done, most = left < AT_ONCE ? left : AT_ONCE;
        ssize_t n = pread(s->fd, r->place + done, most, begin + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            end_lost(s, __LINE__, "a layer cannot be read back from",
                 n ? strerror(errno) : "the file ends");
        drop_pages(s, begin + (off_t)done, (size_t)n);
        done += (size_t)n;
    }
}

/* Adjacent grains are written together. */
static void write_rows(struct store *s, const struct request *r)
{
    const size_t grains = s->bytes / STORE_GRAIN;
    const off_t begin = (off_t)(r->block * s->bytes);
    for (size_t g = 0, n; g < grains; g += n) {
        int wanted = r->marks[g];
        for (n = 1; g + n < grains && r->marks[g + n] == wanted && n < AT_ONCE / STORE_GRAIN;)
            n++;
        const size_t at = g * STORE_GRAIN;
        if (wanted && write_all(s, r->place + at, begin + (off_t)at, n * STORE_GRAIN))
            end_lost(s, __LINE__, "rows of a layer cannot be written to", strerror(errno));
    }
    memset(r->marks, 0, grains);
    if (!s->direct && fdatasync(s->fd))
        end_lost(s, __LINE__, "rows of a layer cannot be written to", strerror(errno));
    drop_pages(s, begin, s->bytes);
}

static void *serve(void *ctx)
{
    struct store *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->done == s->staged && !s->stop)
            pthread_cond_wait(&s->asked, &s->lock);
        if (s->stop)
            break;
        struct request r = s->ring[s->done % STORE_DEPTH];
        pthread_mutex_unlock(&s->lock);
        if (r.writes)
            write_rows(s, &r);
        else
            read_block(s, &r);
        pthread_mutex_lock(&s->lock);
        s->done++;
        pthread_cond_signal(&s->served);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Signals go to the main thread. */
static int start_server(struct store *s)
{
    sigset_t all, before;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->asked, NULL);
    pthread_cond_init(&s->served, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int bad = pthread_create(&s->server, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

/* The slot of the next request; no other thread uses it yet. */
static struct request *next_request(struct store *s, size_t block, const void *place, int writes)
{
    struct request *r = &s->ring[s->staged % STORE_DEPTH];
    assert(s->staged - s->arrived < STORE_DEPTH && (uintptr_t)place % STORE_GRAIN == 0);
    r->block = block;
    r->place = (unsigned char *)(uintptr_t)place;
    r->writes = writes;
    return r;
}

static void ask(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    s->staged++;
    pthread_cond_signal(&s->asked);
    pthread_mutex_unlock(&s->lock);
}

void host_stage(struct backend *b, struct store *s, size_t block, void *to)
{
    (void)b;
    next_request(s, block, to, 0);
    ask(s);
}

void host_arrive(struct backend *b, struct store *s)
{
    int64_t begin = clock_ns();
    int written;
    pthread_mutex_lock(&s->lock);
    do { /* takes the oldest load, and the writes requested before it */
        assert(s->arrived < s->staged);
        while (s->done == s->arrived)
            pthread_cond_wait(&s->served, &s->lock);
        written = s->ring[s->arrived++ % STORE_DEPTH].writes;
    } while (written);
    pthread_mutex_unlock(&s->lock);
    b->memory.arrive_ns += clock_ns() - begin;
}

static void mark(const struct store *s, struct request *q, size_t at, size_t bytes)
{
    assert(bytes && bytes <= s->bytes && at <= s->bytes - bytes);
    for (size_t g = at / STORE_GRAIN; g <= (at + bytes - 1) / STORE_GRAIN; g++)
        q->marks[g] = 1;
}

void host_store_rows(struct backend *b, struct store *s, size_t block, const void *from,
                     const struct store_rows *r)
{
    (void)b;
    struct request *q = next_request(s, block, from, 1);
    if (!q->marks)
        q->marks = mem_zero(s->bytes / STORE_GRAIN, 1);
    for (size_t t = 0; t < r->T; t++) {
        size_t at = (r->slot ? (size_t)r->slot[t] : t) * r->bytes;
        mark(s, q, at, r->bytes);
        mark(s, q, r->second + at, r->bytes);
    }
    ask(s);
}

/* ---- open and close ---- */

static void discard(struct store *s)
{
    if (s->fd >= 0)
        close(s->fd);
    for (size_t i = 0; i < STORE_DEPTH; i++)
        free(s->ring[i].marks);
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
    int bad = s->fd < 0 ? err_set(e, EXIT_CANNOT_CREATE, "%s: cannot create a file for layers: %s "
                                  "(choose another folder with --offload-dir)", folder,
                                  strerror(errno))
                        : reserve(s, blocks * bytes, e);
    s->piece = bad ? NULL : aligned_alloc(STORE_GRAIN, PIECE);
    if (!bad && (!s->piece || start_server(s)))
        bad = err_set(e, EXIT_INTERNAL, "out of memory or threads for reading layers");
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
    pthread_join(s->server, NULL);
    pthread_cond_destroy(&s->asked);
    pthread_cond_destroy(&s->served);
    pthread_mutex_destroy(&s->lock);
    discard(s);
}
