/* host-store.c - the store of offloaded blocks (kernels/ops.h) in a file. A thread of its own loads
 * blocks into memory and writes rows back, while the other threads compute.
 *
 * The file has no name, so it disappears however the process ends. With direct access (O_DIRECT) a
 * block is read without a copy in the system's file cache, which a control group would count as our
 * memory. If the file system has no direct access, these cached pages are dropped at once.
 *
 * Requests form a ring and are served in order; staged >= done >= arrived count them. Rows are
 * written in grains, the smallest unit that direct access can write. The grains are marked when the
 * request is made, because the caller may change rows->slot afterwards. */
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
    int fd, direct; /* direct 1: reads and writes by O_DIRECT */
    size_t bytes;   /* size of one block */
    char *folder;
    unsigned char *piece; /* [PIECE] aligned buffer of store_put */
    struct request {
        size_t block;
        unsigned char *place;
        int writes;           /* 1: write the marked grains of `place` to the block; 0: read */
        unsigned char *marks; /* [bytes / STORE_GRAIN] 1: this grain is to be written; the server
                               * sets marks to 0 again. NULL: no row was written yet */
    } ring[STORE_DEPTH];
    size_t staged, done, arrived; /* numbers of requests so far that were made, served, and taken by
                                   * host_arrive() */
    int stop;
    pthread_t server;
    pthread_mutex_t lock; /* guards the counters, stop and the ring */
    pthread_cond_t asked, served;
};

/* ---- the file ---- */

/* Opens a new file in the folder that has no name. -1: errno is set. */
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

static int refuse_full(const struct store *store, size_t wanted, struct err *e)
{
    return err_set(e, EXIT_IO, "%s: cannot store %zu bytes of layers: %s (choose another folder "
                   "with --offload-dir)", store->folder, wanted, strerror(errno));
}

/* Reserves the disk space, so that a full disk is found before hours of work. If the file system
 * cannot reserve space, only the size is set. */
static int reserve(const struct store *store, size_t bytes, struct err *e)
{
    int bad = fallocate(store->fd, 0, 0, (off_t)bytes);
    if (bad && (errno == EOPNOTSUPP || errno == ENOSYS))
        bad = ftruncate(store->fd, (off_t)bytes);
    return bad ? refuse_full(store, bytes, e) : 0;
}

static void set_direct(struct store *store, int direct)
{
    store->direct = !fcntl(store->fd, F_SETFL, direct ? O_DIRECT : 0) && direct;
}

static void drop_pages(const struct store *store, off_t at, size_t bytes)
{
    if (!store->direct)
        posix_fadvise(store->fd, at, (off_t)bytes, POSIX_FADV_DONTNEED);
}

