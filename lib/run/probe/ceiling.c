/* ceiling.c - see ceiling.h: the loops of the host, and the records of host and device. Each thread
 * multiplies in registers, or reads its own part of an array larger than the caches, for a few
 * milliseconds. The best pass of a loop counts: a rate that was reached once is possible. Loops of
 * all kinds take turns, so that a slow moment of the machine affects one loop of each kind. */
#include "lib/run/probe/ceiling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

enum { LOOPS = 5, TRIES = 3, PASSES = 12, PASSES_AGAIN = 4, READ_PASSES = 10 };
enum { ROUNDS = 200000, THREADS_MAX = 1024 };
/* Prefetch 16 KiB ahead of the sums. */
enum { AHEAD = 256, HUGE_PAGE = 2 << 20 };

typedef uint64_t line __attribute__((vector_size(64)));

struct spin {
    const struct peak *peak;
    size_t rounds;
    unsigned char (*seed)[PEAK_SEED]; /* [threads] */
};

static void spin_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct spin *s = ctx;
    for (size_t i = begin; i < end; i++)
        s->peak->loop(s->rounds, s->seed[worker]);
}

struct ceiling_reader {
    void *block;
    size_t bytes; /* cache lines */
    const line *lines;
    int by_processor;
    unsigned char seed[THREADS_MAX][PEAK_SEED]; /* keeps the sums in use */
};

static void scan_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    struct ceiling_reader *s = ctx;
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

/* The fastest of several passes, in seconds of the clock. */
static double time_best(int64_t (*clock)(void), int passes, struct pool *pool, size_t n,
                        pool_task *task, void *ctx)
{
    int64_t best = INT64_MAX;
    for (int pass = 0; pass < passes; pass++) {
        int64_t begin = clock();
        pool_run(pool, n, 1, task, ctx);
        int64_t took = clock() - begin;
        best = took < best ? took : best;
    }
    return (double)best / 1e9;
}

static double time_best_pass(int passes, struct pool *pool, size_t n, pool_task *task, void *ctx)
{
    return time_best(clock_ns, passes, pool, n, task, ctx);
}

