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
/* AHEAD: cache lines to prefetch ahead of the sums, 16 KiB. */
enum { AHEAD = 256, HUGE_PAGE = 2 << 20 };

typedef uint64_t line __attribute__((vector_size(64)));

struct spin {
    const struct peak *peak;
    size_t rounds;
    unsigned char (*seed)[PEAK_SEED]; /* [threads] */
};

static void spin_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct spin *spin = ctx;
    for (size_t i = begin; i < end; i++)
        spin->peak->loop(spin->rounds, spin->seed[worker]);
}

struct ceiling_reader {
    void *block;
    size_t bytes;
    const line *lines; /* the array as cache lines */
    int by_processor;  /* 1: rates by processor time */
    unsigned char seed[THREADS_MAX][PEAK_SEED]; /* keeps the sums in use */
};

static void scan_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    struct ceiling_reader *reader = ctx;
    line a = {0}, b = a, c = a, d = a;
    for (const line *p = reader->lines + begin; p + 4 <= reader->lines + end; p += 4) {
        for (int i = 0; i < 4; i++)
            __builtin_prefetch((const char *)(p + i) + 64 * AHEAD);
        a ^= p[0];
        b ^= p[1];
        c ^= p[2];
        d ^= p[3];
    }
    a ^= b ^ c ^ d;
    memcpy(reader->seed[worker], &a, sizeof a);
}

/* Returns the time of the fastest of several passes, in seconds of `clock`. */
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
    struct ceiling_reader *reader = mem_zero(1, sizeof *reader);
    reader->block = block;
    reader->bytes = bytes;
    reader->lines = lines;
    return reader;
}

double ceiling_reader_bytes_per_s(struct ceiling_reader *reader, struct pool *pool)
{
    size_t lines = reader->bytes / sizeof *reader->lines;
    double each = time_best(reader->by_processor ? clock_cpu_ns : clock_ns, READ_PASSES, pool,
                            lines, scan_part, reader);
    return (double)reader->bytes / each * (reader->by_processor ? (double)pool_threads(pool) : 1);
}

void ceiling_reader_by_processor(struct ceiling_reader *reader)
{
    reader->by_processor = 1;
}

void ceiling_reader_close(struct ceiling_reader *reader)
{
    if (reader)
        munmap(reader->block, reader->bytes + HUGE_PAGE);
    free(reader);
}

static struct spin spin_new(const struct peak *peak, size_t rounds)
{
    struct spin spin = {peak, rounds, mem_alloc(THREADS_MAX * sizeof *spin.seed)};
    memset(spin.seed, 0x3c, THREADS_MAX * sizeof *spin.seed); /* small numbers in every format */
    return spin;
}

/* Returns the operations per second of a loop; 0 if peak is NULL. */
static double spin_rate(const struct peak *peak, struct pool *pool, int passes)
{
    if (!peak)
        return 0;
    size_t threads = pool_threads(pool);
    struct spin spin = spin_new(peak, ROUNDS);
    double took = time_best_pass(passes, pool, threads, spin_part, &spin);
    free(spin.seed);
    return peak->operations * ROUNDS * (double)threads / took;
}