static int write_all(struct store *store, const unsigned char *from, off_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(store->fd, from + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINVAL && store->direct)
            set_direct(store, 0); /* the disk has sectors larger than STORE_GRAIN: go on without
                                   * direct access */
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

int host_store_put(struct backend *backend, struct store *store, size_t block, size_t at,
                   const void *from, size_t bytes, struct err *e)
{
    (void)backend;
    assert(at % STORE_GRAIN == 0 && bytes <= store->bytes && at <= store->bytes - bytes);
    off_t begin = (off_t)(block * store->bytes + at);
    for (size_t i = 0, n; i < bytes; i += n) {
        n = bytes - i < PIECE ? bytes - i : PIECE;
        memcpy(store->piece, (const unsigned char *)from + i, n);
        memset(store->piece + n, 0, whole(n) - n);
        if (write_all(store, store->piece, begin + (off_t)i, whole(n)))
            return refuse_full(store, bytes, e);
    }
    if (!store->direct && fdatasync(store->fd))
        return refuse_full(store, bytes, e);
    drop_pages(store, begin, bytes);
    return 0;
}

/* ---- the server of requests ---- */

/* Ends the process: in the middle of a pass no caller can handle an error. */
static _Noreturn void end_lost(const struct store *store, int line, const char *what,
                               const char *why)
{
    char text[256];
    snprintf(text, sizeof text, "%s %.100s: %s", what, store->folder, why);
    err_file(__FILE__, line, text);
}

static void read_block(const struct store *store, const struct request *request)
{
    off_t begin = (off_t)(request->block * store->bytes);
    for (size_t done = 0; done < store->bytes;) {
        size_t left = store->bytes - done, most = left < AT_ONCE ? left : AT_ONCE;
        ssize_t n = pread(store->fd, request->place + done, most, begin + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            end_lost(store, __LINE__, "a layer cannot be read back from",
                     n ? strerror(errno) : "the file ends");
        drop_pages(store, begin + (off_t)done, (size_t)n);
        done += (size_t)n;
    }
}

/* Writes the marked grains of a block; adjacent grains are written together. */
static void write_rows(struct store *store, const struct request *request)
{
    const size_t grains = store->bytes / STORE_GRAIN;
    const off_t begin = (off_t)(request->block * store->bytes);
    for (size_t group = 0, n; group < grains; group += n) {
        int wanted = request->marks[group];
        for (n = 1; group + n < grains && request->marks[group + n] == wanted &&
                    n < AT_ONCE / STORE_GRAIN;)
            n++;
        const size_t at = group * STORE_GRAIN;
        if (wanted && write_all(store, request->place + at, begin + (off_t)at, n * STORE_GRAIN))
            end_lost(store, __LINE__, "rows of a layer cannot be written to", strerror(errno));
    }
    memset(request->marks, 0, grains);
    if (!store->direct && fdatasync(store->fd))
        end_lost(store, __LINE__, "rows of a layer cannot be written to", strerror(errno));
    drop_pages(store, begin, store->bytes);
}

static void *serve(void *ctx)
{
    struct store *store = ctx;
    pthread_mutex_lock(&store->lock);
    for (;;) {
        while (store->done == store->staged && !store->stop)
            pthread_cond_wait(&store->asked, &store->lock);
        if (store->stop)
            break;
        struct request request = store->ring[store->done % STORE_DEPTH];
        pthread_mutex_unlock(&store->lock);
        if (request.writes)
            write_rows(store, &request);
        else
            read_block(store, &request);
        pthread_mutex_lock(&store->lock);
        store->done++;
        pthread_cond_signal(&store->served);
    }
    pthread_mutex_unlock(&store->lock);
    return NULL;
}

/* Starts the server with all signals blocked, so that signals go to the main thread. */
static int start_server(struct store *store)
{
    sigset_t all, before;
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->asked, NULL);
    pthread_cond_init(&store->served, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int bad = pthread_create(&store->server, NULL, serve, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

/* Fills the place of the next request in the ring; no other thread uses this place yet. */
static struct request *next_request(struct store *store, size_t block, const void *place,
                                    int writes)
{
    struct request *request = &store->ring[store->staged % STORE_DEPTH];
    assert(store->staged - store->arrived < STORE_DEPTH && (uintptr_t)place % STORE_GRAIN == 0);
    request->block = block;
    request->place = (unsigned char *)(uintptr_t)place;
    request->writes = writes;
    return request;
}

static void ask(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    store->staged++;
    pthread_cond_signal(&store->asked);
    pthread_mutex_unlock(&store->lock);
}

void host_stage(struct backend *backend, struct store *store, size_t block, void *to)
{
    (void)backend;
    next_request(store, block, to, 0);
    ask(store);
}

void host_arrive(struct backend *backend, struct store *store)
{
    int64_t begin = clock_ns();
    int written;
    pthread_mutex_lock(&store->lock);
    do { /* takes the oldest load, and all writes that were requested before that load */
        assert(store->arrived < store->staged);
        while (store->done == store->arrived)
            pthread_cond_wait(&store->served, &store->lock);
        written = store->ring[store->arrived++ % STORE_DEPTH].writes;
    } while (written);
    pthread_mutex_unlock(&store->lock);
    backend->memory.arrive_ns += clock_ns() - begin;
}

static void mark(const struct store *store, struct request *request, size_t at, size_t bytes)
{
    assert(bytes && bytes <= store->bytes && at <= store->bytes - bytes);
    for (size_t group = at / STORE_GRAIN; group <= (at + bytes - 1) / STORE_GRAIN; group++)
        request->marks[group] = 1;
}

void host_store_rows(struct backend *backend, struct store *store, size_t block, const void *from,
                     const struct store_rows *rows)
{
    (void)backend;
    struct request *request = next_request(store, block, from, 1);
    if (!request->marks)
        request->marks = mem_zero(store->bytes / STORE_GRAIN, 1);
    for (size_t row = 0; row < rows->T; row++) {
        size_t at = (rows->slot ? (size_t)rows->slot[row] : row) * rows->bytes;
        mark(store, request, at, rows->bytes);
        mark(store, request, rows->second + at, rows->bytes);
    }
    ask(store);
}

/* ---- open and close ---- */

static void discard(struct store *store)
{
    if (store->fd >= 0)
        close(store->fd);
    for (size_t i = 0; i < STORE_DEPTH; i++)
        free(store->ring[i].marks);
    free(store->piece);
    free(store->folder);
    free(store);
}

struct store *host_store_open(struct backend *backend, const char *folder, size_t blocks,
                              size_t bytes, struct err *e)
{
    (void)backend;
    assert(bytes && bytes % STORE_GRAIN == 0);
    struct store *store = mem_zero(1, sizeof *store);
    store->bytes = bytes;
    store->folder = mem_text(folder);
    store->fd = open_nameless(folder);
    int bad = store->fd < 0 ? err_set(e, EXIT_CANNOT_CREATE,
                                      "%s: cannot create a file for layers: %s "
                                      "(choose another folder with --offload-dir)", folder,
                                      strerror(errno))
                            : reserve(store, blocks * bytes, e);
    store->piece = bad ? NULL : aligned_alloc(STORE_GRAIN, PIECE);
    if (!bad && (!store->piece || start_server(store)))
        bad = err_set(e, EXIT_INTERNAL, "out of memory or threads for reading layers");
    if (bad) {
        discard(store);
        return NULL;
    }
    set_direct(store, 1);
    return store;
}

void host_store_close(struct backend *backend, struct store *store)
{
    (void)backend;
    if (!store)
        return;
    pthread_mutex_lock(&store->lock);
    store->stop = 1;
    pthread_cond_signal(&store->asked);
    pthread_mutex_unlock(&store->lock);
    pthread_join(store->server, NULL);
    pthread_cond_destroy(&store->asked);
    pthread_cond_destroy(&store->served);
    pthread_mutex_destroy(&store->lock);
    discard(store);
}