struct ceiling_reader *ceiling_reader_open(size_t bytes, struct err *e)
{
    void *block = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        err_set(e, EXIT_INTERNAL, "no memory: %zu bytes expected, to measure how fast they are "
                "read", bytes + HUGE_PAGE);
        return NULL;
    }
    line *lines = (line *)(((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    madvise(lines, bytes, MADV_HUGEPAGE); /* small pages will do */
    memset(lines, 1, bytes);
    struct ceiling_reader *r = mem_zero(1, sizeof *r);
    r->block = block;
    r->bytes = bytes;
    r->lines = lines;
    return r;
}

double ceiling_reader_bytes_per_s(struct ceiling_reader *r, struct pool *pool)
{
    size_t lines = r->bytes / sizeof *r->lines;
    double each = time_best(r->by_processor ? clock_cpu_ns : clock_ns, READ_PASSES, pool, lines,
                            scan_part, r);
    return (double)r->bytes / each * (r->by_processor ? (double)pool_threads(pool) : 1);
}

void ceiling_reader_by_processor(struct ceiling_reader *r)
{
    r->by_processor = 1;
}

void ceiling_reader_close(struct ceiling_reader *r)
{
    if (r)
        munmap(r->block, r->bytes + HUGE_PAGE);
    free(r);
}

static struct spin spin_new(const struct peak *p, size_t rounds)
{
    struct spin s = {p, rounds, mem_alloc(THREADS_MAX * sizeof *s.seed)};
    memset(s.seed, 0x3c, THREADS_MAX * sizeof *s.seed); /* small numbers in every format */
    return s;
}

/* Operations per second of a loop; NULL: 0. */
static double spin_rate(const struct peak *p, struct pool *pool, int passes)
{
    if (!p)
        return 0;
    size_t threads = pool_threads(pool);
    struct spin s = spin_new(p, ROUNDS);
    double took = time_best_pass(passes, pool, threads, spin_part, &s);
    free(s.seed);
    return p->operations * ROUNDS * (double)threads / took;
}

double ceiling_cores(struct pool *pool)
{
    enum { PAIRS = 15 };
    const struct peak *p = peak_best(UNIT_F32);
    const size_t threads = pool_threads(pool);
    double ratio[PAIRS];
    if (!p || threads < 2)
        return NAN;
    struct spin s = spin_new(p, 4 * ROUNDS); /* long compared with waking a thread */
    for (int i = 0; i < PAIRS; i++) {
        double one = time_best_pass(1, pool, 1, spin_part, &s);
        ratio[i] = (double)threads * one / time_best_pass(1, pool, threads, spin_part, &s);
    }
    free(s.seed);
    return stat_median(ratio, PAIRS);
}

int ceiling_shared(double cores, size_t threads)
{
    return cores > 0 && cores < 0.6 * (double)threads;
}

/* Sets *rate to the median of the loops and *spread to (largest - smallest) / median, unless they
 * already come from steadier loops. */
static void keep_steadiest(double made[LOOPS], double *rate, double *spread)
{
    double m = stat_median(made, LOOPS); /* sorts them */
    double now = m > 0 ? (made[LOOPS - 1] - made[0]) / m : 0;
    if (*rate > 0 && now >= *spread)
        return;
    *rate = m;
    *spread = now;
}

static void run_loops(struct ceilings *c, struct pool *pool, struct ceiling_reader *r)
{
    double made[UNITS][LOOPS], bytes[LOOPS], cores[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        for (int u = 0; u < UNITS; u++)
            made[u][i] = spin_rate(c->own[u], pool, PASSES);
        bytes[i] = ceiling_reader_bytes_per_s(r, pool);
        cores[i] = ceiling_cores(pool);
    }
    for (int u = 0; u < UNITS; u++)
        keep_steadiest(made[u], &c->own_per_s[u], &c->operations_spread[u]);
    keep_steadiest(bytes, &c->bytes_per_s, &c->bytes_spread);
    c->cores = stat_median(cores, LOOPS);
}

static int is_unsteady(double spread) { return spread > 0.1; }

const char *ceiling_remark(double spread) { return is_unsteady(spread) ? ", unsteady" : ""; }

/* 1 if a rate is unsteady. */
static int any_unsteady(const struct ceilings *c)
{
    int any = is_unsteady(c->bytes_spread);
    for (int u = 0; u < UNITS; u++)
        any |= is_unsteady(c->operations_spread[u]);
    return any;
}

void ceiling_host(struct ceilings *c, struct pool *pool, struct ceiling_reader *r)
{
    *c = (struct ceilings){.threads = pool_threads(pool)};
    for (int u = 0; u < UNITS; u++)
        c->own[u] = peak_best((enum unit)u);
    for (int i = 0; !i || (i < TRIES && any_unsteady(c)); i++)
        run_loops(c, pool, r);
    ceiling_lift(c);
}

void ceiling_lift(struct ceilings *c)
{
    const struct ceilings own = *c;
    for (int u = 0; u < UNITS; u++) {
        int by = u; /* the units before it hold its numbers too */
        for (int v = 0; v < u && own.own_per_s[u] > 0; v++)
            by = own.own_per_s[v] > own.own_per_s[by] ? v : by;
        c->by[u] = (enum unit)by;
        c->operations_per_s[u] = own.own_per_s[by];
        c->operations_spread[u] = own.operations_spread[by];
    }
}

void ceiling_again(struct ceilings *c, struct pool *pool, struct ceiling_reader *r, enum unit u)
{
    double now = spin_rate(c->own[c->by[u]], pool, PASSES_AGAIN);
    c->operations_per_s[u] = fmax(c->operations_per_s[u], now);
    c->bytes_per_s = ceiling_reader_bytes_per_s(r, pool);
}

int ceiling_measure(struct ceilings *c, struct backend *b, struct err *e)
{
    if (*b->name)
        return ceiling_device(c, b, e);
    struct ceiling_reader *r = ceiling_reader_open(CEILING_ARRAY_BYTES, e);
    if (!r)
        return -1;
    ceiling_host(c, b->pool, r);
    ceiling_reader_close(r);
    return 0;
}

/* The rate of the unit's own instruction, if another one sets the ceiling. */
static void set_remark(json_t *record, const struct ceilings *c, enum unit u)
{
    char remark[160];
    snprintf(remark, sizeof remark, "%s makes %.4g GOP/s here: its numbers are multiplied faster "
             "as %s", c->own[u]->isa, c->own_per_s[u] / 1e9, dtype_unit_name(c->by[u]));
    json_object_set_new(record, "remark", json_string(remark));
}

json_t *ceiling_record(const struct ceilings *c, const struct backend *b, enum unit u)
{
    static const char one_loop[] = "a device's are one series of calls";
    char name[96];
    int device = *b->name != 0;
    if (device) /* int8 is all of LLM.int8() there */
        snprintf(name, sizeof name, "%s products, %zu x %zu x %zu",
                 u == UNIT_INT8 ? "LLM.int8()" : dtype_unit_name(u), c->side[u], c->side[u],
                 c->side[u]);
    else
        snprintf(name, sizeof name, "%s products, %zu thread%s", dtype_unit_name(u), c->threads,
                 c->threads > 1 ? "s" : "");
    json_t *r = json_pack("{s:s, s:b, s:s, s:s, s:s?, s:s, s:s?}", "name", name, "ceiling", 1,
                          "unit", dtype_unit_name(u), "device", b->ops->name, "device_name",
                          device ? b->name : NULL, "isa", device ? b->level : c->own[c->by[u]]->isa,
                          "library", *b->library ? b->library : NULL);
    if (!device)
        rec_set_int(r, "threads", (int64_t)c->threads);
    if (c->cores > 0)
        rec_set_number(r, "effective_cores", c->cores, NULL);
    if (!device && c->by[u] != u)
        set_remark(r, c, u);
    rec_set_number(r, "flops_per_s", c->operations_per_s[u], NULL);
    rec_set_number(r, "flops_spread_ratio", device ? NAN : c->operations_spread[u], one_loop);
    if (!device && (is_unsteady(c->operations_spread[u]) || is_unsteady(c->bytes_spread)))
        json_object_set_new(r, "unsteady", json_true());
    rec_set_number(r, "bytes_per_s", c->bytes_per_s, NULL);
    rec_set_number(r, "bytes_spread_ratio", device ? NAN : c->bytes_spread, one_loop);
    return r;
}
