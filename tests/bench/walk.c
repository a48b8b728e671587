/* walk.c - measures how long operations take, in the same way on the host and on a device.
 *
 * Calls are timed by marks, on a device by its own events. Several walks are enqueued before the
 * first walk is waited for. So a device always has another walk to do, and the speed of enqueueing
 * is not measured. A walk is one step of ops.run, which a device records and then replays. The
 * first two walks do not count. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/stat/stat.h"
#include "tests/bench/bench.h"

enum { COPIES_MAX = 256, AHEAD = 32 /* AHEAD: walks in flight */, WALKS = 200, WALKS_LEAST = 3 };
static const double walk_least_s = 2e-3;
static const double usual_cache = 32 << 20, device_cache = 128 << 20; /* no larger cache is known so
                                                                       * far */

struct walk {
    void (*call)(void *ctx, size_t copy);
    void *ctx;
    size_t copies, calls;
};

static void take(void *ctx)
{
    const struct walk *w = ctx;
    for (size_t i = 0; i < w->calls; i++)
        w->call(w->ctx, i % w->copies);
}

/* Sets a mark at the present moment of --clock. */
static int64_t mark_now(struct bench *b)
{
    return bench_by_processor(b) ? bench_now_ns(b) : b->backend->ops->event_record(b->backend);
}

/* Waits for a mark and returns its time in nanoseconds. */
static int64_t mark_ns(struct bench *b, int64_t mark)
{
    return bench_by_processor(b) ? mark : b->backend->ops->event_wait(b->backend, mark);
}

static double seconds_of(struct bench *b, const struct walk *w)
{
    int64_t begin = mark_now(b);
    take((void *)w);
    int64_t end = mark_now(b);
    begin = mark_ns(b, begin);
    return (double)(mark_ns(b, end) - begin) / 1e9;
}

double walk_once_s(struct bench *b, void (*call)(void *ctx, size_t copy), void *ctx)
{
    const struct walk w = {call, ctx, 1, 1};
    seconds_of(b, &w);
    return seconds_of(b, &w);
}

/* Fills took[n] with the seconds of n walks behind each other. n + 1 walks run; the first is left
 * out. */
static void time_walks(struct bench *b, const struct walk *w, uint64_t key, size_t n, double *took)
{
    int64_t mark[AHEAD + 1];
    for (size_t i = 0; i <= n; i++) {
        b->backend->ops->run(b->backend, &key, sizeof key, take, (void *)w);
        mark[i] = mark_now(b);
    }
    int64_t before = mark_ns(b, mark[0]);
    for (size_t i = 0; i < n; i++) {
        int64_t now = mark_ns(b, mark[i + 1]);
        took[i] = (double)(now - before) / 1e9;
        before = now;
    }
}

/* The number of calls of a walk: all copies, repeated until the walk lasts long enough; fewer than
 * the copies if one call takes that long. */
static size_t calls_of(double once_s, double point_s, size_t copies)
{
    double most = point_s / 3 / once_s, least = walk_least_s / once_s;
    if (most < (double)copies)
        return most < 1 ? 1 : (size_t)most;
    return least > (double)copies ? (size_t)(least / (double)copies + 1) * copies : copies;
}

/* The number of walks to enqueue next; 0 if enough walks were timed. */
static size_t more_walks(double left_s, double each_s, size_t done)
{
    double fit = each_s > 0 ? left_s / each_s : AHEAD;
    size_t room = WALKS - done, n = fit > AHEAD ? AHEAD : fit > 1 ? (size_t)fit : 0;
    if (done < WALKS_LEAST && n < WALKS_LEAST - done)
        n = WALKS_LEAST - done;
    return n < room ? n : room;
}

double walk_s(struct bench *b, void (*call)(void *ctx, size_t copy), void *ctx, size_t copies,
              enum pick pick)
{
    double took[WALKS], once = walk_once_s(b, call, ctx);
    const struct walk w = {call, ctx, copies, calls_of(once > 0 ? once : 1e-9, b->point_s, copies)};
    uint64_t key = b->walks++;
    int64_t start = clock_ns();
    size_t n = 0, more = 1;
    if (bench_on_device(b))
        time_walks(b, &w, key, 1, took); /* directly, then recorded: neither counts */
    while (more) {
        time_walks(b, &w, key, more, took + n);
        n += more;
        more = more_walks(b->point_s - (double)(clock_ns() - start) / 1e9, took[n - 1], n);
    }
    double median = median_of(took, n); /* sorts took[] */
    return (pick == QUICKEST ? took[0] : median) / (double)w.calls;
}

size_t walk_copies(const struct bench *b, const struct pair *p, double bytes)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    /* Each thread of the host may have a last-level cache of its own. */
    double host = (cache > 0 ? (double)cache : usual_cache) * (double)b->roof.threads;
    double n = 2 * (bench_on_device(b) ? device_cache : host) / bytes;
    return n > COPIES_MAX ? shrunk(p, COPIES_MAX) : (size_t)n + 1;
}

double median_of(double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i]))
            return (double)NAN;
    return stat_median(v, n);
}