double ceiling_cores(struct pool *pool)
{
    enum { PAIRS = 15 };
    const struct peak *peak = peak_best(UNIT_F32, NULL);
    const size_t threads = pool_threads(pool);
    double ratio[PAIRS];
    if (!peak || threads < 2)
        return NAN;
    struct spin spin = spin_new(peak, 4 * ROUNDS); /* long compared with waking a thread */
    for (int i = 0; i < PAIRS; i++) {
        double one = time_best_pass(1, pool, 1, spin_part, &spin);
        ratio[i] = (double)threads * one / time_best_pass(1, pool, threads, spin_part, &spin);
    }
    free(spin.seed);
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

static void run_loops(struct ceilings *ceilings, struct pool *pool, struct ceiling_reader *reader)
{
    double made[UNITS][LOOPS], bytes[LOOPS], cores[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        for (int u = 0; u < UNITS; u++)
            made[u][i] = spin_rate(ceilings->own[u], pool, PASSES);
        bytes[i] = ceiling_reader_bytes_per_s(reader, pool);
        cores[i] = ceiling_cores(pool);
    }
    for (int u = 0; u < UNITS; u++)
        keep_steadiest(made[u], &ceilings->own_per_s[u], &ceilings->operations_spread[u]);
    keep_steadiest(bytes, &ceilings->bytes_per_s, &ceilings->bytes_spread);
    ceilings->cores = stat_median(cores, LOOPS);
}

static int is_unsteady(double spread) { return spread > 0.1; }

const char *ceiling_remark(double spread) { return is_unsteady(spread) ? ", unsteady" : ""; }

/* 1 if a rate is unsteady. */
static int any_unsteady(const struct ceilings *ceilings)
{
    int any = is_unsteady(ceilings->bytes_spread);
    for (int u = 0; u < UNITS; u++) /* int4 counts only if it sets a ceiling */
        any |= is_unsteady(ceilings->operations_spread[u]) &&
               (u != UNIT_INT4 || ceilings->own_per_s[u] > ceilings->own_per_s[UNIT_INT8]);
    return any;
}

void ceiling_host(struct ceilings *ceilings, struct pool *pool, const char *level,
                  struct ceiling_reader *reader)
{
    *ceilings = (struct ceilings){.threads = pool_threads(pool)};
    for (int u = 0; u < UNITS; u++)
        ceilings->own[u] = peak_best((enum unit)u, level);
    for (int i = 0; !i || (i < TRIES && any_unsteady(ceilings)); i++)
        run_loops(ceilings, pool, reader);
    ceiling_lift(ceilings);
}

void ceiling_lift(struct ceilings *ceilings)
{
    const struct ceilings own = *ceilings;
    for (int u = 0; u < UNITS; u++) {
        int by = u; /* the units before u can hold its numbers, too */
        for (int v = 0; v < u && own.own_per_s[u] > 0; v++)
            by = own.own_per_s[v] > own.own_per_s[by] ? v : by;
        ceilings->by[u] = (enum unit)by;
        /* int4 without a gain from 16-bit sums: no ceiling of its own */
        ceilings->operations_per_s[u] = u == UNIT_INT4 && by != u ? 0 : own.own_per_s[by];
        ceilings->operations_spread[u] = own.operations_spread[by];
    }
}

enum unit ceiling_unit(const struct ceilings *ceilings, enum unit unit)
{
    while (unit != UNIT_F32 && !(ceilings->operations_per_s[unit] > 0))
        unit = dtype_unit_instead(unit);
    return unit;
}

void ceiling_again(struct ceilings *ceilings, struct pool *pool, struct ceiling_reader *reader,
                   enum unit unit)
{
    unit = ceiling_unit(ceilings, unit);
    double now = spin_rate(ceilings->own[ceilings->by[unit]], pool, PASSES_AGAIN);
    ceilings->operations_per_s[unit] = fmax(ceilings->operations_per_s[unit], now);
    ceilings->bytes_per_s = ceiling_reader_bytes_per_s(reader, pool);
}

int ceiling_measure(struct ceilings *ceilings, struct backend *backend, struct err *e)
{
    if (*backend->name)
        return ceiling_device(ceilings, backend, e);
    struct ceiling_reader *reader = ceiling_reader_open(CEILING_ARRAY_BYTES, e);
    if (!reader)
        return -1;
    ceiling_host(ceilings, backend->pool, NULL, reader);
    ceiling_reader_close(reader);
    return 0;
}

/* Sets a remark with the rate of the unit's own instruction, for a unit whose ceiling another
 * instruction sets. */
static void set_remark(json_t *record, const struct ceilings *ceilings, enum unit unit)
{
    char remark[160];
    snprintf(remark, sizeof remark, "%s makes %.4g GOP/s here: its numbers are multiplied faster "
             "as %s", ceilings->own[unit]->isa, ceilings->own_per_s[unit] / 1e9,
             dtype_unit_name(ceilings->by[unit]));
    json_object_set_new(record, "remark", json_string(remark));
}

json_t *ceiling_record(const struct ceilings *ceilings, const struct backend *backend,
                       enum unit unit)
{
    static const char one_loop[] = "a device's are one series of calls";
    char name[96];
    int device = *backend->name != 0;
    if (device) /* int8 is all of LLM.int8() there */
        snprintf(name, sizeof name, "%s products, %zu x %zu x %zu",
                 unit == UNIT_INT8 ? "LLM.int8()" : dtype_unit_name(unit), ceilings->side[unit],
                 ceilings->side[unit], ceilings->side[unit]);
    else
        snprintf(name, sizeof name, "%s products, %zu thread%s", dtype_unit_name(unit),
                 ceilings->threads, ceilings->threads > 1 ? "s" : "");
    json_t *record = json_pack("{s:s, s:b, s:s, s:s, s:s?, s:s, s:s?}", "name", name, "ceiling", 1,
                               "unit", dtype_unit_name(unit), "device", backend->ops->name,
                               "device_name", device ? backend->name : NULL, "isa",
                               device ? backend->level : ceilings->own[ceilings->by[unit]]->isa,
                               "library", *backend->library ? backend->library : NULL);
    if (!device)
        rec_set_int(record, "threads", (int64_t)ceilings->threads);
    if (ceilings->cores > 0)
        rec_set_number(record, "effective_cores", ceilings->cores, NULL);
    if (!device && ceilings->by[unit] != unit)
        set_remark(record, ceilings, unit);
    rec_set_number(record, "flops_per_s", ceilings->operations_per_s[unit], NULL);
    rec_set_number(record, "flops_spread_ratio", device ? NAN : ceilings->operations_spread[unit],
                   one_loop);
    if (!device &&
        (is_unsteady(ceilings->operations_spread[unit]) || is_unsteady(ceilings->bytes_spread)))
        json_object_set_new(record, "unsteady", json_true());
    rec_set_number(record, "bytes_per_s", ceilings->bytes_per_s, NULL);
    rec_set_number(record, "bytes_spread_ratio", device ? NAN : ceilings->bytes_spread, one_loop);
    return record;
}
