/* ceiling.c - what the host can do at most, by loops that do nothing else, and tasks under
 * ceilings.
 *
 * Passes are a few milliseconds long, and the best of many counts: on a machine that does other
 * things too, some passes run undisturbed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "tests/bench/bench.h"

enum { PASSES = 60, PASSES_AGAIN = 4, READ_PASSES = 10, ROUNDS = 200000, THREADS_MAX = 1024 };
/* Read: beyond most last-level caches, and 16 KiB ahead of what the sums need. */
enum { READ_BYTES = 256 << 20, AHEAD = 256, HUGE_PAGE = 2 << 20 };

typedef uint64_t line __attribute__((vector_size(64)));

struct spin {
    const struct peak *peak;
    unsigned char (*seed)[PEAK_SEED]; /* [threads] */
};

static void spin_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct spin *s = ctx;
    for (size_t i = begin; i < end; i++)
        s->peak->loop(ROUNDS, s->seed[worker]);
}

struct reader {
    void *block;
    const line *lines;
    unsigned char seed[THREADS_MAX][PEAK_SEED]; /* the sums: that they are made is all */
};

static void scan_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    struct reader *s = ctx;
    line a = {0}, b = a, c = a, d = a;
    for (const line *p = s->lines + begin; p + 4 <= s->lines + end; p += 4) {
        for (int i = 0; i < 4; i++)
            __builtin_prefetch((const char *)(p + i) + 64 * AHEAD);
        a ^= p[0];
        b ^= p[1];
        c ^= p[2];
        d ^= p[3];
    }
    a ^= b ^ c ^ d;
    memcpy(s->seed[worker], &a, sizeof a);
}

/* The quickest of several passes, in seconds. */
static double best_pass(int passes, struct pool *pool, size_t n, pool_task *task, void *ctx)
{
    int64_t best = INT64_MAX;
    for (int pass = 0; pass < passes; pass++) {
        int64_t begin = clock_ns();
        pool_run(pool, n, 1, task, ctx);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    return (double)best / 1e9;
}

struct reader *reader_open(struct err *e)
{
    void *block = mmap(NULL, READ_BYTES + HUGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        err_set(e, EXIT_INTERNAL, "no memory: %d bytes expected, to measure how fast they are read",
                READ_BYTES + HUGE_PAGE);
        return NULL;
    }
    line *lines = (line *)(((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    madvise(lines, READ_BYTES, MADV_HUGEPAGE); /* where there are none, small ones do */
    memset(lines, 1, READ_BYTES);
    struct reader *r = mem_zero(1, sizeof *r);
    r->block = block;
    r->lines = lines;
    return r;
}

double reader_bytes_per_s(struct reader *r, struct pool *pool)
{
    return READ_BYTES / best_pass(READ_PASSES, pool, READ_BYTES / sizeof *r->lines, scan_part, r);
}

void reader_close(struct reader *r)
{
    if (r)
        munmap(r->block, READ_BYTES + HUGE_PAGE);
    free(r);
}

/* Operations a second of a unit's own loop; 0: there is none. */
static double spin_rate(enum unit u, struct pool *pool, int passes)
{
    const struct peak *p = peak_best(u);
    if (!p)
        return 0;
    size_t threads = pool_threads(pool);
    unsigned char (*seed)[PEAK_SEED] = mem_alloc(THREADS_MAX * sizeof *seed);
    memset(seed, 0x3c, THREADS_MAX * sizeof *seed); /* small numbers, whatever they are read as */
    struct spin s = {p, seed};
    double took = best_pass(passes, pool, threads, spin_part, &s);
    free(seed);
    return p->operations * ROUNDS * (double)threads / took;
}

void ceilings_measure(struct ceilings *c, struct pool *pool, struct reader *r)
{
    *c = (struct ceilings){.threads = pool_threads(pool)};
    for (int u = 0; u < UNITS; u++) {
        c->operations_per_s[u] = spin_rate((enum unit)u, pool, PASSES);
        c->isa[u] = c->operations_per_s[u] > 0 ? peak_best((enum unit)u)->isa : NULL;
    }
    c->bytes_per_s = reader_bytes_per_s(r, pool);
}

void ceilings_refresh(struct bench *b, enum unit u)
{
    struct ceilings *c = &b->roof;
    if (bench_on_device(b))
        return;
    c->operations_per_s[u] =
        fmax(c->operations_per_s[u], spin_rate(u, b->backend->pool, PASSES_AGAIN));
    c->bytes_per_s = reader_bytes_per_s(b->reader, b->backend->pool);
}

void ceilings_bracket(struct bench *b)
{
    if (!bench_on_device(b))
        b->roof.bytes_per_s =
            fmax(b->roof.bytes_per_s, reader_bytes_per_s(b->reader, b->backend->pool));
}

struct task task_begin(struct bench *b, enum unit u)
{
    ceilings_refresh(b, u);
    return (struct task){.unit = u};
}

/* Without an instruction of its own a product is made of fp32 multiplications. */
static double rate_of(const struct ceilings *c, enum unit u)
{
    return c->operations_per_s[u] > 0 ? c->operations_per_s[u] : c->operations_per_s[UNIT_F32];
}

void task_add(struct task *t, const struct ceilings *c, double operations, double bytes)
{
    double compute = operations / rate_of(c, t->unit), memory = bytes / c->bytes_per_s;
    t->operations += operations;
    t->bytes += bytes;
    t->least_s += fmax(compute, memory);
    t->compute_s += compute > memory ? compute : 0;
}

enum unit dtype_unit(enum dtype d)
{
    return d == DTYPE_INT8                         ? UNIT_INT8
           : d == DTYPE_F32 || d == DTYPE_BF16_F32 ? UNIT_F32 : UNIT_BF16;
}

double dtype_bytes(enum dtype d, size_t rows, size_t cols)
{
    double n = (double)rows * (double)cols;
    switch (d) {
    case DTYPE_F32: return 4 * n;
    case DTYPE_BF16:
    case DTYPE_BF16_F32: return 2 * n;
    case DTYPE_INT8:
    case DTYPE_FP8: return n + 4 * (double)rows;
    case DTYPE_NF4: return n / 2 + n / 64;
    }
    return 0;
}
